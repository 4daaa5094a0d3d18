"""Convert questions with answers in paragraphs to a .spacy file: a doc for each question.

    python -m scripts.corpora.convert_answers corpus/answers/test.spacy xquad.en.json
    python -m scripts.corpora.convert_answers train.spacy a.json b.json --part train --without xquad.en.json

Sources are SQuAD's own layout (.json), lists of paragraphs or of questions (.json), or a paragraph a line (.jsonl).
The prepared files of get_assets.py are used instead of their originals if they are in assets/.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.tokens import Doc

from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.answers import make_question

from ..assets.get_assets import prepared_or_given
from ..shared import read_lines, run_command, write_docs

_SENTENCE_END = re.compile(r"(?<=[.?!])\s")


class Question(NamedTuple):
    """A question and its right answers: the index of the first character (None: not told) and the text of each."""

    context: str
    question: str
    answers: tuple[tuple[int | None, str], ...]

    @property
    def key(self) -> str:
        """The MD5 of the paragraph in lower case, with single blanks."""
        return hashlib.md5(" ".join(self.context.lower().split()).encode()).hexdigest()


class Part(str, Enum):
    """A part of a corpus that comes undivided."""

    train = "train"
    dev = "dev"


def read_questions(path: Path) -> Iterator[Question]:
    """Return the questions of a file. Raises CorpusError if it is in none of the layouts, or can't be read."""
    lines = read_lines(path)
    try:
        if path.suffix == ".jsonl":
            content: Any = [json.loads(line) for line in lines if line.strip()]
        else:
            content = json.loads("\n".join(lines))
        if isinstance(content, dict):
            content = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
        for paragraph in content:
            for item in paragraph.get("questions") or paragraph.get("qas") or [paragraph]:
                told = item.get("answers") or [{"text": item["answer"]}]
                answers = tuple((answer.get("answer_start"), answer["text"]) for answer in told)
                yield Question(paragraph["context"], item["question"].strip(), answers)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorpusError(
            f"{path}: not a file of questions with answers ({type(error).__name__}: {error}). Expected SQuAD's layout, "
            "or paragraphs with context and questions: get the file again."
        ) from error


def choose(questions: Iterable[Question], part: Part | None, left_out: Iterable[Question]) -> list[Question]:
    """Return the questions of a part, each once (with its first answers), in the order of their paragraphs' MD5.

    part: dev: the first tenth of the paragraphs in this order. train: the others. None: all questions, as they are.
    left_out: questions whose paragraphs are left out.
    """
    unwanted = {one.key for one in left_out}
    chosen = [one for one in questions if one.key not in unwanted]
    if part is None:
        return chosen
    first: dict[tuple[str, str], Question] = {}
    for one in chosen:
        first.setdefault((one.context, one.question), one)
    keys = sorted({one.key for one in first.values()})
    dev = set(keys[: len(keys) // 10])
    return sorted((one for one in first.values() if (one.key in dev) == (part is Part.dev)), key=lambda one: one.key)


def place_of(answer: str, one: Question) -> int:
    """Return where in the context an answer most probably stands; -1 if it does not.

    Whole words are preferred, then the sentence that shares most words with the question, then the first place.
    """
    asked = set(re.findall(r"\w+", one.question.lower()))

    def rank(start: int) -> tuple[bool, int]:
        end = start + len(answer)
        before = one.context[:start][-1:].isalnum() and answer[:1].isalnum()
        after = one.context[end:][:1].isalnum() and answer[-1:].isalnum()
        sentence = _SENTENCE_END.split(one.context[:start])[-1] + " " + _SENTENCE_END.split(one.context[end:])[0]
        return not (before or after), len(asked & set(re.findall(r"\w+", sentence.lower())))

    places = [match.start() for match in re.finditer(f"(?={re.escape(answer)})", one.context)] if answer else []
    return max(places, key=rank, default=-1)


def to_docs(questions: Iterable[Question]) -> Iterator[Doc]:
    """Return a doc for each question that has an answer in its context, in spaCy's tokens of English."""
    nlp = spacy.blank("en")
    for one in questions:
        placed = [(place_of(text, one) if start is None else start, text) for start, text in one.answers]
        found = [(start, text) for start, text in placed if start >= 0 and one.context.startswith(text, start)]
        if found:
            yield make_question(nlp, one.question, one.context, found)


def main(
    target: Path,
    sources: list[Path],
    part: Annotated[Part | None, typer.Option(help="Divide the paragraphs; a tenth is for development")] = None,
    without: Annotated[Path | None, typer.Option(help="File whose paragraphs are left out")] = None,
) -> None:
    """Convert SOURCES to TARGET, a .spacy file."""
    sources = prepared_or_given(sources)
    questions = [one for source in sources for one in read_questions(source)]
    left_out = [] if without is None else list(read_questions(without))
    write_docs(sources[0], to_docs(choose(questions, part, left_out)), target)


if __name__ == "__main__":
    run_command(main)
