"""`elmo demo`: how the layers represent words with several senses."""

from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import spacy
from spacy.cli._util import Arg

from ..errors import CommandError
from ..formats.atomic import replacing, writing
from ..formats.vectors import VectorsWriter
from .console import msg


class SampleWord(NamedTuple):
    """A word, its meaning in a sentence, the sentence, and its vectors there: *Shape:* (layers, width)."""

    word: str
    sense: str
    sentence: str
    layers: npt.NDArray[np.float32]


def demo(
    output: Path = Arg("out", metavar="FOLDER", help="Folder for vectors.hdf5 and senses.png", file_okay=False),
) -> None:
    """Embed sample sentences, and compare layers.

    The sentences have words of several senses. A table shows how well each layer separates the senses.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"{output}: this folder can't be made ({error.strerror}). Give another one, as in spacy elmo demo FOLDER."
        ) from error
    lines = files("spacy_elmo.cli").joinpath("senses.tsv").read_text(encoding="utf8").splitlines()
    table = [line.split("\t") for line in lines]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    found = []
    with VectorsWriter(output / "vectors.hdf5") as writer:
        for (word, sense, sentence), doc in zip(table, nlp.pipe([row[2] for row in table])):
            writer.write(" ".join(token.text for token in doc), doc._.elmo_layers)
            token = next(token for token in doc if token.lower_ == word)
            found.append(SampleWord(word, sense, sentence, token._.elmo_layers))
    layers, width = found[0].layers.shape
    msg.text(f"{len(found)} sentences; each token has {layers} layers of {width} numbers, and as")
    msg.text(f"token._.elmo their mean: a vector of {width}. For example:")
    for one in found[:5:4]:
        numbers = " ".join(f"{value:+.2f}" for value in one.layers.mean(0)[:6])
        msg.text(f"  {one.word} ({one.sense})  [{numbers} ...]  {one.sentence}")
    rows = []
    for word, group in (_words(found) | {"all": found}).items():
        same, different = similarities(group)
        rows.append((word, *(f"{s:.2f} / {d:.2f}" for s, d in zip(same, different))))
    msg.divider("cosine similarity of a word's occurrences: same sense / different senses")
    header = ("word", "layer 0 (characters)", *(f"layer {k}" for k in range(1, layers)))
    msg.table(rows, header=header, divider=True, aligns=("l", *["c"] * layers))
    msg.text("Layer 0 sees the word alone: all its occurrences are equal. The layers above see the sentence:")
    msg.text("the further the first number is above the second, the better a layer tells that word's senses apart.")
    msg.good(f"{output / 'vectors.hdf5'}: all layers of all tokens")
    if plot_senses(found, output / "senses.png"):
        msg.good(f"{output / 'senses.png'}: the picture of it")
    else:
        msg.warn("no picture: matplotlib is missing (pip install matplotlib)")


def _words(found: list[SampleWord]) -> dict[str, list[SampleWord]]:
    return {word: [one for one in found if one.word == word] for word in dict.fromkeys(one.word for one in found)}


def similarities(found: list[SampleWord]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean cosine of pairs of a word in the same sense, and in different senses, each *Shape:* (layers,)."""
    cosines: dict[bool, list[npt.NDArray[np.float32]]] = {True: [], False: []}
    for a, b in combinations(found, 2):
        if a.word == b.word:
            norms = np.linalg.norm(a.layers, axis=1) * np.linalg.norm(b.layers, axis=1)
            cosines[a.sense == b.sense].append((a.layers * b.layers).sum(1) / norms)
    return np.stack(cosines[True]).mean(0, dtype=np.float64), np.stack(cosines[False]).mean(0, dtype=np.float64)


def plot_senses(found: list[SampleWord], path: Path) -> bool:
    """Plot each word's occurrences by layer, and the similarities of each word and of all. False: no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    words, n_layers = _words(found), len(found[0].layers)
    figure = Figure(figsize=(3.2 * (n_layers + 1), 2.6 * (len(words) + 1)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("Occurrences of a word by layer (two principal components each), and their mean cosine similarity")
    grid = figure.add_gridspec(len(words) + 1, n_layers + 1)
    for row, (word, group) in enumerate(words.items()):
        for layer in range(n_layers):
            axes = figure.add_subplot(grid[row, layer])
            places = _plane(np.stack([one.layers[layer] for one in group]))
            for sense, colour in zip(dict.fromkeys(one.sense for one in group), ("#1f77b4", "#d95f02")):
                chosen = places[[one.sense == sense for one in group]]
                axes.scatter(chosen[:, 0], chosen[:, 1], color=colour, label=sense, alpha=0.8)
            axes.set_title(f"{word}, layer {layer}", fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            if layer == 0:
                axes.legend(fontsize=8)
        axes = figure.add_subplot(grid[row, n_layers])
        _draw_similarities(axes, group, "mean cosine")
        if row == 0:
            axes.legend(fontsize=8, loc="upper center", ncols=2, columnspacing=1)
    _draw_similarities(figure.add_subplot(grid[-1, :]), found, "all words, mean cosine")
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        figure.savefig(temporary, format="png", dpi=110)
    return True


def _plane(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the first two principal components of points, *Shape:* (n, 2); zeros if the points are equal."""
    if np.ptp(points, axis=0).max() < 1e-5:
        return np.zeros((len(points), 2), np.float32)
    centred = points - points.mean(0)
    result: npt.NDArray[np.float32] = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return result


def _draw_similarities(axes: Any, found: list[SampleWord], title: str) -> None:
    """Draw two bars for each layer: the mean cosine of pairs of the same sense, and of different senses."""
    same, different = similarities(found)
    bars = np.arange(len(same))
    axes.bar(bars - 0.2, same, 0.4, label="same sense", color="#4c9f70")
    axes.bar(bars + 0.2, different, 0.4, label="different senses", color="#bbbbbb")
    axes.set_ylim(min(0.0, float(min(same.min(), different.min()))), 1.35)  # a cosine is 1 at most; the legend is above
    axes.set_yticks(np.arange(0, 1.1, 0.2))
    axes.set_xticks(bars, [f"layer {k}" for k in bars], fontsize=8)
    axes.set_title(title, fontsize=9)
