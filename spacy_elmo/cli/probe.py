"""`elmo probe`: what a linear classifier reads from each layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code

from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import Code, Json, Model, PipeName, bilm_of, shown_bar

if TYPE_CHECKING:
    from ..analysis.probing import Probes, Score
    from ..corpus.bilm import BiLMChoice

TRAINED, RANDOM = "trained", "random"  # which weights, in JSON
_WIDEST = 40  # characters of a column


def probe(
    train: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN",
            help="Annotated corpus to train the classifiers on: .spacy or .conllu, a file or a folder",
        ),
    ],
    dev: Annotated[Path, typer.Argument(metavar="DEV", help="Annotated corpus to score them on")],
    attribute: Annotated[
        str,
        typer.Option(
            "--attr",
            "-a",
            metavar="NAME",
            help="Which labels: upos, tag, ent (IOB and type), another attribute of spaCy's tokens, such as dep, or "
            "_.NAME for an extension attribute",
        ),
    ] = "upos",
    model: Model = EMBEDDED,
    pipe: PipeName = None,
    code: Code = None,
    random: Annotated[
        bool, typer.Option("--random", help="Probe the same biLM with random weights too, for comparison")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Of the random weights")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Read no more than this many sentences of each part")
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of the classifiers' training (L-BFGS), at most")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Measure what each layer tells a linear classifier.

    A classifier of the tokens' labels is trained on each frozen layer, and on the mean of the layers. A table shows how
    many tokens of DEV get the right label. The first row gives each word its most frequent label in TRAIN.
    """
    from ..analysis.probing import Probes, label_getter, read_labelled, row_keys

    import_code(code)
    choice = bilm_of(model, pipe)
    getter = label_getter(attribute)
    of_train, of_dev = (read_labelled(path, attribute, getter, limit) for path in (train, dev))
    probes = Probes(of_train, of_dev, attribute, iterations)
    majority = probes.majority()
    found = _run_probes(probes, choice, seed if random else None)
    if not as_json:
        _show(attribute, probes, majority, found)
        if train.samefile(dev):
            msg.warn("TRAIN and DEV are the same file: the figures tell how well the classifiers learn by heart")
        return
    layers = [
        {"layer": key} | {name: scores[i]._asdict() for name, scores in found.items()}
        for i, key in enumerate(row_keys(len(found[TRAINED]) - 1))
    ]
    print_json(
        {
            "model": model,
            "attribute": attribute,
            "labels": len(probes.labels),
            "train_tokens": probes.train_tokens,
            "dev_tokens": probes.dev_tokens,
            "dev_tokens_with_unknown_labels": probes.unknown_tokens,
            "majority": majority._asdict(),
            "layers": layers,
        }
    )


def _run_probes(probes: Probes, choice: BiLMChoice, seed: int | None) -> dict[str, list[Score]]:
    """Return the scores of each layer and of their mean, for the trained weights, and for random ones.

    seed: of the random weights; None: they are left out.
    """
    from ..analysis.probing import random_weights

    options, arrays = choice.load_arrays()
    weights = {TRAINED: arrays}
    if seed is not None:
        weights[RANDOM] = random_weights(options, seed)
    found: dict[str, list[Score]] = {}
    tokens, rows = len(probes.train.labels) + len(probes.dev.labels), options.layers + 1
    for name in list(weights):
        bilm = choice.load((options, weights.pop(name)))
        with shown_bar(total=tokens, unit=" tokens", desc=f"{name} weights") as bar:
            scores = probes.run(bilm, bar.update)
        with shown_bar(total=rows, unit=" classifiers", desc=f"{name} weights") as bar:
            found[name] = []
            for score in scores:
                found[name].append(score)
                bar.update()
    return found


def _show(attribute: str, probes: Probes, majority: Score, found: dict[str, list[Score]]) -> None:
    """Print a table with a row for the most frequent labels, for each layer, and for their mean."""
    from ..analysis.probing import row_titles

    msg.text(f"{attribute}: {len(probes.labels):,} labels")
    msg.text(
        f"{probes.train_tokens:,} tokens to train on, {probes.dev_tokens:,} to score, of which this many % are right"
    )
    frequent = _cells(majority)
    rows = [("most frequent label of the word", *frequent, *[""] * len(frequent) * (len(found) - 1))]
    for i, title in enumerate(row_titles(len(found[TRAINED]) - 1)):
        rows.append((title, *(cell for scores in found.values() for cell in _cells(scores[i]))))
    titles = {TRAINED: "biLM", RANDOM: "random weights"}
    header = ["% right", *(text for name in found for text in (titles[name], "F1")[: len(frequent)])]
    msg.table(rows, header=header, divider=True, aligns=("l", *["r"] * (len(header) - 1)), max_col=_WIDEST)
    if probes.unknown_tokens:
        msg.warn(
            f"tokens to score whose label the training part lacks, so they count as wrong: {probes.unknown_tokens:,}"
        )
    if majority.f1 is not None:
        msg.text("F1: of the labels other than O, token by token")


def _cells(score: Score) -> list[str]:
    return [f"{100 * share:.1f}" for share in score if share is not None]
