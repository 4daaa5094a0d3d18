"""The biLM that the options of a command name."""

from typing import cast

from ...allennlp.embedder import ElmoEmbedder
from ...corpus.bilm import BiLMChoice
from ...errors import CommandError, Errors
from ...formats.named.bilms import is_hidden
from ...formats.published.names import PUBLISHED
from ...modules.loading import can_name_bilm
from ...modules.naming import no_bilm
from ...modules.precision import Precision
from .printer import msg


def bilm_of(
    model: str | None,
    options_file: str | None,
    weight_file: str | None,
    pipeline: str | None,
    pipe: str | None,
    device: str,
    precision: str,
) -> BiLMChoice:
    """Return which biLM the options name.

    Raises CommandError if they exclude each other, or if `model` is the name of nothing, and SettingsError if something
    in the current folder hides the biLM of that name.
    """
    others = {"--pipeline": pipeline, "--options-file": options_file, "--weight-file": weight_file}
    present = [name for name, value in others.items() if value is not None]
    if model is not None and present:
        raise CommandError(Errors.MODEL_BOTH.format(other=present[0]))
    if pipeline is not None and len(present) > 1:
        raise CommandError(Errors.PIPE_BOTH.format(other=present[1]))
    known = cast(Precision, precision)  # or refused
    choice = BiLMChoice(model, options_file, weight_file, pipe, pipeline, device, known)
    if model is not None and is_hidden(model) and not can_name_bilm(model):
        raise no_bilm(model)
    if model is not None and choice.saved_pipeline is None and not can_name_bilm(model):
        raise CommandError(Errors.MODEL_UNKNOWN.format(got=model, expected=", ".join(PUBLISHED)))
    if pipe is not None and choice.saved_pipeline is None:
        raise CommandError(Errors.PIPE_ALONE.format(got=pipe))
    return choice


def warn_of_language(bilm: BiLMChoice, lang: str | None) -> None:
    """Print a warning if the biLM's model card names another language than the option --lang."""
    if bilm.saved_pipeline is None and lang not in (None, "xx"):
        language = bilm.named_language
        if language not in (None, "xx", lang):
            msg.warn(Errors.EMBED_LANGUAGE.format(lang=lang, language=language))


def embedder_of(bilm: BiLMChoice, gpu: int, stateful: bool = False) -> ElmoEmbedder:
    """Return an embedder with a biLM.

    bilm: the biLM. Its device is not used.
    gpu: number of the GPU; -1: the CPU.
    stateful: as for ElmoEmbedder.

    Raises ElmoError if the biLM or the GPU can't be used.
    """
    options, arrays = bilm.load_arrays()
    return ElmoEmbedder.from_arrays(options, arrays, gpu, stateful=stateful, precision=bilm.precision)
