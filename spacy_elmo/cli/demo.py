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
from ..formats.atomic import writing
from ..formats.vectors import VectorsWriter, of_length_1
from ..text.words import line_of
from . import shared
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
    """The sentences have words of several senses. A table shows how well each layer separates the senses."""
    with writing(output, CommandError):
        output.mkdir(parents=True, exist_ok=True)
    for name, begins in (("vectors.hdf5", b"\x89HDF"), ("senses.png", b"\x89PNG")):
        shared.hold(output / name, begins=begins)
    table = sample_sentences()
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    found = []
    with VectorsWriter(output / "vectors.hdf5") as writer:
        for (word, sense, sentence), doc in zip(table, nlp.pipe([row[2] for row in table])):
            writer.write(line_of(token.text for token in doc), doc._.elmo_layers)
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
    msg.table(rows, header=header, aligns="l" + "c" * layers)
    msg.text("Layer 0 sees the word alone: all its occurrences are equal. The layers above see the sentence:")
    msg.text("the further the first number is above the second, the better a layer tells that word's senses apart.")
    msg.good(f"{output / 'vectors.hdf5'}: all layers of all tokens")
    if plot_senses(found, output / "senses.png"):
        msg.good(f"{output / 'senses.png'}: the picture of it")
    else:
        msg.warn("no picture: matplotlib is missing (pip install matplotlib)")


def sample_sentences() -> list[list[str]]:
    """Return the package's example sentences: word, sense, sentence."""
    lines = files("spacy_elmo.cli").joinpath("senses.tsv").read_text(encoding="utf8").splitlines()
    return [line.split("\t") for line in lines]


def _words(found: list[SampleWord]) -> dict[str, list[SampleWord]]:
    return {word: [one for one in found if one.word == word] for word in dict.fromkeys(one.word for one in found)}


def similarities(found: list[SampleWord]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean cosine of pairs of a word in the same sense, and in different senses, each *Shape:* (layers,)."""
    cosines: dict[bool, list[npt.NDArray[np.float32]]] = {True: [], False: []}
    for a, b in combinations(found, 2):
        if a.word == b.word:
            cosines[a.sense == b.sense].append((of_length_1(a.layers) * of_length_1(b.layers)).sum(1))
    return np.stack(cosines[True]).mean(0, dtype=np.float64), np.stack(cosines[False]).mean(0, dtype=np.float64)


def plot_senses(found: list[SampleWord], path: Path) -> bool:
    """Plot the occurrences of the first word in the layers above layer 0, for a slide. False: no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    word, group = next(iter(_words(found).items()))
    senses, n_layers = list(dict.fromkeys(one.sense for one in group)), len(found[0].layers)
    figure = Figure(figsize=(6.4 * (n_layers - 1), 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"What ELMo makes of “{word}” in {len(group)} sentences", fontsize=20)
    figure.supxlabel(
        f"Layer 0 sees the characters alone: there all {len(group)} are one and the same point.", fontsize=14
    )
    for layer in range(1, n_layers):
        axes = figure.add_subplot(1, n_layers - 1, layer)
        same, different = (values[layer] for values in similarities(group))
        axes.set_title(f"layer {layer}: cosine {same:.2f} in one sense, {different:.2f} between senses", fontsize=14)
        axes.set(xticks=[], yticks=[])
        axes.margins(0.15)
        places = _plane(np.stack([one.layers[layer] for one in group]))
        for sense, colour, marker in zip(senses, ("#0072b2", "#d55e00"), "os"):
            chosen = places[[one.sense == sense for one in group]]
            axes.scatter(chosen[:, 0], chosen[:, 1], s=130, color=colour, marker=marker, label=sense)
        _label(axes, places, [_context(one) for one in group])
        if layer == 1:
            axes.legend(fontsize=14, loc="upper center", ncols=len(senses))
    with shared.written(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return True


def _context(one: SampleWord, around: int = 3) -> str:
    """Return the word with some words of its sentence on both sides."""
    words = one.sentence.split()
    place = [word.lower() for word in words].index(one.word)
    start, end = max(0, place - around), place + around + 1
    return "… " * (start > 0) + " ".join(words[start:end]) + " …" * (end < len(words))


def _label(axes: Any, places: npt.NDArray[np.float32], labels: list[str]) -> None:
    """Write each label beside its point, on the side where there is room, and none over another."""
    size = np.ptp(places, axis=0)
    left = places[:, 0] < places[:, 0].min() + size[0] / 2
    for side, align in ((1, "left"), (-1, "right")):
        order = [i for i in np.argsort(places[:, 1]) if left[i] == (side > 0)]
        heights, gap = places[order, 1].copy(), 0.075 * size[1]
        for _ in range(100):  # push neighbours apart until all are far enough from each other
            for k in range(len(heights) - 1):
                missing = max(0.0, gap - (heights[k + 1] - heights[k]))
                heights[k : k + 2] += (-missing / 2, missing / 2)
        for i, height in zip(order, heights):
            near = [places[k, 0] * side for k in order if abs(places[k, 1] - height) < gap]
            x = side * (max([places[i, 0] * side, *near]) + 0.06 * size[0])
            line = {"arrowstyle": "-", "color": "#999999", "lw": 0.8}
            axes.annotate(labels[i], places[i], (x, height), fontsize=11, va="center", ha=align, arrowprops=line)


def _plane(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the first two principal components of points, *Shape:* (n, 2); zeros if the points are equal."""
    if np.ptp(points, axis=0).max() < 1e-5:
        return np.zeros((len(points), 2), np.float32)
    centred = points - points.mean(0)
    result: npt.NDArray[np.float32] = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return result
