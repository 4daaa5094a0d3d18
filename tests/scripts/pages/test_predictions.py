"""docs/predictions.md has what the components say: here they are small, and learned a few sentences by heart."""

from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from answers_cases import answering, gold
from coreference_cases import blank as coreference
from coreference_cases import examples as coreference_examples
from role_cases import GIVEN, SMALL, example
from spacy.language import Language
from spacy.training import Example
from spacy.util import fix_random_seed

from scripts.pages.predictions import PAIRS, QUESTIONS, SENTENCES, write_predictions
from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.entailment import make_pair


def roles() -> tuple[Language, list[Example]]:
    nlp = spacy.blank("en")
    nlp.add_pipe("semantic_roles", config={"model": SMALL, "threshold": 0.0})  # so every token is a predicate
    return nlp, [example(words, parts, nlp.vocab) for words, parts in GIVEN]


def entailment() -> tuple[Language, list[Example]]:
    nlp = spacy.blank("en")
    nlp.add_pipe("entailment")
    reference = make_pair(nlp, "a b", "c")
    reference.cats = {"yes": 1.0, "no": 0.0}
    return nlp, [Example(make_pair(nlp, "a b", "c"), reference)]


def answers() -> tuple[Language, list[Example]]:
    nlp = answering()
    return nlp, gold(nlp)


def clusters() -> tuple[Language, list[Example]]:
    nlp = coreference()
    return nlp, coreference_examples(nlp)


COMPONENTS: dict[str, Callable[[], tuple[Language, list[Example]]]] = {
    "roles": roles,
    "coreference": clusters,
    "entailment": entailment,
    "answers": answers,
}


@pytest.mark.slow
def test_every_sentence_question_and_pair_is_there(tmp_path: Path) -> None:
    fix_random_seed(0)
    for task, build in COMPONENTS.items():
        nlp, docs = build()
        optimizer = nlp.initialize(lambda docs=docs: docs)
        for _ in range(5):
            nlp.update(docs, sgd=optimizer)
        folder = tmp_path / "training" / task / "elmo" / "seed-0"
        folder.mkdir(parents=True)
        nlp.to_disk(folder / "model-best")
        (folder / "run.json").touch()
    write_predictions(tmp_path, tmp_path / "predictions.md")
    page = (tmp_path / "predictions.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    of_roles = page.split("## ")[1].splitlines()
    assert [sum(line.startswith(f"| {text} |") for line in of_roles) for text in SENTENCES] == [1] * len(SENTENCES)
    assert sum(line.startswith("|  |") for line in of_roles) > len(SENTENCES)  # the other predicates
    assert all(any(line.startswith(f"| {question} |") for line in lines) for question in QUESTIONS)
    assert all(any(line.startswith(f"| {one} | {other} | yes |") for line in lines) for one, other in PAIRS)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="train first"):
        write_predictions(tmp_path, tmp_path / "predictions.md")
    assert not (tmp_path / "predictions.md").exists()
