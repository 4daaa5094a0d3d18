"""Measure what fewer bits cost: pack a biLM with several settings, and compare each copy with the biLM itself.

    python -m scripts.bilms.measure_bits runs/en_mini/model-last --wikipedia heldout.txt

It should be one that was not packed before: model-last of the run that made en_mini.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from spacy_elmo import ElmoEmbedder
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.pretraining.language_model import OPTIONS, SOFTMAX, WEIGHTS, LanguageModel
from spacy_elmo.pretraining.pack import pack

from ..shared.command import run_command
from ..shared.measurement import Measurement
from .measures import Text, bilm_result_of, check_corpora, check_text, perplexity, read_text, tag_accuracies

DEFAULT_BITS = 10  # of the mantissas, by elmo pack
STEP_BITS = (8, 6, 5, 4)
SENTENCES, EMBEDDED = 1000, 200  # for the perplexity, and for the vectors


def layer_changes(before: Path, after: Path, sentences: Sequence[Sequence[str]]) -> list[float]:
    """Return the norm of the change of each layer's vectors, as a share of their norm.

    before, after: folders of two biLMs of the same sizes.
    sentences: lists of words.

    Raises ElmoError if a biLM can't be read.
    """
    both = []
    for folder in (before, after):
        embedder = ElmoEmbedder(folder / OPTIONS, folder / WEIGHTS)
        both.append(np.concatenate(list(embedder.embed_sentences(sentences)), axis=1))
    return [float(np.linalg.norm(new - old) / np.linalg.norm(old)) for old, new in zip(*both)]


def measure_copy(model: Path, bits: int | None, text: Text) -> dict[str, Any]:
    """Pack a biLM into a temporary folder, and return what the copy has become. Raises ElmoError if that fails.

    model: its folder, with its softmax.
    bits: as in `pack`; None: mantissas of 10 bits.
    text: whose perplexity is measured. The vectors of its first sentences are compared.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "packed")
        packed = pack(model, folder, DEFAULT_BITS, bits=bits)
        return {
            "setting": f"--mantissa-bits {DEFAULT_BITS}" if bits is None else f"--bits {bits}",
            "bytes": {file: packed.sizes[file][1] for file in (WEIGHTS, SOFTMAX)},
            "layer_changes": layer_changes(model, folder, text.sentences[:EMBEDDED]),
            "perplexity": perplexity(LanguageModel.load(folder), text)["perplexity"],
            "tags": tag_accuracies(str(folder)),
        }


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a biLM with its softmax that was not packed")],
    wikipedia: Annotated[Path, typer.Option(help="The held-out text of Wikipedia")],
) -> None:
    """Write results/bilms/bits.json."""
    check_text(wikipedia, "wikipedia")
    check_corpora()
    whole, text = LanguageModel.load(model), read_text(wikipedia, SENTENCES)
    measurement = Measurement()
    result = {
        "weights": sha256_of(model / WEIGHTS)[:12],
        "bytes": {file: (model / file).stat().st_size for file in (WEIGHTS, SOFTMAX)},
        "perplexity": perplexity(whole, text)["perplexity"],
        "tags": tag_accuracies(str(model)),
        "copies": [measure_copy(model, bits, text) for bits in (None, *STEP_BITS)],
    }
    command = shlex.join(["python", "-m", "scripts.bilms.measure_bits", str(model), "--wikipedia", str(wikipedia)])
    measurement.write(bilm_result_of(Path(), "bits"), command, result)


if __name__ == "__main__":
    run_command(main)
