"""`elmo probe`: what a linear classifier reads from each layer."""

from pathlib import Path
from typing import Any

from spacy.cli._util import Arg, Opt

from ..analysis.probing import Probes, Score, label_getter, random_weights, read_labelled, row_titles
from ..modules.loading import EMBEDDED
from . import shared
from .console import msg, print_json

TITLES = {"trained": "biLM", "random": "random weights"}  # which weights: in JSON, and in the table


def probe(
    train: Path = Arg(..., metavar="TRAIN", help="Annotated corpus to train on: .spacy or .conllu, a file or a folder"),
    dev: Path = Arg(..., metavar="DEV", help="Annotated corpus to score them on"),
    attribute: str = Opt("upos", "--attr", "-a", metavar="NAME", help="Labels: upos, tag, ent, dep ... or _.NAME"),
    model: shared.Model = EMBEDDED,
    pipe: shared.PipeName = None,
    code: shared.Code = None,
    random: bool = Opt(False, "--random", help="Probe the same biLM with random weights too, for comparison"),
    seed: int = Opt(0, min=0, max=2**63 - 1, metavar="N", help="Of the random weights"),
    limit: int | None = Opt(None, min=1, metavar="N", help="Read no more than this many sentences of each part"),
    iterations: int = Opt(100, min=1, metavar="N", help="Of the classifiers' training (L-BFGS), at most"),
    as_json: shared.Json = False,
) -> None:
    """A classifier of the tokens' labels is trained on each frozen layer, and on the mean of the layers. A table shows
    how many tokens of DEV get the right label. The first row gives each word its most frequent label in TRAIN.
    """
    choice = shared.bilm_of(model, pipe, code)
    getter = label_getter(attribute)
    of_train, of_dev = (read_labelled(path, attribute, getter, limit) for path in (train, dev))
    probes = Probes(of_train, of_dev, attribute, iterations)
    majority = probes.majority()
    options, arrays = choice.load_arrays()
    weights = {"trained": arrays} | ({"random": random_weights(options, seed)} if random else {})
    found: dict[str, list[Score]] = {}
    for name in list(weights):
        bilm = choice.load((options, weights.pop(name)))
        n_tokens = len(of_train.labels) + len(of_dev.labels)
        with shared.shown_bar(total=n_tokens, unit=" tokens", desc=f"{name} weights") as bar:
            scores = probes.run(bilm, bar.update)
        total = options.layers + 1
        with shared.shown_bar(iterable=scores, total=total, unit=" classifiers", desc=f"{name} weights") as bar:
            found[name] = list(bar)
    if as_json:
        record: dict[str, Any] = {"model": model, "attribute": attribute, "labels": len(probes.labels)}
        record |= {"train_tokens": probes.train_tokens, "dev_tokens": probes.dev_tokens}
        record |= {"dev_tokens_with_unknown_labels": probes.unknown_tokens, "majority": majority._asdict()}
        rows = zip(row_titles(options.layers), zip(*found.values()))
        layers = [{"layer": key} | dict(zip(found, (score._asdict() for score in row))) for key, row in rows]
        print_json(record | {"layers": layers})
        return
    msg.text(f"{attribute}: {len(probes.labels):,} labels")
    n_train, n_dev = probes.train_tokens, probes.dev_tokens
    msg.text(f"{n_train:,} tokens to train on, {n_dev:,} to score, of which this many % are right")
    frequent = _cells(majority)
    table = [("most frequent label of the word", *frequent, *[""] * len(frequent) * (len(found) - 1))]
    for title, row in zip(row_titles(options.layers).values(), zip(*found.values())):
        table.append((title, *(cell for score in row for cell in _cells(score))))
    header = ["% right", *(text for name in found for text in (TITLES[name], "F1")[: len(frequent)])]
    msg.table(table, header=header, aligns="l" + "r" * (len(header) - 1))
    if probes.unknown_tokens:
        msg.warn(f"tokens whose label the training part lacks, so they count as wrong: {probes.unknown_tokens:,}")
    if majority.f1 is not None:
        msg.text("F1: of the labels other than O, token by token")
    if train.samefile(dev):
        msg.warn("TRAIN and DEV are the same file: the figures tell how well the classifiers learn by heart")


def _cells(score: Score) -> list[str]:
    return [f"{100 * share:.1f}" for share in score if share is not None]
