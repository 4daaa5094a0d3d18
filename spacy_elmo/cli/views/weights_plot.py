"""The plot of `elmo weights`, after Figure 2 of Peters et al. 2018."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import CommandError, Errors
from ...formats.atomic import replacing, writing
from ...pipeline.mixes import LearnedMix


def plot_weights(mixes: list[LearnedMix], path: Path) -> None:
    """Write a plot of the mixes' weights after the softmax: a row for each mix, with a column for each layer and gamma.

    mixes: of a trained pipeline.
    path: the file to write; its suffix decides the format.

    Raises CommandError if matplotlib is missing, or if the file can't be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CommandError(Errors.PLOT_MISSING) from error
    layers = max(len(mix.weights) for mix in mixes)
    cells = np.full((len(mixes), layers), np.nan)
    for row, mix in enumerate(mixes):
        cells[row, : len(mix.weights)] = mix.weights
    names = [f"{mix.component}, {mix.place}" for mix in mixes]
    width = 2.4 + 1.1 * layers + 0.08 * max(map(len, names))  # inches; a name's letter takes about 0.08
    figure = Figure(figsize=(width, 1.3 + 0.42 * len(mixes)), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in canvas.get_supported_filetypes():
        raise CommandError(Errors.PLOT_FORMAT.format(path=path, got=kind))
    axes = figure.add_subplot()
    axes.set_facecolor("#d8d8d8")  # the colour of layers that a mix does not have
    image = axes.imshow(cells, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), weight in np.ndenumerate(cells):
        if np.isfinite(weight):
            colour = "white" if weight > 0.6 else "black"
            axes.text(column, row, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(layers), [f"layer {k}" for k in range(layers)])
    axes.set_yticks(range(len(mixes)), names)
    axes.tick_params(length=0)
    gammas = axes.secondary_yaxis("right")
    gammas.set_yticks(range(len(mixes)), [f"gamma {mix.gamma:.2f}" for mix in mixes])
    gammas.tick_params(length=0)
    axes.set_title("Weights of the biLM's layers (softmax)", fontsize=10)
    figure.colorbar(image, ax=axes, label="weight")
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        figure.savefig(temporary, format=kind, dpi=120)
