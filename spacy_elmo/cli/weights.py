"""`elmo weights`: the learnt weights of the layers in a trained pipeline."""

from pathlib import Path

import numpy as np
from spacy.cli._util import Arg, Opt, import_code

from ..errors import CommandError
from ..pipeline.mixes import LearnedMix, learned_mixes
from ..pipeline.saved import load_pipeline, pipeline_folder
from . import shared
from .console import msg, print_json


def weights(
    pipeline: str = Arg(..., metavar="PIPELINE", help="Saved pipeline: folder or package"),
    as_json: shared.Json = False,
    plot: Path | None = Opt(None, metavar="FILE", help="File for a plot of them, like weights.png"),
    code: shared.Code = None,
) -> None:
    """A row for each component and place (input and output of its network): the layers' weights and gamma."""
    import_code(code)
    if plot is not None:
        shared.hold(plot, [pipeline_folder(pipeline)], begins=b"\x89PNG" if plot.suffix.lower() == ".png" else b"")
    nlp = load_pipeline(pipeline)
    mixes = learned_mixes(nlp)
    if not mixes:
        raise CommandError(
            f"{pipeline}: no mix of a biLM's layers in the components {', '.join(nlp.component_names) or '(none)'}. "
            "Expected one on spacy-elmo.Tok2Vec.v1 or spacy-elmo.ElmoTok2Vec.v1, as elmo init-config writes it."
        )
    if plot is not None:
        plot_weights(mixes, plot)
    if as_json:
        print_json([mix.to_dict() for mix in mixes])
        return
    layers = max(len(mix.weights) for mix in mixes)
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        blanks = [""] * (layers - len(weights))
        rows.append((mix.component, mix.place, mix.source, *weights, *blanks, f"{mix.gamma:.3f}"))
    header = ("component", "place", "source", *(f"layer {k}" for k in range(layers)), "gamma")
    msg.table(rows, header=header, aligns="lll" + "r" * (layers + 1))
    msg.text("Weights of the layers after the softmax; layer 0 is the character encoder's. gamma scales their sum.")
    if plot is not None:
        msg.good(f"{plot}: the picture of it")


def plot_weights(mixes: list[LearnedMix], path: Path) -> None:
    """Write a plot of the mixes' weights: a row for each mix, with a column for each layer and gamma."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CommandError("--plot needs matplotlib, which is missing. Get it with pip install matplotlib.") from error
    layers = max(len(mix.weights) for mix in mixes)
    cells = np.full((len(mixes), layers), np.nan)
    for row, mix in enumerate(mixes):
        cells[row, : len(mix.weights)] = mix.weights
    names = [f"{mix.component}, {mix.place}" for mix in mixes]
    width = 2.4 + 1.1 * layers + 0.08 * max(map(len, names))  # inches; a name's letter takes about 0.08
    figure = Figure(figsize=(width, 1.3 + 0.42 * len(mixes)), layout="constrained")
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FigureCanvasAgg(figure).get_supported_filetypes():
        raise CommandError(f"--plot is {path}: {kind!r} can't be drawn. Expected a name that ends in .png.")
    axes = figure.add_subplot()
    axes.set_facecolor("#d8d8d8")  # of layers that a mix does not have
    image = axes.imshow(cells, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), weight in np.ndenumerate(cells):
        if np.isfinite(weight):
            colour = "white" if weight > 0.6 else "black"
            axes.text(column, row, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(layers), [f"layer {k}" for k in range(layers)])
    axes.set_yticks(range(len(mixes)), names)
    gammas = axes.secondary_yaxis("right")
    gammas.set_yticks(range(len(mixes)), [f"gamma {mix.gamma:.2f}" for mix in mixes])
    axes.set_title("Weights of the biLM's layers (softmax)", fontsize=10)
    figure.colorbar(image, ax=axes, label="weight")
    with shared.written(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=120)
