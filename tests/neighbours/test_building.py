"""Writing an index: its files, what is refused, and what a stopped process leaves."""

from pathlib import Path

import numpy as np
import pytest
from neighbour_cases import CORPUS

from spacy_elmo import ElmoEmbedder, WordIndex, build_index
from spacy_elmo.analysis import neighbours as building
from spacy_elmo.errors import CorpusError, ElmoError, SettingsError


def test_the_files(index: WordIndex, embedder: ElmoEmbedder) -> None:
    names = {"index.json", "lengths.npy", "meta.json", "offsets.npy", "sentences.txt", "vectors.npy"}
    assert {path.name for path in index.folder.iterdir()} == names
    vectors = np.load(index.folder / "vectors.npy")
    assert vectors.dtype == np.float16
    expected = np.concatenate([embedder.embed_sentence(line.split())[-1] for line in CORPUS]).astype(np.float64)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-3)
    assert (index.folder / "sentences.txt").read_text(encoding="utf8").splitlines() == CORPUS


def test_a_stopped_process_leaves_nothing(
    text: Path, tmp_path: Path, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    build_index(text, tmp_path / "old", embedder)
    before = {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    monkeypatch.setattr(building, "unit_vectors", stop)
    for folder in ("old", "new"):
        with pytest.raises(KeyboardInterrupt):
            build_index(text, tmp_path / folder, embedder, layer=0, replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old", "text.txt"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before


def test_what_is_in_the_folder(index: WordIndex, text: Path, tmp_path: Path, embedder: ElmoEmbedder) -> None:
    with pytest.raises(CorpusError, match="has an index"):
        build_index(text, index.folder, embedder)
    build_index(text, index.folder, embedder, layer=0, replace=True)
    assert WordIndex(index.folder, embedder).header.layer == 0
    (tmp_path / "empty").mkdir()
    build_index(text, tmp_path / "empty", embedder)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").touch()
    with pytest.raises(CorpusError, match=r"holds a\.txt, and no index"):
        build_index(text, tmp_path / "letters", embedder, replace=True)
    with pytest.raises(CorpusError, match="a folder"):
        build_index(text, text, embedder)
    with pytest.raises(CorpusError, match="inside"):
        build_index(tmp_path, tmp_path / "new", embedder)
    assert not (tmp_path / "new").exists()


def test_refused_settings(text: Path, tmp_path: Path, golden: Path, embedder: ElmoEmbedder) -> None:
    for layer in (-1, embedder.options.layers, True, "top", 1.0):
        with pytest.raises(SettingsError, match="the layer is"):
            build_index(text, tmp_path / "i", embedder, layer=layer)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="stateful"):
        build_index(text, tmp_path / "i", ElmoEmbedder(golden / "random_a", stateful=True))
    with pytest.raises(ElmoError, match="no such file"):
        build_index(tmp_path / "gone.txt", tmp_path / "i", embedder)
    with pytest.raises(ElmoError, match="language"):
        build_index(text, tmp_path / "i", embedder, lang="none such")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
