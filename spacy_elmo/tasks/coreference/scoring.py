"""Runs the network on the parts of a doc: which spans are kept, and which antecedents they are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from thinc.util import xp2torch
from torch import Tensor

from .network import CoreferenceNetwork, Words
from .parts import Array, Part, best_spans, spans_of

FEWEST_MENTIONS = 10  # of a part, so that a short text keeps more than a share of its few tokens


class Scores(NamedTuple):
    """The scores of a doc, or of a part of it.

    spans: first token of each span, and the token after its last one. *Shape:* (spans, 2)
    mention_scores: above 0: the span is a mention. *Shape:* (spans,)
    kept: which spans may have antecedents and be antecedents, in the order of the text. *Shape:* (kept,)
    antecedents: for each of them, the places in `kept` of those before it; -1: none. *Shape:* (kept, k)
    pair_scores: above 0: the two corefer, rather than not. -inf if there is none. *Shape:* (kept, k)

    In training `spans` has all spans of a part. In prediction it has the mentions alone, and k is 1: the best one.
    """

    spans: Array
    mention_scores: Array
    kept: Array
    antecedents: Array
    pair_scores: Array

    @classmethod
    def empty(cls) -> Scores:
        """The scores of a doc without tokens."""
        return cls(
            np.zeros((0, 2), dtype=np.int64),
            np.zeros(0, dtype=np.float32),
            np.zeros(0, dtype=np.int64),
            np.zeros((0, 1), dtype=np.int64),
            np.zeros((0, 1), dtype=np.float32),
        )


class Step(NamedTuple):
    """A part's scores in training, with what the backward pass needs."""

    bounds: tuple[int, int]
    scores: Scores
    inputs: Tensor
    mention_scores: Tensor
    pair_scores: Tensor

    def backprop(self, gradient: Scores) -> Tensor:
        """Add up the weights' gradients, and return that of the part's token vectors. *Shape:* (tokens, width)"""
        outputs = [self.mention_scores, self.pair_scores]
        gradients = [torch.as_tensor(gradient.mention_scores), torch.as_tensor(gradient.pair_scores)]
        torch.autograd.backward(outputs, [one.to(out) for one, out in zip(gradients, outputs)])
        assert self.inputs.grad is not None
        return self.inputs.grad


class Earlier(NamedTuple):
    """The last mentions of the parts before, at most k.

    bounds: *Shape:* (mentions, 2). texts: a number for each text of theirs. vectors: *Shape:* (mentions, hidden_width)
    """

    bounds: Array
    texts: Array
    vectors: Tensor


