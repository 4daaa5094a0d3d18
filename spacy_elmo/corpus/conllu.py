"""Reads a sentence in CoNLL-U (https://universaldependencies.org/format.html): its words, its text and its name."""

from __future__ import annotations

import re

from ..formats.text.lines import Unusable, checked_words
from .documents import Offsets, Sentence

_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")
_ID = re.compile(r"(\d{1,9})(?:([-.])(\d{1,9}))?")


def conllu_sentence(block: str) -> tuple[list[Sentence], str | None, str | None]:
    """Return the sentence of a block of lines, its text, and its sent_id; None for what the file does not have.

    The words are the syntactic words: "du" in French is "de" and "le". Both have the place of "du" in the text.

    block: the lines of one sentence.

    Raises Unusable if a line is not CoNLL-U.
    """
    comments: dict[str, str] = {}
    words: list[str] = []
    forms: list[tuple[str, int]] = []  # what stands in the text, and how many words it is
    inside = 0  # number of the last word of a form that is several words
    for line in block.rstrip("\r\n").split("\n"):  # splitlines() would divide a text at other separators, too
        if line.startswith("#"):
            if match := _COMMENT.fullmatch(line.strip()):
                comments[match[1]] = match[2]
            continue
        columns = line.rstrip("\r").split("\t")
        number = _ID.fullmatch(columns[0])
        if number is None or len(columns) < 2:
            raise Unusable("no line of CoNLL-U, whose first columns are a number and a word")
        if number[2] == ".":  # a word that is not in the text
            continue
        if number[2] == "-":
            inside = int(number[3])
            forms.append((columns[1], inside - int(number[1]) + 1))
            continue
        words.append("_".join(columns[1].split()))  # some treebanks have words with blanks
        if int(number[1]) > inside:
            forms.append((columns[1], 1))
    text = comments.get("text")
    offsets = None if text is None else _offsets(forms, text, len(words))
    return [Sentence(checked_words(words), offsets)], text, comments.get("sent_id")


def _offsets(forms: list[tuple[str, int]], text: str, n_words: int) -> Offsets | None:
    """Return the place of each word in a text; None if a form is not in it, or they are not n_words."""
    offsets: Offsets = []
    place = 0
    for form, n in forms:
        start = text.find(form, place)
        if start < 0 or len(offsets) + n > n_words:  # a short line may state a range of a billion words
            return None
        place = start + len(form)
        offsets += [(start, place)] * n
    return offsets if len(offsets) == n_words else None
