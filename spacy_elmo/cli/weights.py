"""`elmo weights`: the learnt weights of the layers in a trained pipeline."""

import math
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.cli._util import import_code

from ..errors import CommandError, Errors
from ..pipeline.mixes import LearnedMix, learned_mixes
from ..pipeline.saved import not_loaded
from .shared.console import escaped, print_json, show_all
from .shared.errors import printing_errors
from .shared.options import Code, Json
from .shared.printer import msg
from .views.weights_plot import plot_weights


def read_mixes(pipeline: str) -> list[LearnedMix]:
    """Return the mixes of a saved pipeline. Raises CommandError if it can't be loaded, or has no usable mix."""
    try:
        nlp = spacy.load(pipeline)
    except Exception as error:  # damaged files raise EOFError, KeyError, TokenError and more
        raise not_loaded(pipeline, error) from error
    mixes = learned_mixes(nlp)
    if not mixes:
        got = ", ".join(nlp.component_names) or "(none)"
        raise CommandError(Errors.WEIGHTS_NO_MIX.format(pipeline=pipeline, got=got))
    for mix in mixes:
        if not all(map(math.isfinite, [*mix.w, mix.gamma])):
            raise CommandError(
                Errors.WEIGHTS_NOT_FINITE.format(
                    pipeline=pipeline, component=mix.component, place=mix.place, w=mix.w, gamma=mix.gamma
                )
            )
    return mixes


def show(mixes: list[LearnedMix]) -> None:
    """Print a row for each mix."""
    layers = max(len(mix.weights) for mix in mixes)
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        blanks = [""] * (layers - len(weights))
        rows.append((escaped(mix.component), mix.place, escaped(mix.source), *weights, *blanks, f"{mix.gamma:.3f}"))
    header = ("component", "place", "source", *(f"layer {k}" for k in range(layers)), "gamma")
    msg.table(rows, header=header, divider=True, aligns=("l", "l", "l", *["r"] * (layers + 1)))
    msg.text("Weights of the layers after the softmax; layer 0 is the character encoder's. gamma scales their sum.")


def weights(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="Saved pipeline: folder or package")],
    as_json: Json = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="File for a plot of them, like weights.png")] = None,
    code: Code = None,
) -> None:
    """Show how each component mixes the biLM's layers.

    A row for each component and place (input and output of its network): the layers' weights and gamma.
    """
    show_all()
    import_code(code)
    with printing_errors():
        mixes = read_mixes(pipeline)
        if plot is not None:
            plot_weights(mixes, plot)
    if as_json:
        print_json([mix.to_dict() for mix in mixes])
        return
    show(mixes)
    if plot is not None:
        msg.good(escaped(f"{plot}: the picture of it"))
