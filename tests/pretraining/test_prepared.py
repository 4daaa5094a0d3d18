"""A prepared corpus: the files in its folder, when they are written again, and the errors if they are damaged."""

import hashlib
import json
import lzma
import os
import pickle
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.errors import CorpusError
from spacy_elmo.pretraining import prepared
from spacy_elmo.pretraining.prepared import PreparedCorpus, digest_of, prepare
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

TEXT = "a  b c\n\nd\u2028é\n\xa0\nf 中 g h\n"
SENTENCES = [["a", "b", "c"], ["d", "é"], ["f", "中", "g", "h"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode() + b"bad \xff\n")
    return path


@pytest.fixture
def corpus(source: Path) -> PreparedCorpus:
    return prepare(source, source.parent / "prepared")


# Its content


def test_words_with_blanks(tmp_path: Path) -> None:
    """A vocabulary has those that a line can hold."""
    words = [["25 785", "a"], ["a\n\u2028b ", "25 785", "0;", "\u2423"]]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"tokens": each}) + "\n" for each in words))
    corpus = prepare(tmp_path / "a.jsonl", tmp_path / "prepared")
    assert list(corpus) == words
    assert digest_of(words) == corpus.meta.sha256
    Vocabulary.from_counts(count_words(corpus)).write(tmp_path / "words.txt")
    assert Vocabulary.read(tmp_path / "words.txt").words[3:] == ["25 785", "a", "0;", "\u2423"]


