"""Questions with answers, and pipelines that answer them."""

import copy
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example
from tasks import EMBEDS, ENCODES

from spacy_elmo.tasks.answers import make_question

CONTEXT = "Anna lives in Bonn. She has a dog called Rex."
QUESTIONS = {"Where does Anna live?": "Bonn", "What is the dog called?": "Rex", "Who lives in Bonn?": "Anna"}
PLAIN = {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBEDS["multi_hash"], "encode": ENCODES["none"]}


def answering(tok2vec: dict[str, Any] | None = None, nlp: Language | None = None, **settings: Any) -> Language:
    """A pipeline with a small answers component; model: settings of its architecture."""
    nlp = nlp or spacy.blank("xx")
    sizes = {"lstm_width": 16, **settings.pop("model", {})}
    model = {"@architectures": "spacy-elmo.Answers.v1", "tok2vec": copy.deepcopy(tok2vec or PLAIN), **sizes}
    nlp.add_pipe("answers", config={"model": model, **settings})
    return nlp


def gold(nlp: Language) -> list[Example]:
    """An example for each question."""
    return [
        Example(
            make_question(nlp, question, CONTEXT),
            make_question(nlp, question, CONTEXT, [(CONTEXT.index(answer), answer)]),
        )
        for question, answer in QUESTIONS.items()
    ]


def trained(nlp: Language, steps: int = 30, drop: float = 0.0) -> dict[str, float]:
    """Initialise and update on the questions; returns the last losses."""
    examples = gold(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    losses: dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(examples, losses=losses, drop=drop, sgd=optimizer)
    return losses
