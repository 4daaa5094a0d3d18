"""Score the model-best of each run of a task on the test part, once, and write what was measured to results/TASK.json.

Ablations are scored on the development part. A run whose result is there is not scored again, unless it was trained
anew since then.

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
from thinc.api import Model
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.mixes import learned_mixes
from spacy_elmo.tasks.shared import build_given_spans

from ..shared import run_command
from .experiments import Task, folder_of, keep_result, networks_of, read_results, seeds_of, task_of


def scores_on(nlp: Language, corpus: str, task: Task) -> dict[str, float]:
    """Return the scores of a pipeline on a file of docs that are numbers, "speed" in words per second among them.

    Raises CommandError if it has no docs, or if they lack the task's annotations.
    """
    augmenter = build_given_spans(list(task.given)) if task.given else None
    examples = list(Corpus(corpus, gold_preproc=task.gold_preproc, augmenter=augmenter)(nlp))
    return numbers_in(nlp.evaluate(examples), task, corpus)


def numbers_in(scores: dict[str, Any], task: Task, corpus: str) -> dict[str, float]:
    """Return the scores that are numbers. Raises CommandError if a measure of the task is not among them."""
    numbers = {name: value for name, value in scores.items() if isinstance(value, float)}
    if missing := [name for key, name in task.measures.items() if key not in numbers]:
        raise CommandError(f"{corpus}: its docs give no {', '.join(missing)}. Expected docs with annotations.")
    return numbers


def parameters(nlp: Language) -> int:
    """Return the number of weights of all components but biLMs."""
    count = 0
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model) or nlp.get_pipe_meta(name).factory == "elmo":
            continue
        for node in model.walk():
            count += sum(node.get_param(key).size for key in node.param_names if node.has_param(key))
            for shim in node.shims:
                network = getattr(shim, "_model", None)
                count += sum(weight.numel() for weight in network.parameters()) if network is not None else 0
    return count


def measure(task: Task, folder: Path, facts: dict[str, Any], curve: list[Any]) -> dict[str, Any]:
    """Return what is written of a run. folder: with model-best. facts: of its training."""
    nlp = spacy.load(folder / "model-best")
    tests = {name: scores_on(nlp, path, task) for name, path in task.tests.items()}
    megabytes = sum(path.stat().st_size for path in (folder / "model-best").rglob("*") if path.is_file()) / 1e6
    return {
        **facts,
        "parameters": parameters(nlp),
        "megabytes": round(megabytes, 1),
        "words_per_second": round(next(iter(tests.values()))["speed"]),
        "tests": tests,
        "curve": curve,
        "mixes": [mix.to_dict() for mix in learned_mixes(nlp)],
    }


def main(
    task: str,
    networks: Annotated[str, typer.Option(help="Separated by blanks")] = "baseline elmo",
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
) -> None:
    """Put NETWORK/seed-N into results/TASK.json for each run of TASK that was trained."""
    chosen, trained = task_of(task), 0
    setup_gpu(gpu_id, silent=True)
    for name in networks_of(networks, chosen):
        for seed in seeds_of(seeds):
            folder = folder_of(task, name, seed)
            if not (folder / "run.json").is_file():
                continue
            trained += 1
            run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            facts = {key: run[key] for key in ("fingerprint", "commit", "machine", "bilm")}
            facts["minutes"] = round(run["seconds"] / 60, 1)
            facts["dev"] = {key: value for key, value in run["dev"].items() if isinstance(value, float)}
            facts["test_files"] = {test: get_checksum(path) for test, path in chosen.tests.items()}
            found = read_results(task).get(f"{name}/seed-{seed}", {})
            if {key: found.get(key) for key in facts} == facts:
                print(f"{folder}: scored before")
                continue
            result = measure(chosen, folder, facts, run["curve"])
            keep_result(task, f"{name}/seed-{seed}", result)
            print(json.dumps(result["tests"]))
    if not trained:
        raise CommandError(f"{Path('training', task)}: no trained run in it. Expected NETWORK/seed-N: train first.")


if __name__ == "__main__":
    run_command(main)