class Scorer:
    """Scores the parts of a doc.

    network: the network.
    mentions_per_token: number of spans that are kept, at most, as a share of the tokens; of a short part 10.
    k: number of antecedents of a mention, at most.
    """

    def __init__(self, network: CoreferenceNetwork, mentions_per_token: float, k: int) -> None:
        self.network = network
        self.mentions_per_token = mentions_per_token
        self.k = k

    def train(self, part: Part, vectors: Array) -> Step:
        """Return the scores of all spans of a part. vectors: of the whole doc's tokens. *Shape:* (tokens, width)"""
        self.network.train()
        inputs = _tensor(vectors[part.start : part.end]).requires_grad_()
        words, spans, scores = self._mentions(part, inputs)
        kept = best_spans(spans, _array(scores), self._most(part))
        earlier = self._none(inputs)
        _, _, antecedents, pair_scores = self._pairs(part, words, spans[kept], earlier, {})
        result = Scores(spans + part.start, _array(scores), kept, antecedents, _array(pair_scores))
        return Step((part.start, part.end), result, inputs, scores, pair_scores)

    @torch.no_grad()
    def predict(self, parts: Iterable[Part], vectors: Array) -> Scores:
        """Return the mentions of a doc, each with its best antecedent.

        The last k mentions are carried from part to part, so a mention has the same antecedents as in one piece.

        parts: of the doc.
        vectors: of its tokens. *Shape:* (tokens, width)
        """
        self.network.eval()
        found = [Scores.empty()]
        texts: dict[tuple[int, ...], int] = {}
        earlier, before = None, 0
        for part in parts:
            inputs = _tensor(vectors[part.start : part.end])
            words, spans, scores = self._mentions(part, inputs)
            array = _array(scores)
            kept = best_spans(spans, array, min(self._most(part), int((array > 0).sum())))
            carried = self._none(inputs) if earlier is None else earlier
            both, span_vectors, antecedents, pair_scores = self._pairs(part, words, spans[kept], carried, texts)
            # places in all of the doc's mentions
            places = np.where(antecedents < 0, -1, antecedents + before - len(carried.bounds))
            best, rows = _array(pair_scores).argmax(1), np.arange(len(kept))
            found.append(
                Scores(
                    spans[kept] + part.start,
                    array[kept],
                    np.arange(len(kept)) + before,
                    places[rows, best][:, None],
                    _array(pair_scores)[rows, best][:, None],
                )
            )
            before += len(kept)
            earlier = Earlier(both.bounds[-self.k :], both.texts[-self.k :], span_vectors[-self.k :].clone())
        return Scores(*(np.concatenate(arrays) for arrays in zip(*found)))

    def _most(self, part: Part) -> int:
        return max(FEWEST_MENTIONS, round(self.mentions_per_token * (part.end - part.start)))

    def _none(self, inputs: Tensor) -> Earlier:
        vectors = inputs.new_zeros((0, self.network.span.out_features))
        return Earlier(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), vectors)

    def _mentions(self, part: Part, inputs: Tensor) -> tuple[Words, Array, Tensor]:
        """Return the part's words, the bounds of all its spans, and their scores."""
        words = self.network.read(inputs, part.lengths)
        places = spans_of(part, self.network.max_width)
        width, start = places.T
        scores = self.network.score_spans(words)[torch.as_tensor(width), torch.as_tensor(start)]
        return words, np.stack([start, start + width + 1], axis=1), scores

    def _pairs(
        self, part: Part, words: Words, spans: Array, earlier: Earlier, texts: dict[tuple[int, ...], int]
    ) -> tuple[Earlier, Tensor, Array, Tensor]:
        """Compare spans with the k before each, those of earlier parts among them.

        spans: bounds in the part. texts: numbers of the texts that have one; new ones are added.

        Returns all spans with those of earlier parts first, their vectors, the places of the antecedents among them
        (-1: none), and the scores.
        """
        device = words.states.device
        own = self.network.span_vectors(
            words, torch.as_tensor(spans[:, 0], device=device), torch.as_tensor(spans[:, 1], device=device)
        )
        keys = [tuple(part.lower[start:end].tolist()) for start, end in spans]
        numbers = np.array([texts.setdefault(key, len(texts)) for key in keys], dtype=np.int64)
        both = Earlier(
            np.concatenate([earlier.bounds, spans + part.start]),
            np.concatenate([earlier.texts, numbers]),
            torch.cat([earlier.vectors, own]),
        )
        mentions = np.arange(len(earlier.bounds), len(both.bounds))
        k = max(1, min(self.k, len(both.bounds) - 1))
        index = mentions[:, None] - np.arange(1, k + 1)
        places = index.clip(0)
        distance = both.bounds[mentions, 0][:, None] - both.bounds[places, 0]
        same = both.texts[mentions][:, None] == both.texts[places]
        tensors: list[Any] = [torch.as_tensor(one, device=device) for one in (places, distance, same.astype(np.int64))]
        scores = self.network.score_pairs(own, both.vectors, *tensors)
        missing = torch.as_tensor(index < 0, device=device)
        return both, both.vectors, np.where(index < 0, -1, index), scores.masked_fill(missing, -torch.inf)


def _array(scores: Tensor) -> Any:
    return scores.detach().cpu().numpy()


def _tensor(vectors: Any) -> Tensor:
    tensor: Tensor = xp2torch(vectors)
    return tensor.clone()  # the array may be another's
