"""The language that the model card beside a biLM's files names."""

import re
from importlib.util import find_spec
from pathlib import Path

from .loading import embedded_files

CARD, CARD_CHARACTERS = "README.md", 100_000
NAMES = {"english": "en"}  # cards of pretraining runs have the code
ROW = re.compile(r"^\| language \| ([A-Za-z]+)\b", re.MULTILINE)


def card_language(options_file: str | None) -> str | None:
    """Return spaCy's code of the language that the model card beside an options file names; it may be xx.

    options_file: path of an options.json; None: that of the embedded biLM.

    Returns None if there is no card, or it names no language that spaCy knows.
    """
    try:
        with (Path(options_file or embedded_files()[0]).parent / CARD).open(encoding="utf8", errors="replace") as card:
            row = ROW.search(card.read(CARD_CHARACTERS))
    except (OSError, ValueError):  # ValueError: a path with a NUL character
        return None
    if row is None:
        return None
    name = row[1].lower()
    code = NAMES.get(name, name)
    return code if find_spec(f"spacy.lang.{code}") is not None else None
