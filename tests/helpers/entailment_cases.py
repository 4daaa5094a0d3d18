"""Pairs with classes, for tests of the component entailment."""

from spacy.language import Language
from spacy.training import Example

from spacy_elmo.tasks.entailment import make_pair

LABELS = ("contradiction", "entailment", "neutral")
PAIRS = [
    ("A man sleeps.", "A man is awake.", "contradiction"),
    ("A man sleeps.", "A person sleeps.", "entailment"),
    ("A man sleeps.", "The man is happy.", "neutral"),
    ("Two dogs run.", "No dog runs.", "contradiction"),
]


def examples(nlp: Language, number: int | None = None) -> list[Example]:
    """An example for each pair."""
    result = []
    for premise, hypothesis, truth in PAIRS[:number]:
        reference = make_pair(nlp, premise, hypothesis)
        reference.cats = {label: float(label == truth) for label in LABELS}
        result.append(Example(nlp.make_doc(reference.text), reference))  # as spaCy's corpus reader makes it
    return result
