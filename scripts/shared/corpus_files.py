"""Which corpora several scripts measure on; reads lines and writes docs for the scripts that convert corpora."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats.atomic import replacing, writing

from .messages import Messages

TAGGED = ("corpus/tagger/en_ewt-ud-train.spacy", "corpus/tagger/en_ewt-ud-dev.spacy")  # for training and for scoring


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file. Only a line feed ends a line, because tokens may contain other separators.

    Raises CorpusError if the file can't be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(Messages.CORPUS_UNREADABLE.format(path=path, reason=error)) from error
    return [line.removesuffix("\r") for line in text.split("\n")]


def refuse_sources(target: Path, *sources: Path) -> None:
    """Raise CorpusError if a file that is read would be written."""
    for source in sources:
        if target.resolve() == source.resolve():
            raise CorpusError(Messages.CORPUS_TARGET.format(source=source))


def write_docs(source: Path, docs: Iterable[Doc], target: Path) -> None:
    """Write docs to a DocBin, which is complete or not written at all.

    Raises CorpusError if there are none, if the file can't be written, or if it is the source.
    """
    refuse_sources(target, source)
    binary = DocBin(docs=docs, store_user_data=False)
    if not len(binary):
        raise CorpusError(Messages.CORPUS_EMPTY.format(path=source))
    with writing(target, CorpusError):
        target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, CorpusError) as temporary, writing(target, CorpusError):
        temporary.write_bytes(binary.to_bytes())
    print(f"{source}: {len(binary):,} docs -> {target}")
