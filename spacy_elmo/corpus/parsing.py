"""Turns items into documents: decodes them, splits them into sentences, and these into words."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from spacy.lang.lex_attrs import is_punct
from spacy.pipeline import Sentencizer

from ..errors import CorpusError, Errors, SettingsError, shown
from ..formats.text.lines import (
    Unusable,
    checked_words,
    decode_line,
    encodable,
    json_record,
    record_text,
    record_tokens,
)
from ..formats.text.splitting import Tokenizer, words_at_blanks
from .conllu import conllu_sentence
from .documents import Document, Item, Offsets, Sentence

_ENDS = frozenset(Sentencizer.default_punct_chars)


class Parser:
    """Makes documents of items.

    tokenizer: splits text into words; None: words are separated by blanks.
    docs: whether a text is a document of several sentences, which are found by their punctuation; false: a text is one
        sentence. Sentence boundaries in a .spacy file are used in both cases.
    """

    def __init__(self, tokenizer: Tokenizer | None, docs: bool) -> None:
        self._split: Callable[[str], tuple[list[str], Offsets]]
        self._split = words_at_blanks if tokenizer is None else tokenizer.words_and_offsets
        self._docs = docs

    def __call__(self, item: Item) -> Document | None:
        """Return the document of an item; None if it has no word. Raises Unusable if it can't be used."""
        text = decode_line(item.data, item.line)
        if not text.strip():
            return None
        # a file's name may have bytes that are not UTF-8, which Python holds as halves of surrogate pairs
        source = item.source.encode("utf8", "surrogateescape").decode("utf8", "backslashreplace")
        document = Document(source, item.line, [])
        if item.kind == "conllu":
            document.sentences, document.text, document.id = conllu_sentence(text)
        elif item.kind == "doc":
            self._read_doc(document, json.loads(text))
        elif item.kind == "json":
            self._read_record(document, json_record(text))
        else:
            document.text = text.rstrip("\r\n")
            document.sentences = self._sentences(*self._split(document.text))
        document.sentences = [sentence for sentence in document.sentences if sentence.tokens]
        return document if document.sentences else None

    def documents(self, items: Iterable[Item]) -> Iterator[Document]:
        """Yield the documents of items. Raises CorpusError if one can't be used."""
        for item in items:
            try:
                document = self(item)
            except Unusable as error:
                refuse(item, str(error))
            if document is not None:
                yield document

    def _read_record(self, document: Document, record: dict[str, Any]) -> None:
        if "tokens" in record:
            document.sentences = self._sentences(record_tokens(record), None)
        else:
            document.text = record_text(record)
            document.sentences = self._sentences(*self._split(document.text))
        if record.get("id") is not None:
            name = record["id"]
            document.id = encodable(name) if isinstance(name, str) else _json(name)
        read = ("id", "tokens") if "tokens" in record else ("id", "text")
        other = {name: value for name, value in record.items() if name not in read}
        document.meta = _json(other) if other else None

    def _read_doc(self, document: Document, record: dict[str, Any]) -> None:
        words, spaces, ends = record["words"], record["spaces"], record["ends"]
        offsets, place = [], 0
        for word, space in zip(words, spaces or [False] * len(words)):
            offsets.append((place, place + len(word)))
            place += len(word) + space
        if spaces is not None:
            document.text = "".join(word + " " * space for word, space in zip(words, spaces))
        shown = [i for i, word in enumerate(words) if word and not word.isspace()]
        checked_words([words[i] for i in shown])
        if ends is None and self._docs:
            kept = None if spaces is None else [offsets[i] for i in shown]
            document.sentences = self._sentences([words[i] for i in shown], kept)
            return
        start = 0
        for end in [len(words)] if ends is None else ends:
            stop = bisect_left(shown, end, start)
            inside = shown[start:stop]
            kept = None if spaces is None else [offsets[i] for i in inside]
            document.sentences.append(Sentence([words[i] for i in inside], kept))
            start = stop

    def _sentences(self, words: list[str], offsets: Offsets | None) -> list[Sentence]:
        if not self._docs or not words:
            return [Sentence(words, offsets)]
        starts = [*sentence_starts(words), len(words)]
        return [
            Sentence(words[start:end], None if offsets is None else offsets[start:end])
            for start, end in pairwise(starts)
        ]


def _json(value: Any) -> str:
    """Return what Python has read as JSON, as JSON. Raises Unusable if it has no such number, or is nested too deep."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise Unusable("not JSON (a number is NaN, infinite or too large)") from error
    except RecursionError as error:
        raise Unusable("nested too deep") from error


def check_tokenizer(lang: str | None, tokenized: bool | None) -> None:
    """Raise SettingsError if there is a language for a tokenizer, but words are separated by blanks."""
    if lang is not None and tokenized:
        raise SettingsError(Errors.CORPUS_TOKENIZER.format(got=shown(lang)))


def refuse(item: Item, reason: str) -> NoReturn:
    """Raise CorpusError for an item that can't be used. reason: why."""
    raise CorpusError(Errors.CORPUS_BAD_LINE.format(file=item.source, line=item.line, reason=reason))


def sentence_starts(words: Sequence[str]) -> list[int]:
    """Return the number of the first word of each sentence, as spaCy's sentencizer finds them.

    words: of a document, at least one. spaCy's own needs a Doc, and its Vocab would keep all words.
    """
    starts, ended = [0], False
    for i, word in enumerate(words):
        ends = word in _ENDS
        if ended and not ends and not is_punct(word):
            starts.append(i)
            ended = False
        ended = ended or ends
    return starts
