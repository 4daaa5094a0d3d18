"""A small corpus, and all cosines with a word in float64."""

import numpy as np

from spacy_elmo import ElmoEmbedder

CORPUS = [
    "He sat on the bank of the river .",
    "The bank raised its rates .",
    "The BANK lent the other bank money .",
    "The bank raised its rates .",
    "No such word here .",
    "Yes",
]


def brute_force(
    embedder: ElmoEmbedder, query: list[str], place: int, layer: int | None
) -> list[tuple[float, int, int]]:
    """Cosine, number of the sentence and place of all words of the corpus, the largest cosine first, in float64."""

    def vectors(words: list[str]) -> np.ndarray:
        layers = embedder.embed_sentence(words).astype(np.float64)
        return layers.mean(0) if layer is None else layers[layer]

    a = vectors(query)[place]
    found = []
    for number, sentence in enumerate(CORPUS, 1):
        for i, b in enumerate(vectors(sentence.split())):
            found.append((float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), number, i))
    return sorted(found, key=lambda one: (-round(one[0], 6), *one[1:]))
