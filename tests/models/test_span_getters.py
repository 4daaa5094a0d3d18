import pickle
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.errors import SettingsError
from spacy_elmo.models.span_getters import build_sentences, build_span_groups, build_whole_doc, build_windows

VOCAB = spacy.blank("xx").vocab


def doc_of(n: int, starts: tuple[int, ...] | None = None) -> Doc:
    sent_starts = None if starts is None else [i in starts for i in range(n)]
    return Doc(VOCAB, words=["w"] * n, sent_starts=sent_starts)


def bounds(spans: list) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


def test_windows_share_tokens_and_reach_the_end() -> None:
    get_spans = build_windows(window=5, overlap=2)
    assert [bounds(spans) for spans in get_spans([doc_of(11), doc_of(5), doc_of(1), doc_of(0)])] == [
        [(0, 5), (3, 8), (6, 11)],
        [(0, 5)],
        [(0, 1)],
        [],
    ]


def test_sentences_where_they_are_set() -> None:
    get_spans = build_sentences(window=4, overlap=1, longest_sentence=6)
    with_sentences, without = doc_of(9, (0, 2)), doc_of(6)
    assert [bounds(spans) for spans in get_spans([with_sentences, without, doc_of(0)])] == [
        [(0, 2), (2, 6), (5, 9)],  # the second sentence has 7 tokens, more than 6
        [(0, 4), (3, 6)],
        [],
    ]


def test_whitespace_does_not_count() -> None:
    doc = Doc(VOCAB, words=["a", " ", "b", "c", "\n", "d", "e"], sent_starts=[True, *[False] * 6])
    assert [bounds(spans) for spans in build_windows(window=2, overlap=1)([doc])] == [[(0, 3), (2, 4), (3, 6), (5, 7)]]
    whole, divided = (build_sentences(window=2, overlap=0, longest_sentence=n) for n in (5, 4))
    assert [bounds(spans) for spans in whole([doc])] == [[(0, 7)]]
    assert [bounds(spans) for spans in divided([doc])] == [[(0, 3), (3, 6), (6, 7)]]


def test_whole_doc() -> None:
    assert [bounds(spans) for spans in build_whole_doc()([doc_of(2000), doc_of(0)])] == [[(0, 2000)], []]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": "100"}, "window is '100'. Expected a whole number"),
        ({"window": 0}, "window is 0"),
        ({"overlap": -1}, "overlap is -1"),
        ({"window": 5, "overlap": 5}, "window is 5 and overlap is 5"),  # windows would never end
        ({"window": 20, "overlap": 5, "longest_sentence": 10}, "longest_sentence is 10. Expected window, 20, or more"),
    ],
)
def test_numbers_that_can_not_be_used(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build_sentences(**settings)


def pair(words: str, **spans: tuple[int, int]) -> Doc:
    doc = Doc(VOCAB, words=[word for word in words.split(" ") if word])
    for key, (start, end) in spans.items():
        doc.spans[key] = [doc[start:end]]
    return doc


def test_span_groups_and_what_lies_between() -> None:
    get_spans = build_span_groups(keys=["premise", "hypothesis"], window=3, overlap=1, longest_sentence=4)
    docs = [
        pair("a b c d e f g", premise=(0, 3), hypothesis=(3, 7)),
        pair("a b c d e f g", premise=(4, 6), hypothesis=(1, 3)),  # in any order, with tokens in neither
        pair("a b c d", premise=(0, 3), hypothesis=(1, 4)),  # overlapping
        pair("a b c", other=(0, 2), hypothesis=(1, 2)),
        pair("a b c d e f", premise=(0, 1), hypothesis=(1, 6)),  # the second is too long
        pair("a \n b", premise=(0, 1), hypothesis=(2, 3)),  # nothing but whitespace lies between
        pair("a b", premise=(0, 0), hypothesis=(0, 2)),
        pair(""),
    ]
    docs[-1].spans["premise"] = []
    assert [bounds(spans) for spans in get_spans(docs)] == [
        [(0, 3), (3, 7)],
        [(4, 6), (1, 3), (0, 1), (3, 4), (6, 7)],
        [(0, 3), (1, 4)],
        [(1, 2), (0, 1), (2, 3)],
        [(0, 1), (1, 4), (3, 6)],
        [(0, 1), (2, 3)],
        [(0, 2)],
        [],
    ]


def test_lines_if_a_doc_has_none_of_the_span_groups() -> None:
    get_spans = build_span_groups(keys=["premise", "hypothesis"])
    docs = [
        pair("a b \n c d"),
        pair("a \n\n c \n d"),  # the last part has the other lines
        pair("a b c", other=(0, 1)),
        pair("\n a"),
        pair("\n"),
        Doc(VOCAB),
    ]
    assert [bounds(spans) for spans in get_spans(docs)] == [
        [(0, 2), (3, 5)],
        [(0, 1), (2, 5)],
        [(0, 3)],
        [(1, 2)],
        [],
        [],
    ]


def test_span_groups_can_be_pickled() -> None:
    get_spans = pickle.loads(pickle.dumps(build_span_groups(keys=["question", "context"])))
    assert [bounds(spans) for spans in get_spans([pair("a \n b")])] == [[(0, 1), (2, 3)]]


@pytest.mark.parametrize("keys", [[], "premise", ["premise", 1]])
def test_wrong_keys_are_refused(keys: object) -> None:
    with pytest.raises(SettingsError, match="Expected a list of keys"):
        build_span_groups(keys=keys)  # type: ignore[arg-type]
