"""The language that a biLM reads, as the model card beside its files tells it."""

from ..modules.card_language import card_language
from ..modules.loading import files_of
from .shim import bilm_shims
from .types import BiLMModel


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
