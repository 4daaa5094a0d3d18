"""Loads a saved elmo pipe from bytes or from its folder. All is checked first; a failure leaves the pipe as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.model import deserialize_attr

from ..errors import SAVED_DAMAGED, ElmoError, WeightsError, shown
from ..formats.messages import read_message
from ..formats.strict_json import parse_json
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
        raise WeightsError(SAVED_DAMAGED.format(reason=error)) from error
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
        raise WeightsError(SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error


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
            raise WeightsError(SAVED_DAMAGED.format(reason=reason))


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


_PIPE_PARTS = {"cfg", "vocab", "model"}
_MOST_PIPE = 16  # keys of a saved pipe; it has three


def load_bytes(vocab: Vocab, model: BiLMModel, data: object, exclude: Iterable[str]) -> dict[str, Any]:
    """Load what the pipe's to_bytes returned.

    vocab, model: those of the pipe, which are changed if all of the data can be used.
    data: the bytes.
    exclude: names of parts that are not loaded: "vocab", "model" or "cfg".

    Returns the saved cfg.
    Raises WeightsError if the bytes are damaged, and ElmoError if a biLM in them can't be used.
    """
    with _damaged():
        content = read_message(data, longest_list=_MOST_PIPE, longest_map=_MOST_PIPE)
        if not isinstance(content, dict) or not set(content) <= _PIPE_PARTS:
            raise ValueError("it is no pipe")
    skipped = set(exclude)
    with _damaged():
        cfg = _cfg(content["cfg"]) if "cfg" in content.keys() - skipped else {}
    load = partial(load_model, model, content["model"]) if "model" in content.keys() - skipped else None
    read = None
    if "vocab" in content.keys() - skipped:
        read = partial(_vocab_of_bytes, content["vocab"], skipped)
    _load(vocab, read, load)
    return cfg


def load_folder(vocab: Vocab, model: BiLMModel, path: str | Path, exclude: Iterable[str]) -> dict[str, Any]:
    """Load the folder that the pipe's to_disk has written.

    vocab, model, exclude: as in `load_bytes`.
    path: the folder.

    Returns the saved cfg.
    Raises WeightsError if a file is missing, can't be read or is damaged, and ElmoError if a biLM can't be used.
    """
    path, skipped = Path(path), set(exclude)
    with _damaged():
        cfg = _cfg(_read(path / "cfg")) if "cfg" not in skipped and (path / "cfg").exists() else {}
        load = None if "model" in skipped else partial(load_model, model, _read(path / "model"))
    read = None if "vocab" in skipped else partial(_vocab_of_folder, path / "vocab", skipped)
    _load(vocab, read, load)
    return cfg


def _load(vocab: Vocab, read: Callable[[Vocab], None] | None, load: Callable[[], None] | None) -> None:
    """Load the vocab and the model, both or none.

    vocab: of the pipe.
    read: reads the saved vocab into a vocab; None: there is none.
    load: loads the saved model, completely or not at all; None: there is none.
    """
    if read is not None:
        with _damaged():
            read(Vocab())  # it raises here if the data are damaged, before anything of the pipe is changed
    if load is not None:
        load()
    if read is not None:
        with _damaged():
            read(vocab)


def _vocab_of_bytes(data: Any, exclude: set[str], vocab: Vocab) -> None:
    vocab.from_bytes(data, exclude=exclude)


def _vocab_of_folder(path: Path, exclude: set[str], vocab: Vocab) -> None:
    vocab.from_disk(path, exclude=exclude)


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # opening a pipe could wait for ever
        raise ValueError(f"{path} is a folder or a special file")
    return path.read_bytes()


def _cfg(raw: Any) -> dict[str, Any]:
    cfg = parse_json(raw) if isinstance(raw, str | bytes) else None
    if not isinstance(cfg, dict):
        raise ValueError("its cfg is no JSON object")
    return cfg


@contextmanager
def _damaged() -> Iterator[None]:
    """Raise WeightsError in place of all errors of damaged data: inside spaCy's vocab they may be of any class."""
    collects = gc.isenabled()
    try:
        yield
    except Exception as error:
        if collects:
            gc.enable()  # srsly leaves it off if a message is damaged
        raise WeightsError(SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error
