"""Writing an index: its files, what is refused, and what a stopped process leaves."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from neighbour_cases import CORPUS, brute_force

from spacy_elmo import ElmoEmbedder, SentenceIndex, WordIndex, build_index
from spacy_elmo.analysis import neighbours
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


def test_what_is_in_the_folder(index: WordIndex, text: Path, tmp_path: Path, embedder: ElmoEmbedder) -> None:
    with pytest.raises(CorpusError, match=r"index: exists\. Give another folder, or add --force"):
        build_index(text, index.folder, embedder)
    build_index(text, index.folder, embedder, layer=0, replace=True)
    assert WordIndex(index.folder, embedder).header.layer == 0
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").touch()
    with pytest.raises(CorpusError, match=r"holds a\.txt, but no index\.json"):
        build_index(text, tmp_path / "letters", embedder, replace=True)
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


QUERY = "She saw the bank of the bank ."
CLOSE = 1e-3  # the vectors on disk are float16


@pytest.mark.parametrize("layer", [None, 0, 1, 2, "mix"])
def test_all_cosines(
    layer: int | Literal["mix"] | None,
    text: Path,
    tmp_path: Path,
    embedder: ElmoEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build_index(text, tmp_path / "i", embedder, layer=layer)
    monkeypatch.setattr(neighbours, "_BLOCK", 4 * 5 * embedder.options.width)  # of five words
    index = WordIndex(tmp_path / "i", embedder)
    assert len(index) == sum(len(line.split()) for line in CORPUS)
    last = embedder.options.layers - 1
    expected = brute_force(embedder, QUERY.split(), 6, {None: last, "mix": None}.get(layer, layer))  # type: ignore[call-overload]
    found = index.neighbours(QUERY, "bank", len(index) + 5, occurrence=2)
    np.testing.assert_allclose([one.cosine for one in found], [cosine for cosine, _, _ in expected], atol=CLOSE)
    cosines = {(number, place): cosine for cosine, number, place in expected}
    assert {(one.sentence, one.place) for one in found} == set(cosines)
    for one in found:
        assert one.words == CORPUS[one.sentence - 1].split()
        assert one.cosine == pytest.approx(cosines[one.sentence, one.place], abs=CLOSE)
    assert [one[:3] for one in index.neighbours(QUERY, "bank", 3, occurrence=2)] == [one[:3] for one in found[:3]]


def test_equal_cosines_stay_in_the_order_of_the_corpus(index: WordIndex) -> None:
    found = index.neighbours("The bank raised its bank", "bank", 99)
    places = [(one.sentence, one.place) for one in found]
    for place in range(6):
        assert places.index((4, place)) == places.index((2, place)) + 1


def test_what_is_left_out(index: WordIndex) -> None:
    found = index.neighbours(CORPUS[0].split(), "bank", 99)  # not the query itself
    assert (1, 4) not in {(one.sentence, one.place) for one in found}
    assert len(found) == len(index) - 1
    assert found[0].cosine < 0.999
    found = index.neighbours(QUERY, "bank", 99, other_words=True)
    assert "bank" not in {one.words[one.place].lower() for one in found}
    assert len(found) == len(index) - 5
    found = index.neighbours(QUERY, "bank", 99, one_per_sentence=True)
    assert {one.sentence for one in found} == {1, 2, 3, 5, 6}
    best: dict[int, float] = {}
    for one in index.neighbours(QUERY, "bank", 99):
        best.setdefault(one.sentence, one.cosine)
    assert [one.cosine for one in found] == [best[one.sentence] for one in found]


def test_numbers(index: WordIndex) -> None:
    assert index.neighbours(QUERY, "bank", 0) == []
    assert len(index.neighbours(QUERY, "bank", np.int64(2), occurrence=np.int32(1))) == 2  # type: ignore[arg-type]
    for n in (2.5, None, "3", True):
        with pytest.raises(SettingsError, match=r"n is .*Expected a whole number"):
            index.neighbours(QUERY, "bank", n)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"occurrence is '1'\. Expected a whole number"):
        index.neighbours(QUERY, "bank", occurrence="1")  # type: ignore[arg-type]


def test_a_language_splits_corpus_and_query(tmp_path: Path, embedder: ElmoEmbedder) -> None:
    (tmp_path / "raw.txt").write_text("He can't see the bank.\n", encoding="utf8")
    build_index(tmp_path / "raw.txt", tmp_path / "i", embedder, lang="en")
    index = WordIndex(tmp_path / "i", embedder)
    (one,) = index.neighbours("They don't know the bank.", "bank", 1)
    assert one.words == ["He", "ca", "n't", "see", "the", "bank", "."]
    assert index.is_of(tmp_path / "raw.txt", "en")
    assert not index.is_of(tmp_path / "raw.txt", None)
    build_index(tmp_path / "raw.txt", tmp_path / "by_default", embedder)
    assert WordIndex(tmp_path / "by_default", embedder).corpus.sentence(0) == one.words


def test_the_text_is_compared_if_the_file_is_another(text: Path, index: WordIndex, tmp_path: Path) -> None:
    os.utime(text, (1, 1))
    assert index.is_of(text, None)
    copy = tmp_path / "copy.jsonl"
    copy.write_text("".join(json.dumps({"tokens": line.split()}) + "\n" for line in CORPUS), encoding="utf8")
    assert index.is_of(copy, None)
    assert not index.is_of(copy, "en")
    text.write_text("\n".join(CORPUS)[:-1] + ",\n", encoding="utf8")  # as many bytes
    assert not index.is_of(text, None)


def test_words_that_are_not_there(index: WordIndex) -> None:
    with pytest.raises(
        ElmoError, match=r"'Bank' does not occur in the query, which was split at blanks.*With a language"
    ):
        index.neighbours(QUERY, "Bank")
    for occurrence in (0, 3):
        with pytest.raises(SettingsError, match=f"occurrence is {occurrence}, but the query has 'bank' 2 times"):
            index.neighbours(QUERY, "bank", occurrence=occurrence)


@pytest.mark.slow
def test_other_bilms_are_refused(index: WordIndex, golden: Path) -> None:
    with pytest.raises(CorpusError, match="another biLM made this index"):
        WordIndex(index.folder, ElmoEmbedder())
    with pytest.raises(SettingsError, match="stateful"):
        WordIndex(index.folder, ElmoEmbedder(golden / "random_a", stateful=True))
    assert WordIndex(index.folder, ElmoEmbedder(golden / "random_a", precision="float32"))


def damaged_header(**values: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        record = json.loads((folder / "index.json").read_text())
        (folder / "index.json").write_text(json.dumps(record | values))

    return damage


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-2])  # type: ignore[return-value]


def other_text(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"sha256": "0" * 64}))


@pytest.mark.parametrize(
    "damage",
    [
        cut("index.json"),
        cut("vectors.npy"),
        cut("offsets.npy"),
        cut("sentences.txt"),
        other_text,
        lambda folder: (folder / "vectors.npy").unlink(),
        lambda folder: (folder / "meta.json").unlink(),
        lambda folder: (folder / "index.json").unlink(),
        lambda folder: (folder / "index.json").write_text("[" * 100_000),
        lambda folder: (folder / "index.json").write_text('{"version": 1}'),
        lambda folder: (folder / ".unfinished").touch(),
        damaged_header(version=2),
        damaged_header(width=4),
        damaged_header(layer=9),
        damaged_header(layer="best"),
        damaged_header(text=3),
    ],
)
def test_damaged_indexes(damage: Callable[[Path], None], index: WordIndex) -> None:
    damage(index.folder)
    with pytest.raises(CorpusError, match="index"):
        WordIndex(index.folder, index.embedder)


@pytest.mark.parametrize("value", [np.nan, np.inf, 30.0])
def test_hostile_vectors(value: float, index: WordIndex, tmp_path: Path) -> None:
    vectors = np.load(index.folder / "vectors.npy")
    vectors[3] = value
    shutil.copytree(index.folder, tmp_path / "hostile")
    np.save(tmp_path / "hostile" / "vectors.npy", vectors)
    with pytest.raises(CorpusError, match="vectors that are not of length 1"), np.errstate(invalid="ignore"):
        WordIndex(tmp_path / "hostile", index.embedder).neighbours(QUERY, "bank")


def test_damaged_sentences(index: WordIndex) -> None:
    path = index.folder / "sentences.txt"
    path.write_bytes(path.read_bytes().replace(b" ", b"\n"))
    with pytest.raises(CorpusError, match="the index is damaged"):
        WordIndex(index.folder, index.embedder).neighbours(QUERY, "bank")


def test_an_index_of_version_0_1(golden: Path, embedder: ElmoEmbedder) -> None:
    """Neighbours as that version found them: cosine, sentence, place of the word."""
    found = WordIndex(golden / "written_by_0_1" / "index", embedder).neighbours("we sat by the river bank .", "bank", 3)
    assert [(neighbour.sentence, neighbour.place) for neighbour in found] == [(3, 4), (7, 6), (20, 4)]
    assert [neighbour.cosine for neighbour in found] == pytest.approx([0.9970, 0.9934, 0.9912], abs=1e-4)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_the_nearest_sentences(
    normalize: bool, center: bool, text: Path, tmp_path: Path, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(text, tmp_path / "index", embedder, sentences=True)
    query = "She sat on the bank ."
    vectors = embedder.encode([query, *CORPUS], lang=None).astype(np.float64)
    if center:
        vectors -= vectors[1:].mean(0)
    if normalize:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = vectors[1:] @ vectors[0]
    monkeypatch.setattr(neighbours, "_BLOCK", 4 * 2 * embedder.options.width)  # of two sentences
    found = SentenceIndex(tmp_path / "index", embedder).neighbours(query, 99, normalize=normalize, center=center)
    np.testing.assert_allclose([each.score for each in found], np.sort(expected)[::-1], atol=1e-5)
    np.testing.assert_allclose([expected[each.sentence - 1] for each in found], np.sort(expected)[::-1], atol=1e-5)
    assert [" ".join(each.words) for each in found] == [CORPUS[each.sentence - 1] for each in found]


def test_an_index_of_sentences(index: WordIndex, text: Path, tmp_path: Path, embedder: ElmoEmbedder) -> None:
    build_index(text, tmp_path / "sentences", embedder, sentences=True, layer=1)
    of_sentences = SentenceIndex(tmp_path / "sentences", embedder)
    assert len(of_sentences) == len(CORPUS)
    expected = [embedder.embed_sentence(line.split())[1].mean(0) for line in CORPUS]
    np.testing.assert_allclose(of_sentences.vectors, expected, atol=1e-6)
    assert CORPUS[1] not in {" ".join(each.words) for each in of_sentences.neighbours(CORPUS[1])}
    assert len(of_sentences.neighbours(CORPUS[1], 2)) == 2
    with pytest.raises(ElmoError, match="the query is ' ', which has no words"):
        of_sentences.neighbours(" ")
    with pytest.raises(CorpusError, match=r"an index of sentences\. Expected one of words"):
        WordIndex(of_sentences.folder, embedder)
    with pytest.raises(CorpusError, match=r"an index of words\. Expected one of sentences"):
        SentenceIndex(index.folder, embedder)
    vectors = np.lib.format.open_memmap(of_sentences.folder / "vectors.npy", mode="r+")
    vectors[2] = np.nan
    with pytest.raises(CorpusError, match="not finite"):
        SentenceIndex(of_sentences.folder, embedder).neighbours(CORPUS[0])
