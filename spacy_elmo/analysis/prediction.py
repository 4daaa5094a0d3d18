"""Which words a biLM expects at a place of a sentence."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from spacy.tokens import Doc

from ..errors import SettingsError
from ..formats.characters import batch_to_ids_array
from ..modules.loading import EMBEDDED

if TYPE_CHECKING:
    from ..pretraining.language_model import LanguageModel

Words = list[tuple[str, float]]


class Predictions(NamedTuple):
    """The most probable words at a place, with their probabilities, which sum to 1 over the model's whole vocabulary.

    forward: from the words before the place alone.
    backward: from the words after it alone.
    both: from both, by Bayes' rule as if the two sides were independent of each other given the word: the product of
        both probabilities, divided by the word's own (by Zipf's law 1 / rank, since the vocabulary is in the order of
        frequency), normalised.
    """

    forward: Words
    backward: Words
    both: Words


def predict_words(doc: Doc, i: int, n: int = 10, model: str = EMBEDDED) -> Predictions:
    """Return the words that a biLM finds most probable at the place of token i, without having seen that token.

    doc: if it has sentence boundaries, the model reads the token's sentence, otherwise the whole doc.
    n: number of words.
    model: a biLM with its softmax: a folder, that of a pretraining run, or a name.

    Raises SettingsError if the doc has no token i, and ElmoError if the model can't be loaded.
    """
    if not isinstance(doc, Doc) or not isinstance(i, int) or not isinstance(n, int) or n < 1:
        got = f"{type(doc).__name__}, {i!r} and {n!r}"
        raise SettingsError(f"doc, i and n are {got}. Expected a Doc, a whole number, and a whole number above 0.")
    if not -len(doc) <= i < len(doc):
        raise SettingsError(f"i is {i}, but the doc has {len(doc)} tokens. Expected the index of one of them.")
    token = doc[i]
    sentence = token.sent if doc.has_annotation("SENT_START") else doc[:]
    language_model = _load(model)
    forward, backward = probabilities(language_model, [word.text for word in sentence])
    place = token.i - sentence.start
    return most_probable(language_model.words, forward[place], backward[place], n)


@lru_cache(maxsize=2)
def _load(model: str) -> "LanguageModel":
    from ..pretraining.language_model import LanguageModel

    return LanguageModel.load(model, untrusted=True)


def probabilities(model: "LanguageModel", words: list[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return each word's probability at each place of a sentence, from the words before it and from those after it.

    Returns two arrays, *Shape:* (words, vocabulary).
    """
    with torch.inference_mode():
        ids = torch.from_numpy(batch_to_ids_array([words], model.bilm.options.max_characters))
        top = model.bilm(ids).layers[-1, 0].chunk(2, -1)  # of all positions with <S> and </S>, forward and backward
        n = len(words)
        forward, backward = (
            model.softmax.log_probabilities(x).double().exp().numpy() for x in (top[0][:n], top[1][2 : n + 2])
        )
    return forward, backward


def most_probable(
    words: list[str], forward: npt.NDArray[np.float64], backward: npt.NDArray[np.float64], n: int
) -> Predictions:
    """Return the n most probable words at a place. forward, backward: *Shape:* (vocabulary,)."""
    together = forward * backward * np.arange(1, len(words) + 1)
    parts = (forward, backward, together / together.sum())
    return Predictions(*([(words[k], float(p[k])) for k in np.argsort(-p, kind="stable")[:n]] for p in parts))
