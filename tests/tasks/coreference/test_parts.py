"""Parts of a doc, its spans, and which of them are kept."""

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_elmo.tasks.coreference.model import Part, best_spans, sentence_lengths, spans_of, split_into_parts

VOCAB = spacy.blank("en").vocab


def doc_of(lengths: list[int]) -> Doc:
    starts: list[bool | int | None] = [not place for length in lengths for place in range(length)]
    return Doc(VOCAB, words=["a"] * sum(lengths), sent_starts=starts)


def part_of(lengths: list[int], space: tuple[int, ...] = ()) -> Part:
    tokens = sum(lengths)
    return Part(0, lengths, np.zeros(tokens, dtype=int), np.isin(np.arange(tokens), space).astype(int))


def test_parts_are_whole_sentences() -> None:
    parts = list(split_into_parts(doc_of([3, 4, 2, 9, 1]), 8))
    assert [(part.start, part.lengths, part.end) for part in parts] == [
        (0, [3, 4], 7),
        (7, [2], 9),
        (9, [9], 18),
        (18, [1], 19),
    ]
    assert [len(part.lower) for part in parts] == [7, 2, 9, 1]


def test_long_sentences_are_cut() -> None:
    assert sentence_lengths(doc_of([260, 3])) == [250, 10, 3]
    assert sentence_lengths(Doc(VOCAB, words=["a"] * 501)) == [250, 250, 1]
    assert list(split_into_parts(Doc(VOCAB), 8)) == []


def test_spans() -> None:
    found = {(start, start + width + 1) for width, start in spans_of(part_of([3, 2]), 2).tolist()}
    assert found == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 2), (1, 3), (3, 5)}
    found = {(start, start + width + 1) for width, start in spans_of(part_of([4], (1,)), 9).tolist()}
    assert found == {(0, 1), (2, 3), (3, 4), (0, 3), (2, 4), (0, 4)}


def test_spans_that_cross_a_better_one_are_not_kept() -> None:
    spans = np.array([[0, 2], [1, 3], [0, 4], [1, 2], [3, 5]])
    scores = np.array([0.5, 0.9, 0.4, 0.1, 0.3])
    assert best_spans(spans, scores, 5).tolist() == [2, 3, 1]  # [0, 4], [1, 2], [1, 3]
    assert best_spans(spans, scores, 2).tolist() == [2, 1]
    assert best_spans(spans, scores, 0).tolist() == []
