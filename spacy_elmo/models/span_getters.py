"""What the biLM reads as one sentence."""

from collections.abc import Iterable
from functools import partial

from spacy.tokens import Doc, Span

from ..errors import Errors, SettingsError
from .types import SpanGetter


def windows(doc: Doc, start: int, end: int, window: int, overlap: int) -> list[Span]:
    """Windows of `window` words over doc[start:end], neighbours sharing `overlap` words; whitespace does not count."""
    words = [i for i in range(start, end) if not doc[i].is_space]
    spans, begin = [], 0
    while begin < len(words):
        stop = min(begin + window, len(words))
        spans.append(doc[words[begin] : words[stop - 1] + 1])
        if stop == len(words):
            break
        begin = stop - overlap
    return spans


def _is_longer(sentence: Span, words: int) -> bool:
    """Whether it has more words than that; whitespace does not count."""
    return len(sentence) > words and sum(not token.is_space for token in sentence) > words


def _check(window: int, overlap: int) -> None:
    if not isinstance(window, int) or not isinstance(overlap, int) or window < 1 or not 0 <= overlap < window:
        raise SettingsError(Errors.WINDOW.format(window=window, overlap=overlap))


def build_windows(window: int = 250, overlap: int = 50) -> SpanGetter:
    """spacy-elmo.windows.v1: docs in overlapping windows, whatever their sentences.

    window, overlap: in words; whitespace does not count.
    A word in two windows gets its vector from the one where it stands further from an edge, so that it sees
    overlap // 2 words on each side at least (fewer at the doc's own ends).
    """
    _check(window, overlap)
    return partial(_get_windows, window=window, overlap=overlap)


def build_sentences(window: int = 250, overlap: int = 50, longest_sentence: int = 1000) -> SpanGetter:
    """spacy-elmo.sentences.v1: doc.sents where they are set; docs without, and sentences of more than
    `longest_sentence` words, in windows (see build_windows).
    """
    _check(window, overlap)
    if not isinstance(longest_sentence, int) or longest_sentence < window:
        raise SettingsError(Errors.LONGEST_SENTENCE.format(got=longest_sentence, window=window))
    return partial(_get_sentences, window=window, overlap=overlap, longest_sentence=longest_sentence)


def build_whole_doc() -> SpanGetter:
    """spacy-elmo.whole_doc.v1: each doc is read as one sentence, however long."""
    return _get_whole_doc


# module-level functions, so that pipelines pickle


def _get_windows(docs: Iterable[Doc], *, window: int, overlap: int) -> list[list[Span]]:
    return [windows(doc, 0, len(doc), window, overlap) for doc in docs]


def _get_sentences(docs: Iterable[Doc], *, window: int, overlap: int, longest_sentence: int) -> list[list[Span]]:
    result = []
    for doc in docs:
        if not doc.has_annotation("SENT_START"):
            result.extend(_get_windows([doc], window=window, overlap=overlap))
            continue
        spans: list[Span] = []
        for sentence in doc.sents:
            if _is_longer(sentence, longest_sentence):
                spans.extend(windows(doc, sentence.start, sentence.end, window, overlap))
            else:
                spans.append(sentence)
        result.append(spans)
    return result


def _get_whole_doc(docs: Iterable[Doc]) -> list[list[Span]]:
    return [[doc[:]] if len(doc) else [] for doc in docs]
