import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.errors import SettingsError
from spacy_elmo.models.span_getters import build_sentences, build_whole_doc, build_windows

VOCAB = spacy.blank("en").vocab


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


def test_whole_doc() -> None:
    assert [bounds(spans) for spans in build_whole_doc()([doc_of(2000), doc_of(0)])] == [[(0, 2000)], []]


@pytest.mark.parametrize(("window", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_windows_that_never_end_are_refused(window: int, overlap: int) -> None:
    with pytest.raises(SettingsError, match=f"window is {window} and overlap is {overlap}"):
        build_windows(window=window, overlap=overlap)


def test_longest_sentence_below_window_is_refused() -> None:
    with pytest.raises(SettingsError, match="longest_sentence is 10"):
        build_sentences(window=20, overlap=5, longest_sentence=10)
