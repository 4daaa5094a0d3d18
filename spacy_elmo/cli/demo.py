"""`elmo demo`: what the layers tell of words with several senses."""

from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import spacy
import typer
from wasabi import msg

from ..errors import ElmoError
from ..formats.hdf5_vectors import VectorsWriter
from .views.senses_plot import plot_senses


class Occurrence(NamedTuple):
    """A word in a sentence. layers: *Shape:* (layers, width)."""

    word: str
    sense: str
    sentence: str
    layers: npt.NDArray[np.float32]


def embed_sample(vectors: Path) -> list[Occurrence]:
    """Embed the bundled sentences with the embedded biLM, and write all their layers to `vectors`."""
    lines = (files("spacy_elmo.cli") / "senses.tsv").read_text(encoding="utf8").splitlines()
    table = [line.split("\t") for line in lines]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    occurrences = []
    with VectorsWriter(vectors) as writer:
        for (word, sense, sentence), doc in zip(table, nlp.pipe([row[2] for row in table])):
            writer.write(" ".join(token.text for token in doc), doc._.elmo_layers)
            token = next(token for token in doc if token.lower_ == word)
            occurrences.append(Occurrence(word, sense, sentence, token._.elmo_layers))
    return occurrences


def similarities(occurrences: list[Occurrence]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean cosine of two occurrences of a word, in the same sense and in different ones. *Shape:* (layers,) each."""
    same: list[npt.NDArray[np.float32]] = []
    different: list[npt.NDArray[np.float32]] = []
    for a, b in combinations(occurrences, 2):
        if a.word == b.word:
            norms = np.linalg.norm(a.layers, axis=1) * np.linalg.norm(b.layers, axis=1)
            (same if a.sense == b.sense else different).append((a.layers * b.layers).sum(1) / norms)
    return np.stack(same).mean(0, dtype=np.float64), np.stack(different).mean(0, dtype=np.float64)


def demo(
    output: Annotated[Path, typer.Argument(help="Folder for vectors.hdf5 and senses.png", file_okay=False)] = Path(
        "out"
    ),
) -> None:
    """Embed sentences with words of several senses: what each layer tells of the sense."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        occurrences = embed_sample(output / "vectors.hdf5")
    except (ElmoError, OSError) as error:
        msg.fail(str(error), exits=1)
    layers, width = occurrences[0].layers.shape
    msg.text(f"{len(occurrences)} sentences; each token has {layers} layers of {width} numbers, and as")
    msg.text(f"token._.elmo their mean: a vector of {width}. For example:")
    for occurrence in occurrences[:5:4]:
        numbers = " ".join(f"{value:+.2f}" for value in occurrence.layers.mean(0)[:6])
        msg.text(f"  {occurrence.word} ({occurrence.sense})  [{numbers} ...]  {occurrence.sentence}")
    words = list(dict.fromkeys(occurrence.word for occurrence in occurrences))
    rows = []
    for word in [*words, "all"]:
        same, different = similarities([o for o in occurrences if word in (o.word, "all")])
        rows.append((word, *(f"{s:.2f} / {d:.2f}" for s, d in zip(same, different))))
    msg.divider("cosine similarity of a word's occurrences: same sense / different senses")
    header = ("word", "layer 0 (characters)", *(f"layer {k}" for k in range(1, layers)))
    msg.table(rows, header=header, divider=True, aligns=("l", *["c"] * layers))
    msg.text("Layer 0 sees the word alone: all its occurrences are equal. The layers above see the sentence:")
    msg.text("the further the first number is above the second, the better a layer tells that word's senses apart.")
    msg.good(f"{output / 'vectors.hdf5'}: all layers of all tokens")
    try:
        drawn = plot_senses(occurrences, similarities, output / "senses.png")
    except OSError as error:
        msg.fail(str(error), exits=1)
    if drawn:
        msg.good(f"{output / 'senses.png'}: the picture of it")
    else:
        msg.warn("no picture: matplotlib is missing (pip install spacy-elmo[plot])")
