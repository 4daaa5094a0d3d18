"""Which words a biLM expects at a place of a sentence."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc

from ..errors import SettingsError
from ..formats.characters import batch_to_ids_array
from ..models.types import is_whole
from ..modules.loading import EMBEDDED
from ..pretraining.language_model import LanguageModel

_load = lru_cache(maxsize=2)(LanguageModel.load)
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
    if not isinstance(doc, Doc) or not is_whole(i) or not is_whole(n) or n < 1:
        got = f"{type(doc).__name__}, {i!r} and {n!r}"
        raise SettingsError(f"doc, i and n are {got}. Expected a Doc, a whole number, and a whole number above 0.")
    if not -len(doc) <= i < len(doc):
        raise SettingsError(f"i is {i}, but the doc has {len(doc)} tokens. Expected the index of one of them.")
    token = doc[i]
    sentence = token.sent if doc.has_annotation("SENT_START") else doc[:]
    place = token.i - sentence.start
    return next(predictions([word.text for word in sentence], n, model, [place]))


def predictions(words: list[str], n: int, model: str, places: Iterable[int]) -> Iterator[Predictions]:
    """Yield the n most probable words at each of some places of a sentence, as `predict_words`."""
    language_model = _load(model)
    ranks = np.arange(1, len(language_model.words) + 1)
    with torch.inference_mode():
        ids = torch.from_numpy(batch_to_ids_array([words], language_model.bilm.options.max_characters))
        top = language_model.bilm(ids).layers[-1, 0].chunk(2, -1)  # forward and backward, with <S> and </S>
        for place in places:
            forward, backward = (  # word k is at k + 1: what is before it, and after it
                language_model.softmax.log_probabilities(x[None]).double().exp().numpy()[0]
                for x in (top[0][place], top[1][place + 2])
            )
            together = forward * backward * ranks
            parts = (forward, backward, together / together.sum())
            orders = [np.argsort(-p, kind="stable")[:n] for p in parts]
            found = [[(language_model.words[k], float(p[k])) for k in order] for p, order in zip(parts, orders)]
            yield Predictions(*found)
