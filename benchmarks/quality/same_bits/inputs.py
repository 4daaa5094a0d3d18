"""What is hashed: generated sentences, and biLMs of random weights as official files."""

import json
import random
from pathlib import Path
from typing import Any

import h5py
import numpy as np

OFFICIAL_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
SIZES = {"small": (1024, 128, 1), "original": (4096, 512, 2)}  # LSTM, projection, highway layers
UNICODE = ["naïve", "Zürich", "coöperate", "Ελλάδα", "москва", "東京都", "北京", "😀", "👩\u200d🚀", "e\u0301tude"]
UNICODE += ["…", "—", "“", "”"]
UNICODE += ["ẞ", "Ἀ" * 30, "x" * 60, "3.14159", "$", "U.S.", "don't", "\u00a0", "  "]


def sentences(n: int, seed: int) -> list[list[str]]:
    """Generated sentences of 1 to 60 words, in which words return about as often as in English.

    n: how many. seed: of the random numbers. Returns the words of each; one in 25 is from UNICODE.
    """
    source = random.Random(seed)
    onsets = ("b", "ch", "d", "gr", "l", "m", "st", "th", "w", "")
    syllables = [onset + vowel + coda for onset in onsets for vowel in "aeiou" for coda in ("", "n", "r")]
    lexicon = ["the", ",", "of", "and", "to", "in", "a", "is", "bank", "river"]
    lexicon += ["".join(source.choice(syllables) for _ in range(source.randint(1, 4))) or "I" for _ in range(6000)]
    lexicon = [word.capitalize() if source.random() < 0.1 else word for word in lexicon]
    weights = [1 / (rank + 1) for rank in range(len(lexicon))]
    found = []
    for _ in range(n):
        length = min(60, max(1, round(source.lognormvariate(3.0, 0.6))))
        words = source.choices(lexicon, weights, k=length)
        found.append([source.choice(UNICODE) if source.random() < 0.04 else word for word in words])
    return found


def write_inputs(data: Path) -> None:
    """Write the biLMs of random weights and the texts, if they are not there.

    data: folder of the inputs.
    """
    data.mkdir(parents=True, exist_ok=True)
    for name, (dim, projection, n_highway) in SIZES.items():
        if not (data / name / "weights.hdf5").exists():
            write_bilm(data / name, dim, projection, n_highway)
    for name, n, seed in (("train", 800, 1), ("heldout", 80, 2)):
        lines = [" ".join(word for word in words if word.strip()) for words in sentences(n, seed)]
        (data / f"{name}.txt").write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")


def write_bilm(folder: Path, dim: int, projection: int, n_highway: int) -> None:
    """Write options.json and weights.hdf5 in the official format, random weights from seed 0.

    folder: where to. dim, projection: of the LSTMs. n_highway: highway layers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    lstm["use_skip_connections"] = True
    cnn = {"embedding": {"dim": 16}, "filters": OFFICIAL_FILTERS, "n_highway": n_highway, "n_characters": 262}
    cnn |= {"max_characters_per_token": 50, "activation": "relu"}
    (folder / "options.json").write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}), encoding="utf-8")
    rng = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        bound = (3 / np.prod(shape[:-1])) ** 0.5
        return (rng.random(shape, np.float32) * 2 - 1) * np.float32(bound)

    width = sum(n for _, n in OFFICIAL_FILTERS)
    temporary = folder / "weights.tmp"
    with h5py.File(temporary, "w") as file:
        file["char_embed"] = rng.standard_normal((261, 16), np.float32)
        for i, (length, n) in enumerate(OFFICIAL_FILTERS):
            file[f"CNN/W_cnn_{i}"] = matrix(1, length, 16, n)
            file[f"CNN/b_cnn_{i}"] = 0.1 * rng.standard_normal(n, np.float32)
        for k in range(n_highway):
            for part in ("carry", "transform"):
                file[f"CNN_high_{k}/W_{part}"] = matrix(width, width)
                file[f"CNN_high_{k}/b_{part}"] = 0.1 * rng.standard_normal(width, np.float32)
        file["CNN_proj/W_proj"], file["CNN_proj/b_proj"] = matrix(width, projection), np.zeros(projection, np.float32)
        for direction in range(2):
            for layer in range(2):
                cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
                file[f"{cell}/W_0"] = 2 * matrix(2 * projection, 4 * dim)
                file[f"{cell}/B"] = 0.1 * rng.standard_normal(4 * dim, np.float32)
                file[f"{cell}/W_P_0"] = 2 * matrix(dim, projection)
    temporary.rename(folder / "weights.hdf5")
