"""A trained biLM goes into the package, and its softmax into the one beside it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from embedded_case import OPTIONS, install, model_of

from scripts.release.ship_bilm import BILM, PACKAGE, ROOT, ship
from spacy_elmo.errors import CommandError, WeightsError
from spacy_elmo.formats import read_options, read_weights
from spacy_elmo.formats.softmax import read_softmax
from spacy_elmo.pretraining.language_model import package_folder
from spacy_elmo.pretraining.pack import round_mantissas


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (BILM, PACKAGE):
        (tmp_path / "root" / folder).mkdir(parents=True)
        (tmp_path / "root" / folder / "README.md").write_text("card", encoding="utf8")
    model_of().save(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("of the run", encoding="utf8")
    return tmp_path / "root"


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_both_are_filled(root: Path) -> None:
    ship(root.parent / "model", root)
    bilm, package = root / BILM, root / PACKAGE
    assert {path.name for path in bilm.iterdir()} == {"README.md", "options.json", "weights.hdf5", "vocabulary.txt"}
    words = {"README.md", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "bilm.sha256"}
    assert {path.name for path in package.iterdir()} == words
    for folder in (bilm, package):
        assert (folder / "README.md").read_text(encoding="utf8") == "card"
    assert read_options(bilm / "options.json") == OPTIONS
    for name, values in read_weights(root.parent / "model" / "weights.hdf5", OPTIONS).items():
        shipped = read_weights(bilm / "weights.hdf5", OPTIONS)[name]
        if name.endswith("bias") or name == "char_cnn.embedding.weight":
            np.testing.assert_array_equal(shipped, round_mantissas(values, 10))
        else:  # 8 bits: no value moves further than this
            np.testing.assert_array_less(np.abs(shipped - values).max(), np.abs(values).max() / 63)
    weight, _ = read_softmax(package / "softmax.hdf5")
    expected = model_of().softmax.weight.detach().numpy()
    np.testing.assert_array_less(np.abs(weight - expected).max(), np.abs(expected).max() / 63)
    digest = hashlib.sha256((bilm / "weights.hdf5").read_bytes()).hexdigest()
    assert (package / "bilm.sha256").read_bytes() == f"{digest}  weights.hdf5\n".encode()


def test_what_was_shipped_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(root.parent / "model", root)
    name = "shipped_softmax_package"
    shutil.copytree(root / PACKAGE, root.parent / "site" / name)
    shutil.copy(ROOT / PACKAGE / "__init__.py", root.parent / "site" / name)
    monkeypatch.syspath_prepend(str(root.parent / "site"))
    install(monkeypatch, [f"{name}:folder"])
    assert package_folder("en_mini", root / BILM / "weights.hdf5") == root.parent / "site" / name
    model_of(seed=1).save(root.parent / "model")
    ship(root.parent / "model", root)
    with pytest.raises(WeightsError, match="other weights"):
        package_folder("en_mini", root / BILM / "weights.hdf5")


def test_what_is_too_large_changes_nothing(root: Path) -> None:
    before = contents(root)
    with pytest.raises(CommandError, match=r"en_mini: [\d,]+ bytes\. Expected 50,000 at most"):
        ship(root.parent / "model", root, most_bytes=50_000)
    assert contents(root) == before


def test_a_model_without_softmax_or_counts_changes_nothing(root: Path) -> None:
    before = contents(root)
    for name in ("vocabulary.counts.npy", "softmax.hdf5"):
        (root.parent / "model" / name).unlink()
        with pytest.raises(CommandError, match=rf"model: .*{name}.* missing"):
            ship(root.parent / "model", root)
    assert contents(root) == before
