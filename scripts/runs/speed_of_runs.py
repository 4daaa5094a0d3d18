"""Measure how many words a second the first run of networks annotates, on two threads.

The networks take turns, so that what else the machine does slows all of them alike. ELMo's caches are off, those of
sentences and of words, because each round has the same docs.

    OMP_NUM_THREADS=2 python -m scripts.runs.speed_of_runs "ner/baseline ner/elmo"
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

from spacy_elmo.errors import CommandError

from ..shared.command import run_command
from ..shared.measurement import commit_of, machine, write_record
from ..shared.messages import Messages
from .experiments import folder_of, speed_of
from .train_runs import task_of

_SEED = 0


def load(folder: Path) -> Language:
    """Return a trained pipeline whose ELMo, if it has any, caches nothing."""
    nlp = spacy.load(folder)
    if "elmo" not in nlp.pipe_names:
        return nlp
    return spacy.load(folder, config={"components.elmo.cache_mb": 0, "components.elmo.model.cached_words": 0})


def words_per_second(nlp: Language, corpus: Path) -> float:
    """Return the speed of a pipeline on the words of a .spacy file. Raises CommandError if it has none."""
    if not corpus.is_file():
        raise CommandError(Messages.CORPUS_MISSING.format(path=corpus))
    docs = [
        Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
        for doc in DocBin().from_disk(corpus).get_docs(nlp.vocab)
    ]
    if not any(map(len, docs)):
        raise CommandError(Messages.NO_DOCS.format(path=corpus))
    begin = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    return sum(map(len, docs)) / (time.perf_counter() - begin)


def main(
    networks: str,
    rounds: Annotated[int, typer.Option(min=1, help="Of which the median is taken, after one to warm up")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Of PyTorch")] = 2,
) -> None:
    """Write results/TASK/NETWORK/speed.json for each of NETWORKS, TASK/NETWORK separated by blanks."""
    project = Path()
    torch.set_num_threads(threads)
    pipelines, corpora = {}, {}
    if not networks.strip():
        raise CommandError(Messages.SPEEDS)
    for one in networks.split():
        task_name, _, name = one.partition("/")
        task = task_of(task_name)
        if name not in task.networks:
            raise CommandError(Messages.NETWORKS.format(got=one, expected=", ".join(task.networks)))
        folder = folder_of(project, task_name, name, _SEED) / "model-best"
        if not folder.is_dir():
            raise CommandError(Messages.NO_RUNS.format(path=folder))
        pipelines[one], corpora[one] = load(folder), Path(next(iter(task.tests.values())))
    speeds: dict[str, list[float]] = {name: [] for name in pipelines}
    for _ in range(rounds + 1):
        for one, nlp in pipelines.items():
            speeds[one].append(words_per_second(nlp, corpora[one]))
    facts = {"threads": threads, "rounds": rounds, "commit": commit_of(project), "machine": machine()}
    for one, measured in speeds.items():
        target = speed_of(project, *one.split("/", 1))
        median = round(statistics.median(measured[1:]))
        write_record(target, {"words_per_second": median, **facts})
        print(f"{target}: {median:,} words/s")


if __name__ == "__main__":
    run_command(main)
