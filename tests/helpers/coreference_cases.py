"""Small docs with coreference, for tests of the component."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_elmo.tasks.coreference import annotate

SMALL = {
    "tok2vec": {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 32,
        "depth": 1,
        "embed_size": 500,
        "window_size": 1,
        "maxout_pieces": 3,
        "subword_features": True,
    },
    "lstm_width": 16,
    "hidden_width": 32,
    "max_width": 4,
    "mentions_per_token": 0.5,
    "antecedents": 20,
}
TEXTS = (
    ("Anna met an old man . She liked him . Rain fell .", [[(0, 1), (6, 7)], [(2, 5), (8, 9)], [(10, 11)]]),
    ("An old man slept . Anna saw him and she laughed .", [[(0, 3), (7, 8)], [(5, 6), (9, 10)]]),
    ("Rain fell . Anna met him .", [[(0, 1)], [(3, 4)], [(5, 6)]]),
)


def blank(**model: Any) -> Language:
    """A pipeline with a small coreference component that is not initialised. model: settings of its model."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("coreference", config={"model": SMALL | model})
    return nlp


def examples(nlp: Language, texts: Iterable[tuple[str, Any]] = TEXTS) -> list[Example]:
    """Examples whose predicted docs have sentences."""
    result = []
    for text, clusters in texts:
        reference = Doc(nlp.vocab, words=text.split())
        annotate(reference, clusters)
        predicted = Doc(nlp.vocab, words=text.split())
        result.append(Example(nlp.get_pipe("sentencizer")(predicted), reference))
    return result


def bounds(clusters: Iterable[Iterable[Any]]) -> list[list[tuple[int, int]]]:
    """Clusters as the bounds of their mentions."""
    return [[(span.start, span.end) for span in cluster] for cluster in clusters]


@cache
def trained() -> Language:
    """A pipeline whose component has learned the three docs by heart."""
    fix_random_seed(0)
    nlp = blank()
    given = examples(nlp)
    optimizer = nlp.initialize(lambda: given)
    optimizer.learn_rate = 0.02
    for _ in range(35):
        nlp.update(given, sgd=optimizer)
    return nlp
