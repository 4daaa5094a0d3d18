"""Score a system that learns nothing, or next to nothing, on a task's test part: what any network has to beat.

python -m scripts.runs.trivial_systems roles
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_elmo.tasks.answers import ANSWER, KEYS
from spacy_elmo.tasks.answers.scorer import normalise, score_answers
from spacy_elmo.tasks.coreference import annotate as annotate_coreference
from spacy_elmo.tasks.coreference.scorer import build_coreference_scorer
from spacy_elmo.tasks.entailment.scorer import score_entailment
from spacy_elmo.tasks.roles import PREDICATES, VERB, predicates_of
from spacy_elmo.tasks.roles import annotate as annotate_roles
from spacy_elmo.tasks.roles.scorer import score_roles

from ..shared import run_command
from .evaluate_runs import numbers_in
from .experiments import keep_result, tasks_of

_PRONOUN = re.compile(
    "i|me|my|mine|myself|you|your|yours|yourself|he|him|his|himself|she|her|hers|herself|it|its|itself|"
    "we|us|our|ours|ourselves|they|them|their|theirs|themselves"
)


# each annotates a doc; of the annotated one they read what a component is given: predicates, question and context


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
    annotate_coreference(doc, clusters.values())


def solve_answers(doc: Doc, given: Doc) -> None:
    """The sentence of the paragraph that shares most words with the question, the first one of several."""
    (question,), (context,) = (given.spans[key] for key in KEYS)
    asked = set(normalise(question.text).split())
    sentences: list[Span] = []
    start = context.start
    for place in range(context.start, context.end):
        if doc[place].text in {".", "!", "?"} or place == context.end - 1:
            sentences.append(doc[start : place + 1])
            start = place + 1
    best = max(sentences, key=lambda sentence: len(asked & set(normalise(sentence.text).split())), default=None)
    doc.spans[ANSWER] = [] if best is None else [best]


SYSTEMS = {
    "roles": (
        "the word before the predicate is ARG0, all words after it but the last are ARG1",
        solve_roles,
        score_roles,
    ),
    "coreference": (
        "pronouns and names are mentions, the same words corefer",
        solve_coreference,
        build_coreference_scorer(),
    ),
    "answers": ("the sentence that shares most words with the question", solve_answers, score_answers),
}


def docs_in(corpus: str) -> Iterable[Doc]:
    return DocBin().from_disk(corpus).get_docs(spacy.blank("xx").vocab)


def scored(task: str, corpus: str) -> tuple[str, dict[str, Any]]:
    """Return what the system of a task does, and its scores on a file of docs."""

    def examples(solve: Any) -> Iterable[Example]:
        for known in docs_in(corpus):
            spaces = [bool(token.whitespace_) for token in known]
            doc = Doc(known.vocab, words=[token.text for token in known], spaces=spaces)
            solve(doc, known)
            yield Example(doc, known)

    if task == "entailment":
        docs = docs_in("corpus/entailment/train.spacy")
        counts = Counter(label for doc in docs for label, value in doc.cats.items() if value == 1.0)
        best = max(counts, key=lambda label: (counts[label], label))

        def solve(doc: Doc, given: Doc) -> None:
            doc.cats = {label: float(label == best) for label in counts}

        scores = score_entailment(list(examples(solve)), labels=sorted(counts))
        return "the most frequent class of the training part", scores
    what, system, score = SYSTEMS[task]
    return what, score(list(examples(system)))


def main(tasks: list[str]) -> None:
    """Put "trivial" into results/TASK.json for those of TASKS that have such a system."""
    for task in tasks_of(tasks):
        if task.name not in (*SYSTEMS, "entailment"):
            continue
        what, tests = "", {}
        for name, path in task.tests.items():
            what, scores = scored(task.name, path)
            tests[name] = numbers_in(scores, task, path)
        keep_result(task.name, "trivial", {"what": what, "tests": tests})


if __name__ == "__main__":
    run_command(main)
