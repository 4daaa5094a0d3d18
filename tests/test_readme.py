"""The README's Python snippets run, in order, as one program."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf8"), re.DOTALL)
    assert snippets
    monkeypatch.chdir(tmp_path)
    golden = Path(__file__).parent / "golden" / "random_a"
    for name in ("options.json", "weights.hdf5"):  # the README's names for official files
        (tmp_path / name).write_bytes((golden / name).read_bytes())
    variables: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), variables)
