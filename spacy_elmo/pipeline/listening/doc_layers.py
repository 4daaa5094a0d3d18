"""The layers of docs as listeners read them: those stored on the docs, or those held for the listeners alone."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from spacy.tokens import Doc
from thinc.types import Floats3d

from ...errors import Errors, NotEmbeddedError
from ..attributes import layers_of
from ..following import follow
from ..storage import Block, has_values, is_not_stored, tokens_of


class _Held:
    """The layers of one doc, and the listeners that have not read them yet."""

    def __init__(self, block: Block, readers: Iterable[Hashable]) -> None:
        self.block, self.readers = block, set(readers)


# The held layers of each doc by attr. They are not in doc.user_data, so that nobody writes them; they go with the doc.
_HELD: WeakKeyDictionary[Doc, dict[str, _Held]] = WeakKeyDictionary()


@dataclass(frozen=True)
class DocLayers:
    """Reads the layers of docs.

    attr: the setting `attr` of an elmo pipe.
    """

    attr: str

    def hold(self, doc: Doc, layers: Floats3d, readers: Iterable[Hashable]) -> None:
        """Hold layers until each reader has released them, or the doc is gone. Without readers nothing is held.

        doc: the doc. Layers that were held before are dropped.
        layers: *Shape:* (layers, tokens, width).
        readers: the ids of all listeners.
        """
        self.drop(doc)
        held = _Held(Block(0, tokens_of(doc), layers, None, None), readers)
        if held.readers:
            _HELD.setdefault(doc, {})[self.attr] = held

    def drop(self, doc: Doc) -> None:
        """Drop layers that are held, if any. doc: any doc."""
        held = _HELD.get(doc, {})
        held.pop(self.attr, None)
        if not held:
            _HELD.pop(doc, None)

    def release(self, doc: Doc, reader: Hashable) -> None:
        """Note that a reader needs the layers no more. After the last one they are dropped.

        doc: any doc.
        reader: the id of a listener.
        """
        held = _HELD.get(doc, {}).get(self.attr)
        if held is not None:
            held.readers.discard(reader)
            if not held.readers:
                self.drop(doc)

    def has(self, doc: Doc) -> bool:
        """Whether there is something to read, if only a mix. doc: any doc."""
        return self.attr in _HELD.get(doc, {}) or has_values(doc, attr=self.attr)

    def were_dropped(self, doc: Doc) -> bool:
        """Whether a pipe has run on the doc but stored nothing. doc: a doc that `has` nothing."""
        return is_not_stored(doc, self.attr)

    def read(self, doc: Doc) -> Floats3d:
        """Return the layers of a doc that `has` something, *Shape:* (layers, tokens, width).

        doc: the doc. If it was retokenised, its tokens have the layers of their characters.

        Raises NotEmbeddedError if only a mix is stored, or a token has no layers.
        """
        held = _HELD.get(doc, {}).get(self.attr)
        if held is None:
            return layers_of(doc, attr=self.attr)
        if np.array_equal(held.block.tokens, tokens_of(doc)):
            layers: Floats3d = held.block.layers
            return layers

        def values_of(block: Block, rows: Any) -> Any:
            return block.layers[:, rows]

        followed: Floats3d | None = follow(doc, [held.block], values_of)
        if followed is None:
            raise NotEmbeddedError(Errors.OTHER_TOKENS.format(attr=self.attr))
        return followed
