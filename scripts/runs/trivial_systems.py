"""Score a system that learns nothing, or next to nothing, on a task's test part: what any network has to beat.

Writes results/TASK/trivial.json.

    python -m scripts.runs.trivial_systems roles
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus, Example

from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.answers.questions import ANSWER, CONTEXT, QUESTION
from spacy_elmo.tasks.answers.scorer import normalise, score_answers
from spacy_elmo.tasks.coreference.annotations import annotate
from spacy_elmo.tasks.coreference.scorer import score_coreference
from spacy_elmo.tasks.entailment.scorer import score_entailment
from spacy_elmo.tasks.roles.annotations import PREDICATES, VERB, predicates_of
from spacy_elmo.tasks.roles.annotations import annotate as annotate_roles
from spacy_elmo.tasks.roles.scorer import score_roles

from ..shared.command import run_command
from ..shared.measurement import write_record
from ..shared.messages import Messages
from .evaluate_runs import numbers_in, require_measures
from .experiments import Task, trivial_of
from .train_runs import task_of

_PRONOUN = re.compile(
    "i|me|my|mine|myself|you|your|yours|yourself|he|him|his|himself|she|her|hers|herself|it|its|itself|"
    "we|us|our|ours|ourselves|they|them|their|theirs|themselves"
)
Solve = Callable[[Doc, Doc], None]
Score = Callable[[Iterable[Example]], dict[str, Any]]


class TrivialSystem(NamedTuple):
    """A system, and how it is scored.

    what: it does, in a few words.
    prepare: function from the docs of the training part to one that annotates a doc. The latter has a second argument,
        the annotated doc, of which it reads only what a component is given: predicates, question and context.
    score: function from examples to scores.
    """

    what: str
    prepare: Callable[[Iterable[Doc]], Solve]
    score: Score


def solve_roles(doc: Doc, given: Doc) -> None:
    """The word before a predicate is ARG0; those after it, up to the last one, which ends the sentence, are ARG1."""
    roles = {}
    for place in predicates_of(given) or []:
        spans = ((max(place - 1, 0), place, "ARG0"), (place, place + 1, VERB), (place + 1, len(doc) - 1, "ARG1"))
        roles[place] = [span for span in spans if span[0] < span[1]]
    doc.spans[PREDICATES] = [doc[place : place + 1] for place in roles]
    annotate_roles(doc, roles, found=False)


def solve_coreference(doc: Doc, given: Doc) -> None:
    """Pronouns, and runs of words with a capital that do not begin a sentence, are mentions; the same words corefer."""
    clusters: dict[str, list[tuple[int, int]]] = {}
    start = None
    for place in range(len(doc) + 1):
        token = doc[place] if place < len(doc) else None
        pronoun = token is not None and bool(_PRONOUN.fullmatch(token.lower_))
        first = place == 0 or doc[place - 1].text in {".", "!", "?", '"', "''", "``", "“", "”"}
        name = token is not None and token.is_title and token.is_alpha and not pronoun
        if start is not None and not name:
            clusters.setdefault(doc[start:place].text.lower(), []).append((start, place))
            start = None
        if pronoun:
            clusters.setdefault(doc[place].lower_, []).append((place, place + 1))
        elif name and start is None and not first:
            start = place
    annotate(doc, clusters.values())


def majority_class(docs: Iterable[Doc]) -> Solve:
    """The most frequent class of the training part."""
    counts = Counter(label for doc in docs for label, value in doc.cats.items() if value == 1.0)
    best = max(counts, key=lambda label: (counts[label], label))

    def solve(doc: Doc, given: Doc) -> None:
        doc.cats = {label: float(label == best) for label in counts}

    return solve


def score_classes(examples: Iterable[Example]) -> dict[str, Any]:
    """Return the scores of entailment; the classes are those of the docs."""
    listed = list(examples)
    return score_entailment(listed, labels=sorted({label for example in listed for label in example.predicted.cats}))


def solve_answers(doc: Doc, given: Doc) -> None:
    """The sentence of the paragraph that shares most words with the question, the first one of several."""
    (question,), (context,) = given.spans[QUESTION], given.spans[CONTEXT]
    asked = set(normalise(question.text).split())
    sentences: list[Span] = []
    start = context.start
    for place in range(context.start, context.end):
        if doc[place].text in {".", "!", "?"} or place == context.end - 1:
            sentences.append(doc[start : place + 1])
            start = place + 1
    shared = [len(asked & set(normalise(sentence.text).split())) for sentence in sentences]
    doc.spans[ANSWER] = [sentences[shared.index(max(shared))]] if sentences else []


SYSTEMS = {
    "roles": TrivialSystem(
        "the word before the predicate is ARG0, all words after it but the last are ARG1",
        lambda docs: solve_roles,
        score_roles,
    ),
    "coreference": TrivialSystem(
        "pronouns and names are mentions, the same words corefer",
        lambda docs: solve_coreference,
        score_coreference,
    ),
    "entailment": TrivialSystem("the most frequent class of the training part", majority_class, score_classes),
    "answers": TrivialSystem(
        "the sentence that shares most words with the question", lambda docs: solve_answers, score_answers
    ),
}


def scores_of(system: TrivialSystem, task: Task, train: Path) -> dict[str, dict[str, float]]:
    """Return the scores on each of the task's test files. train: its training part.

    Raises CommandError if a file has no docs.
    """
    nlp = spacy.blank("en")
    for corpus in (train, *map(Path, task.tests.values())):
        if not corpus.is_file():
            raise CommandError(Messages.CORPUS_MISSING.format(path=corpus))
    known = [example.reference for example in Corpus(train)(nlp)]
    if not known:
        raise CommandError(Messages.NO_DOCS.format(path=train))
    solve = system.prepare(known)
    scores = {}
    for name, path in task.tests.items():
        examples = [Example(_solved(solve, example.reference), example.reference) for example in Corpus(path)(nlp)]
        if not examples:
            raise CommandError(Messages.NO_DOCS.format(path=path))
        scores[name] = require_measures(task, numbers_in(system.score(examples)), Path(path))
    return scores


def _solved(solve: Solve, reference: Doc) -> Doc:
    words, spaces = [token.text for token in reference], [bool(token.whitespace_) for token in reference]
    doc = Doc(reference.vocab, words=words, spaces=spaces)
    solve(doc, reference)
    return doc


def main(task: str) -> None:
    """Write results/TASK/trivial.json for TASK."""
    if task not in SYSTEMS:
        raise CommandError(Messages.TASK.format(got=task, expected=", ".join(SYSTEMS)))
    system, target = SYSTEMS[task], trivial_of(Path(), task)
    result = {"what": system.what, "tests": scores_of(system, task_of(task), Path(f"corpus/{task}/train.spacy"))}
    write_record(target, result)
    print(f"{target}: {json.dumps(result)}")


if __name__ == "__main__":
    run_command(main)
