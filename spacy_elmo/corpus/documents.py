"""What a corpus consists of: items as they are read, and the documents and sentences that they hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["text", "json", "conllu", "doc"]
Offsets = list[tuple[int, int]]


class Item(NamedTuple):
    """A part of a file that is read without a look at what it says, so that one process can read for many.

    source: path of the file, or "standard input".
    line: number of its first line, from 1; in a .spacy file that of the doc.
    kind: of the item.
    data: the bytes of a line, or of all lines of a sentence in CoNLL-U; the JSON of a doc in a .spacy file. None: a
        line that was too long.
    """

    source: str
    line: int
    kind: Kind
    data: bytes | None


@dataclass
class Sentence:
    """What the biLM reads at once.

    tokens: its words.
    offsets: of each word the place of its first character, and that after its last one, in the text of its document;
        None if there is no text.
    """

    tokens: list[str]
    offsets: Offsets | None = None


@dataclass
class Document:
    """The sentences of an item.

    source, line: as of the item.
    sentences: at least one. None is empty.
    text: its text; None if the file had words only.
    id: what the file calls it; None if it has no name.
    meta: all other fields of its JSON object, as JSON; None if there are none.
    """

    source: str
    line: int
    sentences: list[Sentence]
    text: str | None = None
    id: str | None = None
    meta: str | None = None

    @property
    def tokens(self) -> int:
        """Number of words."""
        return sum(len(sentence.tokens) for sentence in self.sentences)


class Shard(NamedTuple):
    """Consecutive items of a corpus, whose vectors are in one file.

    number: from 0.
    items: in their order.
    """

    number: int
    items: list[Item]

    @property
    def bytes(self) -> int:
        """Number of bytes of the items."""
        return sum(size_of(item) for item in self.items)

    def digest(self) -> str:
        """Return a SHA-256 of where the items come from and of what they say."""
        digest = hashlib.sha256()
        for item in self.items:
            data = b"" if item.data is None else item.data
            digest.update(f"{item.source}\0{item.line}\0{item.kind}\0{len(data)}\0".encode("utf8", "surrogateescape"))
            digest.update(data)
        return digest.hexdigest()


def size_of(item: Item) -> int:
    """Return the number of bytes of an item, 0 for a line that was too long."""
    return 0 if item.data is None else len(item.data)
