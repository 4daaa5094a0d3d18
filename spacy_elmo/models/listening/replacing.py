"""What spaCy's `replace_listeners` asks an elmo pipe: its biLM in the place of a component's listeners."""

import copy
from collections.abc import Iterator
from typing import Any

from thinc.api import Model

from ...errors import Errors, SettingsError
from ..bilm import leave_component
from ..types import BiLMModel
from .listener import NAME

LISTENER, BILM = "spacy-elmo.Listener.v1", "spacy-elmo.BiLM.v1"
Block = dict[str, Any]


class Replacement:
    """spaCy hands over a component's whole tok2vec block, and sets what it gets back at the path that its caller named.

    That may be the path of the block or that of a listener in it; which of them is not told. So the block is
    returned; if it then stands in itself, the path was that of a listener, and the biLM's block belongs there.

    pipe: name of the elmo pipe.
    """

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe
        self._tok2vec: Block = {}  # spaCy's own, which it changes
        self._before: Block = {}  # what it was at first
        self._places: list[tuple[Block, str]] = []  # where a listener stands or stood: the block around, the name in it
        self._returned: list[tuple[Block, Block]] = []  # and the biLM's block

    def config(self, bilm: Block, tok2vec: Block) -> Block:
        """The tok2vec block with the biLM's block in the place of each listener to the pipe.

        spaCy calls it once for each listener, then `model` as often.
        """
        if tok2vec is not self._tok2vec and not self._is_returned(tok2vec):
            self._before, self._returned = copy.deepcopy(tok2vec), []
        # with its width, so that the network has the same shape before any file is read
        width = next((block["width"] for block in _blocks(self._before) if self._listens(block)), None)
        block = copy.deepcopy(bilm) | ({"width": width} if bilm.get("@architectures") == BILM else {})
        self._tok2vec = tok2vec
        self._places = [
            (parent, name)
            for parent in _blocks(tok2vec)
            for name, value in parent.items()
            if self._listens(value) or self._is_returned(value) or value == block
        ]
        result = {name: self._replaced(value, block) for name, value in tok2vec.items()}
        self._returned.append((result, block))
        return result

    def model(self, bilm: BiLMModel, listener: BiLMModel, pipe: Any) -> BiLMModel:
        """The copy of the pipe's biLM that takes a listener's place; trained on only where its own config says so.

        Raises SettingsError, the config as it was, where paths were neither the block's nor those of all listeners.
        """
        found = [
            (parent, name, block)
            for parent in _blocks(self._tok2vec)
            for name, value in parent.items()
            for result, block in self._returned
            if value is result
        ]
        # where the last path was that of the block, what was returned is complete
        inside = any(parent[name] is self._returned[-1][0] for parent, name, _ in found)
        for parent, name, block in found:
            parent[name] = copy.deepcopy(block)
        stray = [name for parent, name, _ in found if not any(parent is p and name == n for p, n in self._places)]
        if stray or (inside and any(self._listens(block) for block in _blocks(self._tok2vec))):
            self._tok2vec.clear()
            self._tok2vec.update(self._before)
            self._returned = []
            raise SettingsError(Errors.REPLACE_PATHS.format(pipe=self.pipe))
        self._tok2vec, self._returned = {}, []
        leave_component(bilm)
        return bilm

    def _listens(self, block: Any) -> bool:
        if not isinstance(block, dict) or block.get("@architectures") != LISTENER:
            return False
        return block.get("upstream", "*") in ("*", self.pipe)

    def _is_returned(self, block: Any) -> bool:
        return any(block is result for result, _ in self._returned)

    def _replaced(self, block: Any, bilm: Block) -> Any:
        if not isinstance(block, dict):
            return block
        if self._listens(block) or self._is_returned(block):
            return copy.deepcopy(bilm)
        return {name: self._replaced(value, bilm) for name, value in block.items()}


def _blocks(block: Any) -> Iterator[Block]:
    """A config block and all in it."""
    if isinstance(block, dict):
        yield block
        for value in list(block.values()):
            yield from _blocks(value)


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """All listeners of a model, however deep."""
    return [node for node in model.walk() if node.name == NAME]


def source_name(node: Model[Any, Any]) -> str:
    """What feeds a mix: the pipe's name a listener asks for, or "biLM"."""
    return node.attrs["upstream"].name if node.name == NAME else "biLM"
