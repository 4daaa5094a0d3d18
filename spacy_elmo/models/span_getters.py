"""What the biLM reads as one sentence."""

from collections.abc import Iterable
from functools import partial

from spacy.tokens import Doc, Span

from ..errors import Errors, SettingsError
from .types import SpanGetter


def windows(doc: Doc, start: int, end: int, window: int, overlap: int) -> list[Span]:
    """Windows of `window` tokens over doc[start:end], neighbours sharing `overlap` tokens."""
    spans = []
    while True:
        stop = min(start + window, end)
        spans.append(doc[start:stop])
        if stop == end:
            return spans
        start = stop - overlap


def _check(window: int, overlap: int) -> None:
    if not isinstance(window, int) or not isinstance(overlap, int) or window < 1 or not 0 <= overlap < window:
        raise SettingsError(Errors.WINDOW.format(window=window, overlap=overlap))


def build_windows(window: int = 250, overlap: int = 50) -> SpanGetter:
    """spacy-elmo.windows.v1: docs in overlapping windows, whatever their sentences.

    A token in two windows gets its vector from the one where it stands further from an edge, so that it sees
    about overlap / 2 tokens on each side at least (fewer at the doc's own ends).
    """
    _check(window, overlap)
    return partial(_get_windows, window=window, overlap=overlap)


def build_sentences(window: int = 250, overlap: int = 50, longest_sentence: int = 1000) -> SpanGetter:
    """spacy-elmo.sentences.v1: doc.sents where they are set; docs without, and sentences of more than
    `longest_sentence` tokens, in windows (see build_windows).
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
    return [windows(doc, 0, len(doc), window, overlap) if len(doc) else [] for doc in docs]


def _get_sentences(docs: Iterable[Doc], *, window: int, overlap: int, longest_sentence: int) -> list[list[Span]]:
    result = []
    for doc in docs:
        if not doc.has_annotation("SENT_START"):
            result.extend(_get_windows([doc], window=window, overlap=overlap))
            continue
        spans: list[Span] = []
        for sentence in doc.sents:
            if len(sentence) <= longest_sentence:
                spans.append(sentence)
            else:
                spans.extend(windows(doc, sentence.start, sentence.end, window, overlap))
        result.append(spans)
    return result


def _get_whole_doc(docs: Iterable[Doc]) -> list[list[Span]]:
    return [[doc[:]] if len(doc) else [] for doc in docs]
