"""Vocabularies: building, look-up, writing, reading, and the errors of damaged files."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import CorpusError, ElmoError
from spacy_elmo.pretraining.vocabulary import SPECIAL, Vocabulary, count_words, least_count

SENTENCES = [["b", "a", "c"], ["a", "<UNK>"], ["d", "c", "a", "<S>"]]


def test_the_order_is_by_frequency_then_by_first_occurrence() -> None:
    vocabulary = Vocabulary.from_counts(count_words(SENTENCES))
    assert vocabulary.words == [*SPECIAL, "a", "c", "b", "d"]
    assert vocabulary.counts is not None
    assert vocabulary.counts.dtype == np.int64
    # three sentences; <UNK> and <S> in the text are unknown words
    assert vocabulary.counts.tolist() == [3, 3, 2, 3, 2, 1, 1]
    assert len(vocabulary) == 7
    assert vocabulary.coverage == 7 / 9


@pytest.mark.parametrize(
    ("size", "min_count", "words", "unknown"),
    [
        (5, 1, ["a", "c"], 4),
        (4, 1, ["a"], 6),
        (3, 1, [], 9),
        (100, 1, ["a", "c", "b", "d"], 2),
        (None, 2, ["a", "c"], 4),
        (None, 3, ["a"], 6),
        (4, 2, ["a"], 6),
    ],
)
def test_size_and_minimum_count(size: int | None, min_count: int, words: list[str], unknown: int) -> None:
    vocabulary = Vocabulary.from_counts(count_words(SENTENCES), size, min_count)
    assert vocabulary.words == [*SPECIAL, *words]
    assert vocabulary.counts is not None
    assert vocabulary.counts[2] == unknown
    assert vocabulary.coverage == pytest.approx(1 - unknown / 9)


def test_counts_that_no_word_has() -> None:
    for sentences, least in ((SENTENCES, 4), ([], 1), ([["<S>"]], 1)):
        with pytest.raises(CorpusError, match=f"occurs {least} times"):
            Vocabulary.from_counts(count_words(sentences), None, least)


def test_ids() -> None:
    vocabulary = Vocabulary.from_counts(count_words(SENTENCES), 5)
    ids = vocabulary.ids(["a", "c", "b", "nothing", "<S>", "</S>", "<UNK>", ""])
    assert ids.dtype == np.int32
    assert ids.tolist() == [3, 4, 2, 2, 2, 2, 2, 2]
    assert vocabulary.ids([]).shape == (0,)


def test_the_unigram_model_by_hand() -> None:
    log_p = Vocabulary.from_counts(count_words(SENTENCES), 5).log_unigram()
    assert log_p is not None
    # <S> and </S>: 3 sentences; <UNK>: 4 + 1; a: 3 + 1; c: 2 + 1. Each direction predicts only one of the first two.
    expected = [math.log(n / 15) for n in (3, 3, 5, 4, 3)]
    np.testing.assert_allclose(log_p, expected, rtol=1e-12)
    assert np.exp(log_p[1:]).sum() == pytest.approx(1)


# Files


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(words=st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("\r\n\t\u2028\ufeff "), min_size=1)))
def test_any_words_are_read_as_they_were_written(words: list[str], tmp_path: Path) -> None:
    """A word that no line can hold is an unknown one."""
    vocabulary = Vocabulary.from_counts(count_words([["a", *words]]))
    vocabulary.write(tmp_path / "vocabulary.txt")
    read = Vocabulary.read(tmp_path / "vocabulary.txt")
    assert read.words == vocabulary.words
    assert read.counts is not None
    assert read.counts.sum() == 2 + 1 + len(words)
    held = {word for word in words if word.isprintable() and word.strip() == word}
    assert {"a", *held} <= {*read.words}


def test_files(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts(count_words([["é", "中", "é", "x\u200b"]]))
    vocabulary.write(tmp_path / "vocabulary.txt")
    assert (tmp_path / "vocabulary.txt").read_bytes() == "<S>\n</S>\n<UNK>\né\n中\nx\u200b\n".encode()
    counts = np.load(tmp_path / "vocabulary.counts.npy", allow_pickle=False)
    assert (counts.dtype, counts.tolist()) == (np.int64, [1, 1, 0, 2, 1, 1])
    read = Vocabulary.read(tmp_path / "vocabulary.txt")
    assert read.words == vocabulary.words
    np.testing.assert_array_equal(read.counts, counts)  # type: ignore[arg-type]
    # a vocabulary without counts replaces one with counts
    Vocabulary([*SPECIAL, "a"]).write(tmp_path / "vocabulary.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["vocabulary.txt"]
    assert Vocabulary.read(tmp_path / "vocabulary.txt").counts is None


@pytest.mark.parametrize(("begin", "line_end", "end"), [("", "\r\n", "\r\n"), ("", "\n", ""), ("\ufeff", "\n", "\n")])
def test_other_ways_to_write_lines(begin: str, line_end: str, end: str, tmp_path: Path) -> None:
    content = begin + line_end.join([*SPECIAL, "a"]) + end
    (tmp_path / "v.txt").write_bytes(content.encode("utf8"))
    assert Vocabulary.read(tmp_path / "v.txt").words == [*SPECIAL, "a"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "line 1: '', not <S>. Expected one word a line"),
        (b"<S>\n</S>\n", "line 3: '', not <UNK>"),
        (b"the\n", "line 1: 'the', not <S>"),
        (b"<S>\n<UNK>\n</S>\n", "line 2: '<UNK>', not </S>"),
        (b"<S>\n</S>\n<UNK>\na\nb\na\n", "line 6: 'a' comes twice, in line 4 as well"),
        (b"<S>\n</S>\n<UNK>\na\n<S>\n", "line 5: '<S>' comes twice, in line 1 as well"),
        (b"<S>\n</S>\n<UNK>\n\na\n", "line 4: '' is empty"),
        (b"<S>\n</S>\n<UNK>\na\n\n", "line 5: '' is empty"),
        (b"<S>\n</S>\n<UNK>\na \n", "line 4: 'a ' is empty, or begins or ends with a blank"),
        (b"<S>\n</S>\n<UNK>\n\xff\n", "line 4: not UTF-8"),
        (b"<S>\n</S>\n<UNK>\n" + b"x" * (1 << 25), "line 4: more than 16,777,216 bytes"),
        (bytes(range(256)) * 9, "line 1"),
    ],
)
def test_bad_files(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        Vocabulary.read(path)
    assert f"{path}: {problem}" in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(CorpusError, match="Expected a vocabulary"):
            Vocabulary.read(path)
    with pytest.raises(ElmoError, match="folder"):
        Vocabulary(SPECIAL).write(tmp_path / "nothing" / "v.txt")


@pytest.mark.parametrize(
    "counts",
    [np.zeros(3, np.int64), np.zeros(4), np.zeros((4, 1), np.int64), np.array([1, 1, 0, -1]), np.array([None] * 4)],
)
def test_counts_of_other_words(counts: np.ndarray, tmp_path: Path) -> None:
    Vocabulary([*SPECIAL, "a"]).write(tmp_path / "v.txt")
    np.save(tmp_path / "v.counts.npy", counts)
    with pytest.raises(CorpusError, match="Expected 4 numbers of int64"):
        Vocabulary.read(tmp_path / "v.txt")
    (tmp_path / "v.counts.npy").write_bytes(b"garbage")
    with pytest.raises(CorpusError, match=r"v\.counts\.npy: not the counts of these words"):
        Vocabulary.read(tmp_path / "v.txt")


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("a a b b c", 6, 2),  # all three words fit
        ("a a b b c", 5, 1),  # <UNK> is learned from one of them
        ("a a b c", 9, 2),  # half of the text
        ("a a b c d", 9, 1),  # too much would be left out
        ("a b c", 9, 1),
    ],
)
def test_unknown_words_are_learned(text: str, size: int, expected: int) -> None:
    assert least_count(count_words([text.split()]), size) == expected
