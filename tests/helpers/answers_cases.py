"""Questions with answers, and pipelines that answer them."""

from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example
from tasks import EMBEDS, ENCODES

from spacy_elmo.tasks.answers import make_question

CONTEXT = "Anna lives in Bonn. She has a dog called Rex."
QUESTIONS = {"Where does Anna live?": "Bonn", "What is the dog called?": "Rex", "Who lives in Bonn?": "Anna"}
PLAIN = {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBEDS["multi_hash"], "encode": ENCODES["none"]}


def answering(**settings: Any) -> Language:
    """A pipeline with a small answers component."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("answers", config={"model": {"lstm_width": 16, "tok2vec": PLAIN}, **settings})
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
