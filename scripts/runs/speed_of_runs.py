"""Measure how many words a second the first run of networks annotates, on two threads.

The networks take turns, so that what else the machine does slows all of them alike. ELMo's caches are off, those of
sentences and of words, because each round has the same docs.

    OMP_NUM_THREADS=2 python -m scripts.runs.speed_of_runs ner "baseline elmo"
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Annotated

import spacy
import torch
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from ..shared import commit_of, machine, run_command
from .experiments import folder_of, keep_result, networks_of, task_of


def load(folder: Path) -> Language:
    """Return a trained pipeline whose ELMo, if it has any, caches nothing."""
    nlp = spacy.load(folder)
    if "elmo" not in nlp.pipe_names:
        return nlp
    return spacy.load(folder, config={"components.elmo.cache_mb": 0, "components.elmo.model.cached_words": 0})


def words_per_second(nlp: Language, corpus: str) -> float:
    """Return the speed of a pipeline on the words of a .spacy file."""
    docs = [
        Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
        for doc in DocBin().from_disk(corpus).get_docs(nlp.vocab)
    ]
    begin = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    return sum(map(len, docs)) / (time.perf_counter() - begin)


def main(
    task: str,
    networks: str,
    rounds: Annotated[int, typer.Option(min=1, help="Of which the median is taken, after one to warm up")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Of PyTorch")] = 2,
) -> None:
    """Put NETWORK/speed into results/TASK.json for each of NETWORKS, which are separated by blanks."""
    torch.set_num_threads(threads)
    chosen = task_of(task)
    pipelines = {name: load(folder_of(task, name, 0) / "model-best") for name in networks_of(networks, chosen)}
    corpus = next(iter(chosen.tests.values()))
    speeds = [{name: words_per_second(nlp, corpus) for name, nlp in pipelines.items()} for _ in range(rounds + 1)]
    facts = {"threads": threads, "rounds": rounds, "commit": commit_of(Path()), "machine": machine()}
    for name in pipelines:
        median = round(statistics.median(measured[name] for measured in speeds[1:]))
        keep_result(task, f"{name}/speed", {"words_per_second": median, **facts})
        print(f"{median:,} words/s")


if __name__ == "__main__":
    run_command(main)
