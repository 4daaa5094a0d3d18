"""The language that a biLM reads, as the model card beside its files tells it."""

import re
from importlib.util import find_spec
from pathlib import Path

from ..modules.loading import embedded_files, files_of
from .shim import bilm_shims
from .types import BiLMModel

CARD, CARD_CHARACTERS = "README.md", 100_000
NAMES = {"english": "en"}  # cards of pretraining runs have the code
ROW = re.compile(r"^\| language \| ([A-Za-z]+)\b", re.MULTILINE)


def language_of(model: BiLMModel) -> str | None:
    """Return spaCy's code of a biLM's language, from the README.md in the folder of its options file.

    model: the biLM's layer.

    Returns None if there is no card, or it names no language that spaCy knows, or xx, which is no language.
    """
    shim = next(iter(bilm_shims(model)), None)
    if shim is None:
        return None
    try:
        code = card_language(shim.options_file if shim.bilm is None else files_of(shim.bilm)[0])
    except ValueError:  # a biLM that was not downloaded or installed
        return None
    return None if code == "xx" else code


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
