"""Checks of the lines of a text, and of the words in them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..unpacking import LONGEST_LINE


class Unusable(Exception):
    """Raised for a line that can't be used, with the reason."""


class BadLine(NamedTuple):
    """A line that was left out.

    file: its path.
    line: its number, from 1; in a .spacy file the number of the doc.
    reason: why it can't be used.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.reason}"


def decode_line(line: bytes | None, number: int) -> str:
    """Return the text of a line, without a byte order mark.

    line: its bytes; None if it was too long to be read (see `lines_of`).
    number: of the line, from 1.

    Raises Unusable if the line is too long, is not UTF-8, or has a NUL character.
    """
    if line is None:
        raise Unusable(f"more than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 ({error.reason} at byte {error.start:,})") from error
    return _usable(text.removeprefix("\ufeff") if number == 1 else text)


def json_record(line: str) -> dict[str, Any]:
    """Return the object of a line of JSON. Raises Unusable if it has neither "text" nor "tokens", or is no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({error})") from error
    if not isinstance(record, dict) or not ("tokens" in record or "text" in record):
        raise Unusable('no JSON object with "text" or "tokens"')
    return record


def record_tokens(record: dict[str, Any]) -> list[str]:
    """Return the "tokens" of an object. Raises Unusable if they are no words."""
    words = record["tokens"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Unusable('"tokens" is no list of strings')
    return checked_words(words)


def record_text(record: dict[str, Any]) -> str:
    """Return the "text" of an object. Raises Unusable if it is no text that can be encoded."""
    text = record["text"]
    if not isinstance(text, str):
        raise Unusable('"text" is no string')
    return encodable(_usable(text))


def checked_words(words: list[str]) -> list[str]:
    """Return words that a file itself lists. Raises Unusable if one is empty, or has characters that no word has."""
    for word in words:
        if word.split() != [word]:
            raise Unusable("an empty token, or one with blanks")
    encodable(_usable(" ".join(words)))
    return words


def _usable(text: str) -> str:
    if "\0" in text:
        raise Unusable("a NUL character")
    return text


def encodable(text: str) -> str:
    """Return a text. Raises Unusable if it can't be written as UTF-8."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise Unusable("half a surrogate pair, which is no character") from error
    return text
