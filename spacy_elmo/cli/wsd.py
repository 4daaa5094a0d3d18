"""`elmo wsd`: word senses by the nearest neighbour, layer by layer."""

from itertools import combinations
from pathlib import Path
from typing import Any

from spacy.cli._util import Arg, Opt

from ..analysis import senses
from ..analysis.probing import row_titles
from ..errors import CommandError
from ..modules.loading import EMBEDDED
from . import shared
from .console import msg, print_json

_TRAIN = "Training corpus: a line for each word: word, lemma, part of speech, senses, with tabs"
_FIRST = "First senses: lemma, part of speech and sense, divided by tabs"
_SCORES = ("precision", "recall", "f1")


def wsd(
    train: Path = Arg(..., metavar="TRAIN", help=_TRAIN),
    tests: list[Path] = Arg(..., metavar="TEST", help="Test sets, in the same form"),
    first_senses: Path | None = Opt(None, "--first-senses", "-f", metavar="FILE", help=_FIRST),
    model: shared.Model = EMBEDDED,
    pipe: shared.PipeName = None,
    code: shared.Code = None,
    as_json: shared.Json = False,
) -> None:
    """A word of a test set gets the sense of its lemma and part of speech whose mean vector in the training corpus is
    nearest, by the cosine. The row before the layers gives all words their first sense.
    """
    choice = shared.bilm_of(model, pipe, code)
    training, *sets = map(senses.read_senses, [train, *tests])
    for one, other in combinations(tests, 2):
        if one.samefile(other):  # the last column counts the words of all
            raise CommandError(f"the test sets {one} and {other} are the same file. Expected each once: leave one out.")
    listed = {} if first_senses is None else senses.read_first_senses(first_senses)
    bilm = choice.load()
    layers = bilm.options.layers
    inventory, results = senses.SenseInventory(), []
    with shared.shown_bar(total=sum(map(len, [training, *sets])), unit=" sentences") as bar:
        for instance, vectors in senses.instance_vectors(bilm, training, bar.update):
            inventory.add(instance, vectors)
        for sentences in sets:
            vectors_of = senses.instance_vectors(bilm, sentences, bar.update)
            results.append(senses.evaluate(inventory, listed, vectors_of, layers + 1))
    total = senses.all_together(results)
    if as_json:
        told = "most frequent in training" if first_senses is None else "listed"
        record: dict[str, Any] = {"model": model, "lemmas": len(inventory), "senses": inventory.n_senses}
        record |= {"first_senses": told, "all": _as_dict(total)}
        record["tests"] = [{"test": str(path)} | _as_dict(result) for path, result in zip(tests, results)]
        print_json(record)
        return
    columns = [*results, total]
    msg.text(f"training corpus: {inventory.n_senses:,} senses of {len(inventory):,} lemmas")
    rows = [
        ("instances", *(f"{result.first_sense.instances:,}" for result in columns)),
        ("not in the training corpus", *(f"{result.unseen:,}" for result in columns)),
        ("first sense", *(f"{100 * result.first_sense.f1:.1f}" for result in columns)),
    ]
    for i, title in enumerate(row_titles(layers).values()):
        rows.append((title, *(f"{100 * result.rows[i].f1:.1f}" for result in columns)))
    msg.table(rows, header=("F1 in %", *(path.stem for path in tests), "all"), aligns="l" + "r" * len(columns))
    source = "the most frequent one in the training corpus" if first_senses is None else "the listed one"
    msg.text(f"first sense: {source}; the layers answer with it if the training corpus does not have the lemma")
    if unanswered := total.first_sense.instances - total.rows[0].answered:
        msg.warn(f"without an answer, because no first sense is known: {unanswered:,}; --first-senses gives a list")
    if any(train.samefile(test) for test in tests):
        msg.warn("TRAIN is a test set too: its figures tell what was learned by heart")


def _as_dict(result: senses.SenseResult) -> dict[str, Any]:
    first, *layers = ({name: getattr(score, name) for name in _SCORES} for score in (result.first_sense, *result.rows))
    rows = [{"layer": key} | layer for key, layer in zip(row_titles(len(layers) - 1), layers)]
    counts = {"instances": result.first_sense.instances, "not_in_training": result.unseen}
    return counts | {"first_sense": first, "layers": rows}
