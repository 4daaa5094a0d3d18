"""Every benchmark imports what is there, and tells how it is run."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALONE = ("worker_", "same_bits")  # run as plain files, by other environments
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "benchmarks").rglob("*.py"))
    if path.name != "__init__.py" and not any(part in str(path) for part in ALONE)
]


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = import_module(name)
    if not hasattr(module, "main"):
        return
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"python -m {name}" in text
    assert "show this help message" in text
