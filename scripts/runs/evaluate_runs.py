"""Score the model-best of each run of a task on the test part, once, and write what was measured to results/.

Ablations are scored on the development part.

A run whose result is there is not scored again, unless it was trained anew since then.

    python -m scripts.runs.evaluate_runs ner --networks "baseline elmo" --seeds "0 1 2"
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.training import Corpus
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.mixes import learned_mixes
from spacy_elmo.tasks.shared import build_given_spans

from ..shared.command import run_command
from ..shared.measurement import write_record
from ..shared.messages import Messages
from .experiments import Task, folder_of, result_of
from .facts_of_runs import megabytes, parameters
from .train_runs import networks_of, read_run, seeds_of, task_of


def scores_on(nlp: Language, corpus: Path, task: Task) -> dict[str, float]:
    """Return the scores of a pipeline on a file of docs that are numbers, "speed" in words per second among them.

    Raises CommandError if there is no such file, if it has no docs, or if they lack the task's annotations.
    """
    if not corpus.is_file():
        raise CommandError(Messages.CORPUS_MISSING.format(path=corpus))
    augmenter = build_given_spans(list(task.given)) if task.given else None
    docs = Corpus(corpus, gold_preproc=task.gold_preproc, augmenter=augmenter)
    examples = list(docs(nlp))
    if not examples:
        raise CommandError(Messages.NO_DOCS.format(path=corpus))
    return require_measures(task, numbers_in(nlp.evaluate(examples)), corpus)


def require_measures(task: Task, scores: dict[str, float], corpus: Path) -> dict[str, float]:
    """Return scores. Raises CommandError if a measure of the task is not among them. corpus: that was scored."""
    if missing := [one.name for one in task.measures if one.key not in scores]:
        raise CommandError(Messages.NO_MEASURE.format(path=corpus, missing=", ".join(missing)))
    return scores


def numbers_in(scores: dict[str, Any]) -> dict[str, float]:
    """Return the scores that are numbers."""
    return {name: value for name, value in scores.items() if isinstance(value, float)}


def facts_of_training(run: dict[str, Any]) -> dict[str, Any]:
    """Return what a result has of a training, by which it is known again. run: what training wrote."""
    return {
        "fingerprint": run["fingerprint"],
        "commit": run["commit"],
        "machine": run["machine"],
        "bilm": run.get("bilm", ""),  # runs of before it was recorded have none
        "minutes": round(run["seconds"] / 60, 1),
        "dev": numbers_in(run["dev"]),
    }


def test_files_of(task: Task) -> dict[str, str]:
    """Return the MD5 of each test file of a task that is there."""
    return {name: get_checksum(path) for name, path in task.tests.items() if Path(path).is_file()}


def is_scored(target: Path, run: dict[str, Any], test_files: dict[str, str]) -> bool:
    """Return whether a file is the result of this training and these test files.

    The training may be another one with the same settings.

    test_files: as of `test_files_of`.
    """
    if not target.is_file():
        return False
    facts = facts_of_training(run)
    try:
        result = json.loads(target.read_text(encoding="utf-8"))
        files = result.get("test_files", test_files)  # results of before they were recorded have none
    except (OSError, ValueError, AttributeError, RecursionError):  # it is damaged
        return False
    return {name: result.get(name) for name in facts} == facts and files == test_files


def load_run(folder: Path) -> Language:
    """Return the pipeline that a run has trained: its model-best. Raises CommandError if it can't be loaded."""
    path = folder / "model-best"
    try:
        return spacy.load(path)
    except (OSError, ValueError) as error:
        raise CommandError(Messages.RUN.format(path=path, reason=error)) from error


def measure(task: Task, folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    """Return what is written of a run. folder: it has model-best. run: what training wrote."""
    nlp = load_run(folder)
    tests = {name: scores_on(nlp, Path(path), task) for name, path in task.tests.items()}
    return {
        **facts_of_training(run),
        "parameters": parameters(nlp),
        "megabytes": round(megabytes(folder / "model-best"), 1),
        "words_per_second": round(next(iter(tests.values()))["speed"]),
        "tests": tests,
        "test_files": test_files_of(task),
        "curve": run.get("curve", []),
        "mixes": [mix.to_dict() for mix in learned_mixes(nlp)],
    }


def main(
    task: str,
    networks: Annotated[str, typer.Option(help="Separated by blanks")] = "baseline elmo",
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
) -> None:
    """Write results/TASK/NETWORK/seed-N.json for each run of TASK that was trained."""
    chosen, project, found = task_of(task), Path(), 0
    setup_gpu(gpu_id, silent=True)
    for name in networks_of(networks, chosen):
        for seed in seeds_of(seeds):
            folder, target = folder_of(project, task, name, seed), result_of(project, task, name, seed)
            if not (folder / "run.json").is_file():
                continue
            found += 1
            run = read_run(folder / "run.json")
            if is_scored(target, run, test_files_of(chosen)):
                print(f"{target}: scored before")
                continue
            result = measure(chosen, folder, run)
            write_record(target, result)
            print(f"{target}: {json.dumps(result['tests'])}")
    if not found:
        raise CommandError(Messages.NO_RUNS.format(path=project / "training" / task))


if __name__ == "__main__":
    run_command(main)
