"""Find the test paragraphs of `answers` that a biLM's text contains, and score the questions on them and on the others.

    python -m scripts.runs.read_paragraphs wikipedia.txt more.txt

XQuAD's paragraphs are of Wikipedia, which `en_core` has read: what it brings to paragraphs that it has not read must be
told apart. The runs must have been trained.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.training import Corpus, Example

from spacy_elmo.text.stream import read_sentences

from ..shared import origin, run_command
from .evaluate_runs import numbers_in
from .experiments import BASELINE, ELMO, Seeds, folder_of, keep_result, minutes_since, seeds_of, tasks_of

TASK, PARTS = "answers", ("read", "others")
_WIDTH = 8  # words of a fragment: two texts seldom share one by chance
_LEAST = 0.1  # share of the fragments of a paragraph that was read; of XQuAD, nearly all have none or more than half


def fragments(text: str) -> Iterator[str]:
    """Yield all runs of eight words of a text, in lower case, without punctuation: however it was split into words."""
    words = re.findall(r"\w+", text.lower())
    for first in range(len(words) - _WIDTH + 1):
        yield " ".join(words[first : first + _WIDTH])


def read_ones(paragraphs: Iterable[str], texts: Iterable[Path]) -> set[str]:
    """Return the paragraphs of whose fragments the texts contain a tenth or more.

    texts: files with a sentence a line. A fragment that goes across the end of a sentence is found in none of them.
    """
    parts = {paragraph: set(fragments(paragraph)) for paragraph in paragraphs}
    sought = set[str]().union(*parts.values())
    found: set[str] = set()
    for text in texts:
        for words in read_sentences(text):
            found.update(sought.intersection(fragments(" ".join(words))))
    return {one for one, of_one in parts.items() if of_one and len(of_one & found) >= _LEAST * len(of_one)}


def main(
    texts: Annotated[list[Path], typer.Argument(help="What the biLM read, a sentence a line")], seeds: Seeds = "0 1 2"
) -> None:
    """Put "read" into results/answers.json: how many paragraphs were read, and the scores on both kinds."""
    (task,), begin = tasks_of([TASK]), time.perf_counter()
    corpus = task.tests["test"]
    asked = [str(example.reference.spans["context"][0].text) for example in Corpus(corpus)(spacy.blank("en"))]
    read = read_ones(set(asked), texts)
    runs: dict[str, list[str]] = {BASELINE: [], ELMO: []}
    scores: dict[str, dict[str, list[Any]]] = {name: {part: [] for part in PARTS} for name in runs}
    for name in runs:
        for seed in seeds_of(seeds):
            folder = folder_of(task, name, seed)
            runs[name].append(json.loads((folder / "run.json").read_text(encoding="utf-8"))["fingerprint"])
            nlp = spacy.load(folder / "model-best")
            parts: dict[str, list[Example]] = {part: [] for part in PARTS}
            for example, paragraph in zip(Corpus(corpus)(nlp), asked, strict=True):
                parts["read" if paragraph in read else "others"].append(example)
            for part, examples in parts.items():
                measured = numbers_in(nlp.evaluate(examples), task, corpus) if examples else {}
                scores[name][part].append(measured)
    n_read = sum(paragraph in read for paragraph in asked)
    result = {
        "paragraphs": len(set(asked)),
        "read": len(read),
        "questions": {"read": n_read, "others": len(asked) - n_read},
        "runs": runs,
        "scores": scores,
    }
    command = shlex.join(["python", "-m", "scripts.runs.read_paragraphs", *map(str, texts), "--seeds", seeds])
    keep_result(TASK, "read", {"command": command, **origin(), "minutes": minutes_since(begin), "result": result})


if __name__ == "__main__":
    run_command(main)