@pytest.mark.parametrize("seed", range(4))
def test_sentences_that_another_text_repeats(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    words = ["a", "b", "a b", "é", "\n", "2008", "A"]
    texts = [[rng.choices(words, k=rng.randint(1, 3)) for _ in range(200)] for _ in "ab"]
    for name, sentences in zip("ab", texts):
        lines = [json.dumps({"tokens": words}) + "\n" for words in sentences]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf8")
    a, b = (prepare(tmp_path / f"{name}.jsonl", tmp_path / name) for name in "ab")
    for train, heldout in ((a, b), (a.part(0, 150), a.part(150, len(a))), (a.part(20, 30), b.part(30, 30)), (b, b)):
        known = list(train)
        assert heldout.count_repeated(train) == sum(sentence in known for sentence in heldout)


def test_the_files(corpus: PreparedCorpus, source: Path) -> None:
    folder = corpus.folder
    text = "a b c\nd é\nf 中 g h\n".encode()
    assert (folder / "sentences.txt").read_bytes() == text
    offsets = np.load(folder / "offsets.npy", allow_pickle=False)
    assert (offsets.dtype, offsets.tolist()) == (np.int64, [0, 6, 11, len(text)])
    lengths = np.load(folder / "lengths.npy", allow_pickle=False)
    assert (lengths.dtype, lengths.tolist()) == (np.int32, [3, 2, 4])
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    assert meta == {
        "version": 1,
        "report": {
            "lines": 6,
            "sentences": 3,
            "tokens": 9,
            "blank": 2,
            "n_bad": 1,
            "bad": [[str(source), 6, "not UTF-8 (invalid start byte at byte 4)"]],
        },
        "sources": [[str(source), source.stat().st_size, source.stat().st_mtime_ns]],
        "language": None,
        "sha256": hashlib.sha256(text).hexdigest(),
        "text_column": None,
        "text_field": None,
    }
    assert sorted(path.name for path in folder.parent.iterdir()) == ["prepared", "text.txt"]


def test_sentences_and_parts(corpus: PreparedCorpus) -> None:
    assert (len(corpus), corpus.n_tokens) == (3, 9)
    assert [corpus.sentence(i) for i in range(3)] == list(corpus) == SENTENCES
    assert corpus.lengths.tolist() == [3, 2, 4]
    corpus.verify()
    part = corpus.part(1, 3)
    assert list(part) == SENTENCES[1:]
    assert (part.n_tokens, part.lengths.tolist()) == (6, [2, 4])
    assert list(part.part(1, 2)) == SENTENCES[2:]
    assert list(corpus.part(1, 1)) == []


@pytest.mark.parametrize(("share", "heldout"), [(0.001, 1), (0.2, 2), (0.25, 2), (0.5, 5), (0.999, 9)])
def test_the_last_sentences_are_held_out(share: float, heldout: int, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{i}\n" for i in range(10)), encoding="utf8")
    train, rest = prepare(tmp_path / "text.txt", tmp_path / "prepared").cut(share)
    assert [*train, *rest] == [[str(i)] for i in range(10)]
    assert len(rest) == heldout
    with pytest.raises(CorpusError, match="at least two"):
        train.part(0, 1).cut(0.5)


# When it is written again


def test_it_is_reused_while_the_sources_are_the_same(
    source: Path, corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (corpus.folder / "meta.json").stat().st_ino
    with monkeypatch.context() as patch:
        patch.setattr(prepared, "read_sentences", None)
        patch.chdir(source.parent)
        for name in (source, source.name, f"../{source.parent.name}/{source.name}"):  # the same file
            assert list(prepare(name, corpus.folder)) == SENTENCES
    assert prepare(source, corpus.folder, "xx").meta.language == "xx"
    assert (corpus.folder / "meta.json").stat().st_ino != made
    assert list(corpus) == SENTENCES  # the corpus that was open can still be read


@pytest.mark.parametrize("change", ["size", "time", "another file", "another folder", "damage"])
def test_it_is_written_again(change: str, source: Path, corpus: PreparedCorpus) -> None:
    made = (corpus.folder / "meta.json").stat().st_ino
    if change == "size":
        source.write_text("new text\n", encoding="utf8")
    elif change == "time":
        os.utime(source, ns=(0, 0))
    elif change == "another file":
        source = source.rename(source.with_name("other.txt"))
    elif change == "another folder":  # name, size and time are the same
        (source.parent / "other").mkdir()
        source = source.rename(source.parent / "other" / source.name)
    else:
        (corpus.folder / "lengths.npy").unlink()
    again = prepare(source, corpus.folder)
    assert (corpus.folder / "meta.json").stat().st_ino != made
    assert list(again) == ([["new", "text"]] if change == "size" else SENTENCES)


def test_a_failure_leaves_the_earlier_corpus(source: Path, corpus: PreparedCorpus) -> None:
    source.write_bytes(b"\xff\n")
    with pytest.raises(CorpusError, match="no sentence"):
        prepare(source, corpus.folder)
    assert list(PreparedCorpus(corpus.folder)) == SENTENCES
    assert len(list(source.parent.iterdir())) == 2
    with pytest.raises(CorpusError, match="no such file"):
        prepare(source.parent / "nothing", source.parent / "new")
    assert not (source.parent / "new").exists()


def test_a_killed_call_leaves_no_mixture(source: Path, corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two files of a corpus that replaces another one."""
    replace, moved = os.replace, []

    def killed(*paths: str) -> None:
        if moved:
            raise KeyboardInterrupt
        moved.append(replace(*paths))

    source.write_text("new text\n", encoding="utf8")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(source, corpus.folder)
    with pytest.raises(CorpusError, match="a process was killed while it replaced the files"):
        PreparedCorpus(corpus.folder)
    assert list(prepare(source, corpus.folder)) == [["new", "text"]]


def test_folders_with_other_files_are_refused(source: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds text\.txt, but no meta\.json"):
        prepare(source, source.parent)


# Damage


@pytest.mark.parametrize("name", ["sentences.txt", "offsets.npy", "lengths.npy", "meta.json"])
def test_damaged_files(name: str, corpus: PreparedCorpus) -> None:
    path = corpus.folder / name
    contents = [b"", path.read_bytes()[:-3], b"\x93NUMPY\x01\0garbage", None]
    if name == "meta.json":
        meta = json.loads(path.read_text(encoding="utf8"))
        changes: list[dict[str, object]] = [{"report": {}}, {"sources": [[1, 2]]}, {"version": 2}]
        contents += [json.dumps(meta | change).encode() for change in changes]
    for content in contents:
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CorpusError, match=r"damaged|no prepared corpus"):
            PreparedCorpus(corpus.folder)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        # lengths are int32 above 0, and sum to the 9 words of meta.json
        *(("lengths", np.array(lengths, np.int32)) for lengths in ([3, 2, 5], [9, 1, -1], [9, 0, 0])),
        *(("lengths", values) for values in (np.zeros(3, np.int64), np.array([None] * 3))),
        *(("offsets", np.array(offsets)) for offsets in ([0, 11, 6, 21], [-9, 6, 11, 21], [0, 6, 2**62, 21])),
    ],
)
def test_numbers_that_cannot_be(name: str, values: np.ndarray, corpus: PreparedCorpus) -> None:
    np.save(corpus.folder / f"{name}.npy", values)
    with pytest.raises(CorpusError, match="damaged"):
        list(PreparedCorpus(corpus.folder))


@pytest.mark.parametrize(("place", "byte"), [(1, b"x"), (7, b"\xff"), (11, b" ")])
def test_changed_words(place: int, byte: bytes, corpus: PreparedCorpus) -> None:
    path = corpus.folder / "sentences.txt"
    content = path.read_bytes()
    path.write_bytes(content[:place] + byte + content[place + 1 :])
    opened = PreparedCorpus(corpus.folder)
    for use, message in ((list, "damaged"), (PreparedCorpus.verify, "SHA-256")):
        with pytest.raises(CorpusError, match=message):
            use(opened)


# Several processes, and memory


def test_other_processes(corpus: PreparedCorpus, source: Path) -> None:
    pickled = pickle.dumps(corpus.part(1, 3))
    assert len(pickled) < 1_000
    assert list(pickle.loads(pickled)) == SENTENCES[1:]
    source.write_text("x\ny\nz\n", encoding="utf8")
    prepare(source, corpus.folder)
    with pytest.raises(CorpusError, match="another corpus"):
        pickle.loads(pickled)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    peaks = []
    for n in (2_000, 30_000):
        path = tmp_path / f"{n}.txt.xz"
        path.write_bytes(lzma.compress(b"some words of a sentence\n" * n))
        tracemalloc.start()
        try:
            corpus = prepare(path, tmp_path / f"prepared-{n}")
            assert sum(len(sentence) for sentence in corpus) == corpus.n_tokens == 5 * n
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    # the buffers of the two arrays, 64 Ki numbers each, and those of files
    assert peaks[1] < peaks[0] + 1_000_000
