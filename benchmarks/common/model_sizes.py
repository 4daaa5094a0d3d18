"""The sizes of network that are measured, and biLMs of random weights in these sizes."""

import json
from collections import Counter
from pathlib import Path

import torch

from spacy_elmo import bilms
from spacy_elmo.formats import BiLMOptions, read_options, write_options, write_weights
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.presets import SIZES, Size

RUNS = Path(__file__).parents[2] / "runs"  # what measurements write
OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def options_of(size: str) -> BiLMOptions:
    """Give the sizes of a network.

    size: "original" or "small", the official ones of these names; "mini", the embedded biLM's; or "midi", en_midi's.
    """
    if size == "mini":
        return read_options(bilms.paths("en_mini")[0])
    if size == "midi":
        return SIZES[Size.midi]
    dim, projection_dim, n_highway = {"original": (4096, 512, 2), "small": (1024, 128, 1)}[size]
    return BiLMOptions(16, OFFICIAL_FILTERS, n_highway, "relu", 50, dim, projection_dim, 2, 3.0, 3.0, True)


def write_model(folder: Path, options: BiLMOptions, seed: int, sentences: list[list[str]]) -> dict[str, str]:
    """Write a biLM of random weights, the sentences, and their vocabulary, the most frequent word first.

    folder: where to. options: sizes of the network. seed: of the weights. sentences: the words of each. simple_elmo
    stores the character ids of the words in the vocabulary. Returns the settings that name the biLM's files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "model.hdf5")}
    write_options(files["options_file"], options)
    write_weights(files["weight_file"], options, bilm.to_arrays())
    words = [word for word, _ in Counter(w for s in sentences for w in s).most_common()]
    (folder / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
    (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")
    return files
