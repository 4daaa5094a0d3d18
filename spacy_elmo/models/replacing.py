"""What spaCy's `replace_listeners` asks an elmo pipe: its biLM in the place of a component's listeners."""

import copy
from typing import Any

from thinc.api import Model

from .listener import NAME
from .shim import bilm_shims
from .types import BiLMModel

LISTENER = "spacy-elmo.Listener.v1"


def replace_listener_cfg(bilm: dict[str, Any], tok2vec: dict[str, Any], *, pipe: str) -> dict[str, Any]:
    """The component's tok2vec block with the pipe's biLM block in the place of each listener to that pipe.

    spaCy calls it once for each listener and sets what it returns every time.
    """
    result = _replaced(tok2vec, bilm, pipe)
    assert isinstance(result, dict)
    return result


def _replaced(block: Any, bilm: dict[str, Any], pipe: str) -> Any:
    if not isinstance(block, dict):
        return block
    if block.get("@architectures") == LISTENER and block.get("upstream", "*") in ("*", pipe):
        # with its width, so that the network has the same shape before any file is read
        return copy.deepcopy(bilm) | {"width": block["width"]}
    return {name: _replaced(value, bilm, pipe) for name, value in block.items()}


def replace_listener(bilm: BiLMModel, listener: BiLMModel, pipe: Any) -> BiLMModel:
    """The copy of the pipe's biLM that takes a listener's place; trained on only where its own config says so."""
    settings = bilm.attrs.get("settings")
    if settings is not None:
        settings.tuned, settings.cache = False, None
    for shim in bilm_shims(bilm):
        shim.learn_rate_factor = 1.0
    return bilm


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """All listeners of a model, however deep."""
    return [node for node in model.walk() if node.name == NAME]


def source_name(node: Model[Any, Any]) -> str:
    """What feeds a mix: the pipe's name a listener asks for, or "biLM"."""
    return node.attrs["upstream"].name if node.name == NAME else "biLM"
