"""Score the model-best of each run of tasks on the test part, once, and write what was measured to results/TASK.json.

A run whose result is there is not scored again, unless it was trained anew since then.

    python -m scripts.runs.evaluate_runs ner --networks "baseline elmo" --seeds "0 1 2"
    OMP_NUM_THREADS=2 python -m scripts.runs.evaluate_runs ner --networks "baseline elmo" --speed

--speed: words a second of the first run of each network instead, on two threads, without ELMo's caches. The networks
take turns, so that what else the machine does slows all of them alike.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import spacy
import torch
import typer
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus
from spacy.util import load_config
from thinc.api import Model
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.mixes import learned_mixes
from spacy_elmo.tasks.shared import build_given_spans

from ..shared import origin, run_command
from . import experiments
from .experiments import Gpu, Networks, Seeds, Task, folder_of, keep_result
from .transformer import PIPE

ROUNDS, THREADS = 5, 2  # of which the median is taken, after one to warm up; of PyTorch
# Each round has the same docs
NO_CACHES: dict[str, dict[str, Any]] = {
    "elmo": {"components.elmo.cache_mb": 0, "components.elmo.model.cached_words": 0},
    PIPE: {f"components.{PIPE}.keep": False},
}


def numbers_in(scores: dict[str, Any], task: Task, corpus: str) -> dict[str, float]:
    """Return the scores that are numbers. Raises CommandError if a measure of the task is not among them."""
    numbers = {name: value for name, value in scores.items() if isinstance(value, float)}
    if missing := [name for key, name in task.measures.items() if key not in numbers]:
        raise CommandError(f"{corpus}: its docs give no {', '.join(missing)}. Expected docs with annotations.")
    return numbers


def parameters(nlp: Language) -> int:
    """Return the number of weights of all components but biLMs and frozen transformers."""
    count = 0
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model) or nlp.get_pipe_meta(name).factory in NO_CACHES:
            continue
        for node in model.walk():
            count += sum(node.get_param(key).size for key in node.param_names if node.has_param(key))
            for shim in node.shims:
                network = getattr(shim, "_model", None)
                count += sum(weight.numel() for weight in network.parameters()) if network is not None else 0
    return count


def measure(task: Task, folder: Path) -> dict[str, Any]:
    """Return what is measured of the pipeline of a run. folder: with model-best."""
    nlp, tests = spacy.load(folder / "model-best"), {}
    augmenter = build_given_spans(list(task.given)) if task.given else None
    for name, path in task.tests.items():
        examples = list(Corpus(path, gold_preproc=task.gold_preproc, augmenter=augmenter)(nlp))
        tests[name] = numbers_in(nlp.evaluate(examples), task, path)
    megabytes = sum(path.stat().st_size for path in (folder / "model-best").rglob("*") if path.is_file()) / 1e6
    return {
        "parameters": parameters(nlp),
        "megabytes": round(megabytes, 1),
        "words_per_second": round(next(iter(tests.values()))["speed"]),
        "tests": tests,
        "mixes": [mix.to_dict() for mix in learned_mixes(nlp)],
    }


def score(task: Task, name: str, folder: Path) -> None:
    """Put NETWORK/seed-N, the name of a run, into results/TASK.json. folder: of the run."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts = {key: run[key] for key in ("fingerprint", "commit", "machine", "bilm")}
    facts["minutes"] = round(run["seconds"] / 60, 1)
    facts["dev"] = {key: value for key, value in run["dev"].items() if isinstance(value, float)}
    facts["test_files"] = {test: get_checksum(path) for test, path in task.tests.items()}
    found = experiments.read_results(task.name).get(name, {})
    if {key: found.get(key) for key in facts} == facts:
        print(f"{folder}: scored before")
        return
    result = measure(task, folder)
    keep_result(task.name, name, {**facts, **result, "curve": run["curve"]})
    print(json.dumps(result["tests"]))


def measure_speed(task: Task, networks: list[str]) -> None:
    """Put NETWORK/speed into results/TASK.json for each network."""
    torch.set_num_threads(THREADS)
    pipelines = {}
    for name in networks:
        folder = folder_of(task, name, 0) / "model-best"
        names = load_config(folder / "config.cfg")["nlp"]["pipeline"]
        settings = next((NO_CACHES[pipe] for pipe in names if pipe in NO_CACHES), {})
        pipelines[name] = spacy.load(folder, config=settings)
    speeds: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(ROUNDS + 1):
        for name, nlp in pipelines.items():
            docs = [
                Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
                for doc in DocBin().from_disk(next(iter(task.tests.values()))).get_docs(nlp.vocab)
            ]
            begin = time.perf_counter()
            for _ in nlp.pipe(docs):
                pass
            speeds[name].append(sum(map(len, docs)) / (time.perf_counter() - begin))
    for name, measured in speeds.items():
        median = round(statistics.median(measured[1:]))
        facts = {"threads": THREADS, "rounds": ROUNDS, **origin()}
        keep_result(task.name, f"{name}/speed", {"words_per_second": median, **facts})


def main(
    tasks: list[str],
    networks: Networks = "baseline elmo",
    seeds: Seeds = "0 1 2",
    gpu_id: Gpu = -1,
    speed: Annotated[bool, typer.Option("--speed", help="Measure words a second")] = False,
) -> None:
    """Put NETWORK/seed-N into results/TASK.json for each run of TASKS that was trained; all: of all tasks."""
    setup_gpu(gpu_id, silent=True)
    numbers = experiments.seeds_of(seeds)
    for task in experiments.tasks_of(tasks):
        names = experiments.networks_of(networks)
        if speed:
            measure_speed(task, names)
            continue
        runs = {f"{name}/seed-{seed}": folder_of(task, name, seed) for name in names for seed in numbers}
        trained = {name: folder for name, folder in runs.items() if (folder / "run.json").is_file()}
        if not trained:
            raise CommandError(f"training/{task.name}: no trained run in it. Expected NETWORK/seed-N: train first.")
        for name, folder in trained.items():
            score(task, name, folder)


if __name__ == "__main__":
    run_command(main)
