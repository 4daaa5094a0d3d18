"""Find the test paragraphs of `answers` that a biLM's text contains, and score the questions on them and on the others.

    python -m scripts.runs.read_paragraphs wikipedia.txt more.txt --networks "baseline elmo"

XQuAD's paragraphs are of Wikipedia, which `en_mini` has read: what it brings to paragraphs that it has not read must be
told apart. The runs must have been trained.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.tokens import Doc
from spacy.training import Corpus, Example

from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.text import read_sentences

from ..shared.command import run_command
from ..shared.measurement import Measurement
from ..shared.messages import Messages
from .evaluate_runs import load_run, numbers_in
from .experiments import folder_of
from .train_runs import networks_of, read_run, seeds_of, task_of

TASK, PARTS = "answers", ("read", "others")
_WIDTH = 8  # words of a fragment: two texts seldom share one by chance
_LEAST = 0.1  # share of the fragments of a paragraph that was read; of XQuAD, nearly all have none or more than half
_WORD = re.compile(r"\w+")  # so that it does not matter how a text was split into words


def read_paragraphs_of(project: Path) -> Path:
    """Return the file of what was measured."""
    return project / "results" / "read" / f"{TASK}.json"


def fragments(text: str) -> Iterator[str]:
    """Yield all runs of eight words of a text, in lower case, without punctuation."""
    words = _WORD.findall(text.lower())
    for first in range(len(words) - _WIDTH + 1):
        yield " ".join(words[first : first + _WIDTH])


def paragraph_of(doc: Doc) -> str:
    """Return the text in which a question is to be answered."""
    return str(doc.spans["context"][0].text)


def read_ones(paragraphs: Iterable[str], texts: Iterable[Path]) -> set[str]:
    """Return the paragraphs of whose fragments the texts contain a tenth or more.

    texts: files with a sentence a line. A fragment that goes across the end of a sentence is found in none of them.

    Raises ElmoError if a text can't be read.
    """
    parts = {paragraph: set(fragments(paragraph)) for paragraph in paragraphs}
    sought = set[str]().union(*parts.values())
    found: set[str] = set()
    for text in texts:
        for words in read_sentences(text):
            found.update(sought.intersection(fragments(" ".join(words))))
    return {one for one, of_one in parts.items() if of_one and len(of_one & found) >= _LEAST * len(of_one)}


def main(
    texts: Annotated[list[Path], typer.Argument(help="What the biLM read, a sentence a line")],
    networks: Annotated[str, typer.Option(help="Separated by blanks")] = "baseline elmo",
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
) -> None:
    """Write results/read/answers.json: how many paragraphs were read, and the scores on these and on the others."""
    task, project, numbers = task_of(TASK), Path(), seeds_of(seeds)
    runs: dict[str, list[dict[str, Any]]] = {}
    for name in networks_of(networks, task):
        folders = [folder_of(project, TASK, name, seed) for seed in numbers]
        for folder in folders:
            if not (folder / "run.json").is_file():
                raise CommandError(Messages.NO_RUNS.format(path=folder))
        runs[name] = [{"folder": folder, **read_run(folder / "run.json")} for folder in folders]
    measurement = Measurement()
    corpus = Path(task.tests["test"])
    if not corpus.is_file():
        raise CommandError(Messages.CORPUS_MISSING.format(path=corpus))
    docs = [example.reference for example in Corpus(corpus)(spacy.blank("en"))]
    paragraphs = set(map(paragraph_of, docs))
    read = read_ones(paragraphs, texts)
    in_read = [paragraph_of(doc) in read for doc in docs]
    scores = {
        name: [_scores(run["folder"], corpus, in_read) for run in of_network] for name, of_network in runs.items()
    }
    result = {
        "paragraphs": len(paragraphs),
        "read": len(read),
        "questions": {"read": sum(in_read), "others": len(docs) - sum(in_read)},
        "runs": {name: [run["fingerprint"] for run in of_network] for name, of_network in runs.items()},
        "scores": {name: {part: [one[part] for one in of] for part in PARTS} for name, of in scores.items()},
    }
    options = ["--networks", networks, "--seeds", seeds]
    command = shlex.join(["python", "-m", "scripts.runs.read_paragraphs", *map(str, texts), *options])
    measurement.write(read_paragraphs_of(project), command, result)


def _scores(folder: Path, corpus: Path, in_read: Sequence[bool]) -> dict[str, dict[str, float]]:
    """Return the scores of a run on the questions of each part; {} for a part without any."""
    nlp = load_run(folder)
    parts: dict[str, list[Example]] = {part: [] for part in PARTS}
    for example, was_read in zip(Corpus(corpus)(nlp), in_read, strict=True):
        parts["read" if was_read else "others"].append(example)
    return {part: numbers_in(nlp.evaluate(examples)) if examples else {} for part, examples in parts.items()}


if __name__ == "__main__":
    run_command(main)
