"""Loads a saved elmo pipe from bytes or from its folder. All is checked first; a failure leaves the pipe as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from spacy.vocab import Vocab

from ..errors import Errors, WeightsError
from ..formats.strict.messages import read_message
from ..formats.strict.strict_json import parse_json
from .saved_model import load_model
from .types import BiLMModel

_PARTS = {"cfg", "vocab", "model"}
_MOST = 16  # keys of a saved pipe; it has three


def load_bytes(vocab: Vocab, model: BiLMModel, data: object, exclude: Iterable[str]) -> dict[str, Any]:
    """Load what the pipe's to_bytes returned.

    vocab, model: those of the pipe, which are changed if all of the data can be used.
    data: the bytes.
    exclude: names of parts that are not loaded: "vocab", "model" or "cfg".

    Returns the saved cfg.
    Raises WeightsError if the bytes are damaged, and ElmoError if a biLM in them can't be used.
    """
    with _damaged():
        content = read_message(data, longest_list=_MOST, longest_map=_MOST)
        if not isinstance(content, dict) or not set(content) <= _PARTS:
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
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error
