"""Span getters: functions that split docs into the spans that the biLM reads as sentences."""

from collections.abc import Iterable, Sequence
from functools import partial

from spacy.tokens import Doc, Span

from ..errors import SettingsError, check_whole, shown
from .types import SpanGetter, lines_of


def build_windows(window: int = 250, overlap: int = 50) -> SpanGetter:
    """Build spacy-elmo.windows.v1: it splits each doc into overlapping windows, and ignores its sentences.

    The vectors of a word in two windows come from the window in which the word is farther from an edge. So the biLM
    reads at least overlap // 2 words on each side of it, except near the ends of the doc.

    window: number of words in each window. Whitespace tokens do not count.
    overlap: number of words that neighbouring windows share, from 0 to window - 1.
    """
    _check(window, overlap, window)
    return partial(_get_windows, window=window, overlap=overlap)


def build_sentences(window: int = 250, overlap: int = 50, longest_sentence: int = 1000) -> SpanGetter:
    """Build spacy-elmo.sentences.v1: it returns the sentences of each doc.

    Docs without sentence boundaries, and sentences of more than longest_sentence words, are split into windows (see
    `build_windows`). longest_sentence must not be below window.
    """
    _check(window, overlap, longest_sentence)
    return partial(_get_sentences, window=window, overlap=overlap, longest_sentence=longest_sentence)


def build_span_groups(
    keys: Sequence[str], window: int = 250, overlap: int = 50, longest_sentence: int = 1000
) -> SpanGetter:
    """Build spacy-elmo.span_groups.v1: it returns the spans of a doc under these keys, and the runs of tokens between.

    A doc without any of these span groups is divided at its first line breaks, into one part for each key. Spans and
    runs of more than longest_sentence words are split into windows (see `build_windows`).

    keys: keys of `doc.spans`, such as `["premise", "hypothesis"]`.
    """
    _check(window, overlap, longest_sentence)
    if not isinstance(keys, (list, tuple)) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise SettingsError(
            f'keys is {shown(keys)}. Expected a list of keys of doc.spans, such as ["premise", "hypothesis"].'
        )
    return partial(
        _get_span_groups, keys=tuple(keys), window=window, overlap=overlap, longest_sentence=longest_sentence
    )


def build_whole_doc() -> SpanGetter:
    """Build spacy-elmo.whole_doc.v1: it returns each doc as one span, of any length."""
    return _get_whole_doc


# What the builders return is a partial of a function of the module, so that pipelines can be pickled.


def _check(window: int, overlap: int, longest_sentence: int) -> None:
    check_whole(window=window, longest_sentence=longest_sentence)
    check_whole(0, overlap=overlap)
    if overlap >= window:
        raise SettingsError(f"window is {window} and overlap is {overlap}. Expected overlap < window.")
    if longest_sentence < window:
        raise SettingsError(f"longest_sentence is {longest_sentence}. Expected window, {window}, or more.")


def _divided(spans: Iterable[Span], window: int, overlap: int, longest: int) -> list[Span]:
    """Return the spans, and overlapping windows in place of those of more than `longest` words."""
    result = []
    for span in spans:
        words = [token.i for token in span if not token.is_space] if len(span) > longest else []
        if len(words) <= longest:
            result.append(span)
            continue
        for first in range(0, len(words) - overlap, window - overlap):  # a later one would have no word of its own
            part = words[first : first + window]
            result.append(span.doc[part[0] : part[-1] + 1])
    return result


def _get_windows(docs: Iterable[Doc], *, window: int, overlap: int) -> list[list[Span]]:
    return [_divided([doc[:]] if len(doc) else [], window, overlap, window) for doc in docs]


def _get_sentences(docs: Iterable[Doc], *, window: int, overlap: int, longest_sentence: int) -> list[list[Span]]:
    return [
        _divided(doc.sents, window, overlap, longest_sentence)
        if doc.has_annotation("SENT_START")
        else _divided([doc[:]] if len(doc) else [], window, overlap, window)
        for doc in docs
    ]


def _get_span_groups(
    docs: Iterable[Doc], *, keys: Sequence[str], window: int, overlap: int, longest_sentence: int
) -> list[list[Span]]:
    result = []
    for doc in docs:
        if any(key in doc.spans for key in keys):
            spans = [span for key in keys if key in doc.spans for span in doc.spans[key] if len(span)]
            spans.extend(_between(doc, spans))
        else:
            spans = [part for part in lines_of(doc, len(keys)) if len(part)]
        result.append(_divided(spans, window, overlap, longest_sentence))
    return result


def _between(doc: Doc, spans: Iterable[Span]) -> list[Span]:
    """Return the runs of tokens in none of the spans, without those of whitespace alone."""
    runs, read = [], 0
    for span in [*sorted(spans), doc[len(doc) :]]:
        run = doc[read : max(read, span.start)]
        if run.text.strip():
            runs.append(run)
        read = max(read, span.end)
    return runs


def _get_whole_doc(docs: Iterable[Doc]) -> list[list[Span]]:
    return [[doc[:]] if len(doc) else [] for doc in docs]
