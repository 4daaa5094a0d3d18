"""Writes a share of a file of docs, drawn at random. A larger share contains the docs of a smaller one."""

from __future__ import annotations

from pathlib import Path
from random import Random

from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError

from ..shared.corpus_files import write_docs
from ..shared.messages import Messages


def write_share(source: Path, target: Path, share: int) -> None:
    """Write a share of the docs in a .spacy file, at least one, in the order of the file. share: in %.

    Raises CorpusError if the file can't be read or has no docs.
    """
    try:
        docs = list(DocBin().from_disk(source).get_docs(Vocab()))
    except (OSError, ValueError) as error:
        raise CorpusError(Messages.DOCS_UNREADABLE.format(path=source, reason=error)) from error
    order = list(range(len(docs)))
    Random(0).shuffle(order)
    kept = sorted(order[: max(1, round(len(docs) * share / 100))])
    write_docs(source, [docs[number] for number in kept], target)
