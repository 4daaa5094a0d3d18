"""What commands read: texts, and the biLMs of saved pipelines."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import spacy
from spacy.language import Language

from ...errors import CommandError, Errors
from ...modules import BiLM
from ...pipeline.elmo import ElmoPipe

STANDARD_INPUT = Path("-")


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text in UTF-8, with or without a byte order mark; "-" is standard input. Raises CommandError."""
    if path == STANDARD_INPUT:
        text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
        try:
            yield text
        finally:
            text.detach()  # it would close standard input
        return
    expected = "text, one sentence a line"
    if path.is_dir():
        raise CommandError(Errors.FILE_NOT_REGULAR.format(path=path, expected=expected))
    try:
        file = path.open(encoding="utf-8-sig")
    except FileNotFoundError:
        raise CommandError(Errors.FILE_MISSING.format(path=path, expected=expected)) from None
    except OSError as error:
        raise CommandError(Errors.FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    with file:
        yield file


def source_of(path: Path) -> str:
    """What messages call a text."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def _load(pipeline: str) -> tuple[Language, dict[str, ElmoPipe]]:
    try:
        nlp = spacy.load(pipeline)
    except (OSError, ValueError, ImportError) as error:
        raise CommandError(Errors.PIPE_LOAD.format(pipeline=pipeline, reason=error)) from error
    pipes = {found: pipe for found, pipe in nlp.components if isinstance(pipe, ElmoPipe)}
    if not pipes:
        raise CommandError(Errors.PIPE_NONE.format(pipeline=pipeline, got=", ".join(nlp.pipe_names) or "no pipes"))
    return nlp, pipes


def load_pipe(pipeline: str, name: str | None = None) -> tuple[Language, ElmoPipe]:
    """A saved pipeline, and its elmo pipe of that name, or the only one. Raises CommandError."""
    nlp, pipes = _load(pipeline)
    if name is not None and name not in pipes:
        raise CommandError(Errors.PIPE_NAME.format(pipeline=pipeline, got=name, expected=", ".join(pipes)))
    if name is None and len(pipes) > 1:
        raise CommandError(Errors.PIPE_SEVERAL.format(pipeline=pipeline, got=", ".join(pipes)))
    return nlp, pipes[next(iter(pipes)) if name is None else name]


def pipeline_bilm(pipeline: str, name: str | None = None) -> BiLM:
    """The biLM of an elmo pipe; see load_pipe. Raises CommandError where it has none, ElmoError for its files."""
    _, pipe = load_pipe(pipeline, name)
    return _bilm_of(pipeline, pipe)


def pipeline_bilms(pipeline: str) -> list[tuple[str, BiLM]]:
    """All elmo pipes' names and biLMs. Raises as pipeline_bilm does."""
    return [(name, _bilm_of(pipeline, pipe)) for name, pipe in _load(pipeline)[1].items()]


def _bilm_of(pipeline: str, pipe: ElmoPipe) -> BiLM:
    for shim in pipe.model.shims:
        bilm = getattr(shim, "bilm", None)
        if isinstance(bilm, BiLM):
            return bilm
    raise CommandError(Errors.PIPE_NO_BILM.format(pipeline=pipeline, name=pipe.name))
