"""What a release must not have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
<<<<<<< HEAD
from embedded_case import OPTIONS, model_of
from reading import read_here
=======
>>>>>>> c84c047 (Add elmo package, which makes a Python package of a biLM)

from scripts import check_dist
from scripts.check_dist import Environment, check, one_file
from spacy_elmo.errors import CommandError
<<<<<<< HEAD
from spacy_elmo.formats import read_weights
from spacy_elmo.formats.softmax import read_softmax


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with cards, beside a trained model."""
    read_here(monkeypatch)
    for folder in (BILM, PACKAGE):
        (tmp_path / "root" / folder).mkdir(parents=True)
        (tmp_path / "root" / folder / "README.md").write_text("card", encoding="utf8")
    model_of().save(tmp_path / "model")
    return tmp_path / "root"


def test_both_packages_are_filled(root: Path) -> None:
    ship(root.parent / "model", root)
    bilm, package = root / BILM, root / PACKAGE
    assert {path.name for path in bilm.iterdir()} == {"README.md", "options.json", "weights.hdf5", "vocabulary.txt"}
    words = {"README.md", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "bilm.sha256"}
    assert {path.name for path in package.iterdir()} == words
    assert (bilm / "README.md").read_text(encoding="utf8") == "card"
    shipped = read_weights(bilm / "weights.hdf5", OPTIONS)
    for name, values in read_weights(root.parent / "model" / "weights.hdf5", OPTIONS).items():  # 8 bits
        np.testing.assert_array_less(np.abs(shipped[name] - values).max(), np.abs(values).max() / 63)
    expected = model_of().softmax.weight.detach().numpy()
    error = np.abs(read_softmax(package / "softmax.hdf5")[0] - expected)
    np.testing.assert_array_less(error.max(), np.abs(expected).max() / 63)
    digest = hashlib.sha256((bilm / "weights.hdf5").read_bytes()).hexdigest()
    assert (package / "bilm.sha256").read_bytes() == f"{digest}  weights.hdf5\n".encode()


def test_what_can_not_be_shipped_changes_nothing(root: Path) -> None:
    with pytest.raises(CommandError, match=r"en_mini: [\d,]+ bytes\. Expected 50,000 at most"):
        ship(root.parent / "model", root, most_bytes=50_000)
    (root.parent / "model" / "softmax.hdf5").unlink()
    with pytest.raises(CommandError, match=r"model: .*softmax\.hdf5.* missing"):
        ship(root.parent / "model", root)
    assert {path.name for path in root.rglob("*") if path.is_file()} == {"README.md"}
=======
>>>>>>> c84c047 (Add elmo package, which makes a Python package of a biLM)


def test_one_file(tmp_path: Path) -> None:
    for name in ("a-1.whl", "a-1.tar.gz", "b-1.whl"):
        (tmp_path / name).touch()
    assert one_file(tmp_path, "a-*.whl") == tmp_path / "a-1.whl"
    for pattern, n in (("c-*.whl", 0), ("*.whl", 2)):
        with pytest.raises(CommandError, match=f"{n} files are"):
            one_file(tmp_path, pattern)


@pytest.mark.parametrize(
    ("state", "place", "message"),
    [
        ('{"compiled_loops": false, "compiled_loops_missing": "not built"}', "inside", r"not used \(not built\)"),
        ('{"compiled_loops": true}', "outside", "imported from"),
    ],
)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, place: str, message: str) -> None:
    def run(self: Environment, *arguments: str) -> str:
        return state if "--json" in arguments else str(tmp_path / place / "spacy_elmo" / "__init__.py")

    monkeypatch.setattr(check_dist.venv, "create", lambda folder, with_pip: None)  # pip's take seconds
    monkeypatch.setattr(Environment, "run", run)
    with pytest.raises(CommandError, match=message):
        check(tmp_path / "a.whl", tmp_path / "inside", "")


def test_an_environment_has_no_compiler_and_no_path_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_dist.venv, "create", lambda folder, with_pip: None)
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    environment = Environment(tmp_path, "")
    assert environment.variables["PATH"] == str(environment.python.parent)
    assert "PYTHONPATH" not in environment.variables
    environment.python = Path(sys.executable)
    with pytest.raises(CommandError, match=r"(?s)a step failed.*what it said"):
        environment.run("-c", "print('what it said'); raise SystemExit(3)")
