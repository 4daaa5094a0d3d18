"""Answers to spaCy's `nlp.replace_listeners`: a component's listeners are replaced by a copy of the pipe's biLM."""

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
    """The two functions that spaCy calls to replace a component's listeners to one elmo pipe.

    For each listener path that the user named, spaCy calls `config` with the component's complete tok2vec block, and
    sets the result at that path in the component's config. Then it calls `model` for each listener of the model.

    The path may be that of the tok2vec block or that of a listener inside it, and spaCy does not say which. So
    `config` always returns the tok2vec block. If this block afterwards contains its own result, then the path was that
    of a listener, and `model` puts the biLM's block there instead.

    pipe: name of the elmo pipe.
    """

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe
        self._tok2vec: Block = {}  # the block in the component's config, which spaCy changes
        self._before: Block = {}  # a copy of that block before spaCy changed it
        self._places: list[tuple[Block, str]] = []  # present and former listeners: the block around each, its key there
        self._returned: list[tuple[Block, Block]] = []  # for each call of config: its result, and the biLM's block

    def config(self, bilm: Block, tok2vec: Block) -> Block:
        """Return the tok2vec block in which each listener to the pipe is replaced by the biLM's block.

        spaCy calls it once for each listener, and then calls `model` the same number of times.

        bilm: the config of the pipe's model.
        tok2vec: the tok2vec block of the component's config.
        """
        if tok2vec is not self._tok2vec and not self._is_returned(tok2vec):
            self._before, self._returned = copy.deepcopy(tok2vec), []
        # with the listener's width, so that the network knows its shape before any file is read
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
        """Prepare the copy of the pipe's biLM that replaces a listener, and complete the component's config.

        The copy is trained only if its own setting `trainable` says so.

        bilm: the copy of the pipe's model, which spaCy has made.
        listener: the listener that it replaces.
        pipe: the elmo pipe.

        Returns bilm. Raises SettingsError, and restores the config, if the paths that the user named are neither that
        of the tok2vec block nor those of all its listeners.
        """
        results = [
            (parent, name, block)
            for parent in _blocks(self._tok2vec)
            for name, value in parent.items()
            for result, block in self._returned
            if value is result
        ]
        # if the last path was that of the tok2vec block, the last result has replaced this block, and is complete
        inside = any(parent[name] is self._returned[-1][0] for parent, name, _ in results)
        for parent, name, block in results:
            parent[name] = copy.deepcopy(block)
        stray = [name for parent, name, _ in results if not any(parent is p and name == n for p, n in self._places)]
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
    """Yield a config block and all blocks inside it."""
    if isinstance(block, dict):
        yield block
        for value in list(block.values()):
            yield from _blocks(value)


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """Return all listeners of a model, at any depth.

    model: any Thinc model.
    """
    return [node for node in model.walk() if node.name == NAME]


def source_name(node: Model[Any, Any]) -> str:
    """Return what feeds a scalar mix: the name of the pipe that a listener asks for, or "biLM".

    node: the layer before the mix.
    """
    return node.attrs["upstream"].name if node.name == NAME else "biLM"
