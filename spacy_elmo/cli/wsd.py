"""`elmo wsd`: word senses by the nearest neighbour, layer by layer."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from spacy.cli._util import import_code

from ..errors import CommandError
from ..modules.loading import EMBEDDED
from .console import msg, print_json
from .shared import Code, Json, Model, PipeName, bilm_of, shown_bar

if TYPE_CHECKING:
    from ..analysis.senses import SenseInventory, SenseResult, SenseScore, SenseSentence
    from ..corpus.bilm import BiLMChoice

_WIDEST = 40  # characters of a column


def wsd(
    train: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN",
            help="Training corpus: a line for each word with lemma, part of speech and senses, divided by tabs, - for "
            "no sense; an empty line ends a sentence",
        ),
    ],
    tests: Annotated[
        list[Path],
        typer.Argument(metavar="TEST", help="Test sets, in the same form"),
    ],
    first_senses: Annotated[
        Path | None,
        typer.Option(
            "--first-senses",
            "-f",
            metavar="FILE",
            help="First sense of each lemma, such as WordNet's: lemma, part of speech and sense, divided by tabs. "
            "Default: the most frequent sense in TRAIN",
        ),
    ] = None,
    model: Model = EMBEDDED,
    pipe: PipeName = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Measure how well each layer tells word senses apart.

    A word of a test set gets the sense of its lemma and part of speech whose mean vector in the training corpus is
    nearest, by the cosine. The row before the layers gives all words their first sense.
    """
    from ..analysis.senses import all_together, read_senses

    import_code(code)
    choice = bilm_of(model, pipe)
    training, *sets = map(read_senses, [train, *tests])
    for one, other in combinations(tests, 2):
        if one.samefile(other):
            raise CommandError(
                f"the test sets {one} and {other} are the same file. Expected each file once, because the last "
                "column counts the words of all: leave one out."
            )
    inventory, results = _find_senses(training, sets, first_senses, choice)
    listed = first_senses is not None
    if not as_json:
        _show(inventory, listed, tests, results)
        if any(train.samefile(test) for test in tests):
            msg.warn("TRAIN is a test set too: its figures tell what was learned by heart")
        return
    print_json(
        {
            "model": model,
            "lemmas": len(inventory),
            "senses": inventory.n_senses,
            "first_senses": "listed" if listed else "most frequent in training",
            "tests": [{"test": str(path)} | _result_dict(result) for path, result in zip(tests, results)],
            "all": _result_dict(all_together(results)),
        }
    )


def _find_senses(
    train: list[SenseSentence], tests: list[list[SenseSentence]], first: Path | None, choice: BiLMChoice
) -> tuple[SenseInventory, list[SenseResult]]:
    """Return the senses of the training corpus, and the result of each test set, with a bar on standard error."""
    from ..analysis.senses import FirstSenses, SenseInventory, evaluate, instance_vectors, read_first_senses

    listed = {} if first is None else read_first_senses(first)
    bilm = choice.load()
    rows = bilm.options.layers + 1
    inventory, results = SenseInventory(), []
    with shown_bar(total=len(train) + sum(map(len, tests)), unit=" sentences") as bar:
        for instance, vectors in instance_vectors(bilm, train, bar.update):
            inventory.add(instance, vectors)
        first_senses = FirstSenses(listed, inventory)
        for sentences in tests:
            instances = instance_vectors(bilm, sentences, bar.update)
            results.append(evaluate(inventory, first_senses, instances, rows))
    return inventory, results


def _result_dict(result: SenseResult) -> dict[str, Any]:
    from ..analysis.probing import row_keys

    return {
        "instances": result.first_sense.instances,
        "not_in_training": result.unseen,
        "first_sense": _score_dict(result.first_sense),
        "layers": [{"layer": key} | _score_dict(row) for key, row in zip(row_keys(len(result.rows) - 1), result.rows)],
    }


def _score_dict(score: SenseScore) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}


def _show(inventory: SenseInventory, listed: bool, tests: list[Path], results: list[SenseResult]) -> None:
    """Print F1 as a table: a column for each test set."""
    from ..analysis.probing import row_titles
    from ..analysis.senses import all_together

    total = all_together(results)
    columns = [*results, total]
    msg.text(f"training corpus: {inventory.n_senses:,} senses of {len(inventory):,} lemmas")
    rows = [
        ("instances", *(f"{result.first_sense.instances:,}" for result in columns)),
        ("not in the training corpus", *(f"{result.unseen:,}" for result in columns)),
        ("first sense", *(_percent(result.first_sense.f1) for result in columns)),
    ]
    for i, title in enumerate(row_titles(len(columns[0].rows) - 1)):
        rows.append((title, *(_percent(result.rows[i].f1) for result in columns)))
    header = ("F1 in %", *(path.stem for path in tests), "all")
    msg.table(rows, header=header, divider=True, aligns=("l", *["r"] * len(columns)), max_col=_WIDEST)
    first = "the listed one" if listed else "the most frequent one in the training corpus"
    msg.text(f"first sense: {first}; the layers answer with it if the training corpus does not have the lemma")
    unanswered = total.first_sense.instances - total.rows[0].answered
    if unanswered:
        msg.warn(f"without an answer, because no first sense is known: {unanswered:,}; --first-senses gives a list")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
