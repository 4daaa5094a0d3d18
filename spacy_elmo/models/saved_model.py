"""Loads the model of a saved elmo pipe: the saved bytes are checked first, and a failure leaves the model as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from thinc.api import Model
from thinc.model import deserialize_attr

from ..errors import ElmoError, Errors, WeightsError, shown
from ..formats.strict.messages import read_message
from .shim import bilm_shims
from .types import BiLMModel

_PARTS = {"nodes", "attrs", "params", "shims"}
_NODE = {"index", "name", "dims", "refs"}
_MOST = 1024  # dims, references, attributes, parameters or shims of a layer
_LONGEST_LIST = 1_000_000  # values in a list inside an attribute


def load_model(model: BiLMModel, data: object) -> None:
    """Load what model.to_bytes() returned: a biLM of any width, or a user's own model of the same layers.

    model: the model, of which all is loaded or nothing. Only shims of other packages can't be restored after a failure.
    data: the bytes.

    Raises WeightsError if the bytes are damaged or of another model, and ElmoError if a biLM in them can't be used.
    """
    nodes = list(model.walk())
    try:
        content = read_message(data, longest_list=max(_MOST, len(nodes)), longest_map=_MOST)
        _check(nodes, content)
    except ValueError as error:
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error)) from error
    undo = [step for node in nodes for step in _undo(node)]
    try:
        forget_width(model)
        model.from_dict(content)
        for node in nodes:
            _check_width(node)
    except Exception as error:  # shims of other packages may raise anything
        for step in undo:
            step()
        if isinstance(error, ElmoError):
            raise
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error


def forget_width(model: BiLMModel) -> None:
    """Make the model's width unknown until it is loaded. A user's own model may never know it."""
    if model.has_dim("nO") is not False:
        model.set_dim("nO", None, force=True)  # type: ignore[arg-type]


def _check(nodes: list[Model[Any, Any]], content: Any) -> None:
    """Raise ValueError, with the reason, if a message is not of a model of these layers."""
    if not isinstance(content, dict) or set(content) != _PARTS:
        raise ValueError("it is no model")
    for name, values in content.items():
        if not isinstance(values, list) or len(values) != len(nodes):
            raise ValueError(f"{name} are not those of {len(nodes)} layers")
    for i, node in enumerate(nodes):
        info, attrs, params, shims = (content[part][i] for part in ("nodes", "attrs", "params", "shims"))
        if not isinstance(info, dict) or set(info) != _NODE or info["index"] != i or not isinstance(info["name"], str):
            raise ValueError(f"layer {i} is not described as it should be")
        of_layer = f"of the layer {shown(info['name'])}"
        _check_map(info["dims"], f"dims {of_layer}", lambda value: _is_count(value, 2**63))
        _check_map(info["refs"], f"refs {of_layer}", lambda value: _is_count(value, len(nodes)))
        _check_map(params, f"parameters {of_layer}", lambda value: value is None or isinstance(value, np.ndarray))
        _check_map(attrs, f"attributes {of_layer}", lambda value: isinstance(value, bytes))
        if not isinstance(shims, list) or len(shims) != len(node.shims):
            raise ValueError(f"the shims {of_layer} are not {len(node.shims)}")
        if bilm_shims(node) and (info["name"] != node.name or info["refs"] or params or attrs):
            raise ValueError(f"the name, refs, parameters or attributes {of_layer} are not those of a biLM")
        for name, value in attrs.items():
            if deserialize_attr.dispatch(type(node.attrs.get(name))) is deserialize_attr.dispatch(object):
                read_message(value, longest_list=_LONGEST_LIST, longest_map=_LONGEST_LIST)


def _check_map(values: object, what: str, accepts: Callable[[object], bool]) -> None:
    if not isinstance(values, dict) or not all(map(accepts, values.values())):
        raise ValueError(f"the {what} are not what they should be")


def _is_count(value: object, limit: int) -> bool:
    return value is None or (type(value) is int and 0 <= value < limit)


def _check_width(node: Model[Any, Any]) -> None:
    for shim in bilm_shims(node):
        if node.has_dim("nO") and node.get_dim("nO") != shim.options.width:
            reason = f"it says that its width is {node.get_dim('nO')}, but its biLM has {shim.options.width}"
            raise WeightsError(Errors.SAVED_DAMAGED.format(reason=reason))


def _undo(node: Model[Any, Any]) -> list[Callable[[], object]]:
    """Return the steps that restore a layer after a failure."""
    steps: list[Callable[[], object]] = [partial(setattr, node, "name", node.name)]
    steps += [partial(node.set_param, name, None) for name in node.param_names]  # else Thinc lets no dim change
    for name in node.dim_names:
        value: Any = node.get_dim(name) if node.has_dim(name) else None
        steps.append(partial(node.set_dim, name, value, force=True))
    steps += [partial(node.set_ref, name, node.maybe_get_ref(name)) for name in node.ref_names]
    steps += [partial(node.set_param, name, node.maybe_get_param(name)) for name in node.param_names]
    steps += [node.attrs.clear, partial(node.attrs.update, dict(node.attrs))]
    steps += [partial(shim._set_owner, shim._model) for shim in bilm_shims(node)]
    return steps
