"""What spaCy's `replace_listeners` asks an elmo pipe: its biLM in the place of a component's listeners."""

import copy
from collections.abc import Iterator
from typing import Any

from thinc.api import Model

from .listener import NAME
from .shim import bilm_shims
from .types import BiLMModel

LISTENER = "spacy-elmo.Listener.v1"


class Replacement:
    """spaCy hands over a component's whole tok2vec block, and sets what it gets back at the path that its caller named.

    That may be the path of the block or that of a listener in it; which of them is not told. So the block is
    returned; if it then stands in itself, the path was that of a listener, and the biLM's block belongs there.

    pipe: name of the elmo pipe.
    """

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe
        self._returned: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []

    def config(self, bilm: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
        """The tok2vec block with the biLM's block in the place of each listener to the pipe.

        spaCy calls it once for each listener, then `model` as often.
        """
        result: dict[str, Any] = self._replaced(tok2vec, bilm)
        width = next((block["width"] for block in _blocks(tok2vec) if self._listens(block)), None)
        self._returned.append((tok2vec, result, copy.deepcopy(bilm) | {"width": width}))
        return result

    def model(self, bilm: BiLMModel, listener: BiLMModel, pipe: Any) -> BiLMModel:
        """The copy of the pipe's biLM that takes a listener's place; trained on only where its own config says so."""
        for tok2vec, returned, block in self._returned:
            for parent in _blocks(tok2vec):
                for name, value in parent.items():
                    if value is returned:
                        parent[name] = block
        self._returned.clear()
        settings = bilm.attrs.get("settings")
        if settings is not None:
            settings.tuned, settings.cache = False, None
        for shim in bilm_shims(bilm):
            shim.learn_rate_factor = 1.0
        return bilm

    def _listens(self, block: dict[str, Any]) -> bool:
        return block.get("@architectures") == LISTENER and block.get("upstream", "*") in ("*", self.pipe)

    def _replaced(self, block: Any, bilm: dict[str, Any]) -> Any:
        if not isinstance(block, dict):
            return block
        if self._listens(block):
            # with its width, so that the network has the same shape before any file is read
            return copy.deepcopy(bilm) | {"width": block["width"]}
        return {name: self._replaced(value, bilm) for name, value in block.items()}


def _blocks(block: Any) -> Iterator[dict[str, Any]]:
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
