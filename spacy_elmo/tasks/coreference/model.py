"""The architecture `spacy-elmo.Coreference.v1`: docs -> scores of mentions and of their antecedents."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE, LOWER
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp, xp2torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ...errors import SettingsError, shown
from ...models.types import Tok2VecModel, is_number
from ..shared import BiLSTM, TorchShim, check_sizes, shim_of, width_of

Array = NDArray[Any]
LONGEST_SENTENCE = 250  # tokens; longer ones are cut


class Part(NamedTuple):
    """Successive sentences of a doc.

    start: its first token in the doc.
    lengths: number of tokens of each sentence.
    lower: ids of the lower-case words. *Shape:* (tokens,)
    space: 1 for tokens that are whitespace. *Shape:* (tokens,)
    """

    start: int
    lengths: list[int]
    lower: Array
    space: Array

    @property
    def end(self) -> int:
        """The token of the doc after the last one of the part."""
        return self.start + sum(self.lengths)


def split_into_parts(doc: Doc, most: int) -> Iterator[Part]:
    """Return the parts of a doc, in order.

    doc: the doc. If it has no sentence boundaries, it is cut into pieces of LONGEST_SENTENCE tokens.
    most: number of tokens of a part, at most, but at least one sentence.
    """
    words = doc.to_array([LOWER, IS_SPACE])
    sentences = sentence_lengths(doc)
    first = start = 0
    while first < len(sentences):
        last, end = first + 1, start + sentences[first]
        while last < len(sentences) and end + sentences[last] - start <= most:
            end += sentences[last]
            last += 1
        yield Part(start, sentences[first:last], words[start:end, 0], words[start:end, 1])
        first, start = last, end


def sentence_lengths(doc: Doc) -> list[int]:
    """Return the number of tokens of each sentence of a doc, after long ones are cut."""
    whole = [len(sent) for sent in doc.sents] if doc.has_annotation("SENT_START") else [len(doc)]
    return [min(LONGEST_SENTENCE, length - cut) for length in whole for cut in range(0, length, LONGEST_SENTENCE)]


def spans_of(part: Part, max_width: int) -> Array:
    """Return the widths and starts of all spans that may be mentions, in the order of `score_spans`.

    A span stands in one sentence, and neither begins nor ends with whitespace.

    *Shape:* (spans, 2): the width less 1, and the first token in the part.
    """
    sentence = np.repeat(np.arange(len(part.lengths)), part.lengths)
    tokens = len(sentence)
    valid = np.zeros((max_width, tokens), dtype=bool)
    for width in range(min(max_width, tokens)):
        count = tokens - width
        valid[width, :count] = sentence[:count] == sentence[width:]
        valid[width, :count] &= (part.space[:count] == 0) & (part.space[width:] == 0)
    return np.argwhere(valid).astype(np.int64)


def best_spans(spans: Array, scores: Array, most: int) -> Array:
    """Return which spans have the highest scores, among them no two that cross; they are in the order of the text.

    spans: the first token of each, and the token after its last one. *Shape:* (spans, 2)
    scores: *Shape:* (spans,)
    most: number of spans, at most.
    """
    kept: list[int] = []
    starts, ends = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    for number in np.argsort(-scores, kind="stable"):
        if len(kept) == most:
            break
        start, end = spans[number]
        others, others_end = starts[: len(kept)], ends[: len(kept)]
        after = (start < others) & (others < end) & (end < others_end)
        before = (others < start) & (start < others_end) & (others_end < end)
        if not (after | before).any():
            starts[len(kept)], ends[len(kept)] = start, end
            kept.append(int(number))
    order = np.array(kept, dtype=np.int64)
    return order[np.lexsort((spans[order, 1], spans[order, 0]))]


def places_of(doc: Doc) -> Array:
    """Return how many characters that are no whitespace come before each character of a doc's text.

    *Shape:* (characters + 1,); the last number is that of all of them.
    """
    return np.cumsum([0, *(not character.isspace() for character in doc.text)])


def tokens_at(doc: Doc) -> tuple[dict[int, int], dict[int, int]]:
    """Return, for the places of `places_of`, which token begins there, and which follows the one that ends there.

    Both are numbers of tokens in the doc. Whitespace tokens neither begin nor end anywhere.
    """
    places = places_of(doc)
    words = [token for token in doc if not token.is_space]
    starts = {int(places[token.idx]): token.i for token in words}
    return starts, {int(places[token.idx + len(token)]): token.i + 1 for token in words}


DISTANCES = 10  # buckets of the distance of two mentions


class Words(NamedTuple):
    """The tokens of a part of a doc, as spans are made of them.

    inputs: what the BiLSTM reads. *Shape:* (tokens, width)
    states: what it returns. *Shape:* (tokens, 2 * lstm_width)
    attention: weight of each token in the head of a span, not normalised. *Shape:* (tokens, 1)
    """

    inputs: Tensor
    states: Tensor
    attention: Tensor


class CoreferenceNetwork(nn.Module):
    """Scores spans and pairs of spans.

    width: of the token vectors.
    lstm_width: of each direction of the BiLSTM.
    hidden_width: of a span's vector, and of the hidden layers.
    max_width: number of tokens of a span, at most.
    dropout: attribute; share of the values that are set to zero in training.
    """

    def __init__(self, *, width: int, lstm_width: int, hidden_width: int, max_width: int) -> None:
        super().__init__()
        self.max_width = max_width
        self.dropout = 0.0
        self.lstm = BiLSTM(width, lstm_width)
        states = 2 * lstm_width
        self.attention = nn.Linear(states, 1)
        # one layer on [start; end; head; width], as matrices for each part: spans share their tokens' products
        self.mention_start = nn.Linear(states, hidden_width)
        self.mention_end = nn.Linear(states, hidden_width, bias=False)
        self.mention_head = nn.Linear(width, hidden_width, bias=False)
        self.mention_width = nn.Embedding(max_width, hidden_width)
        self.mention_score = nn.Linear(hidden_width, 1)
        self.span = nn.Linear(2 * states + width, hidden_width)
        self.span_width = nn.Embedding(max_width, hidden_width)
        # likewise on [mention; antecedent; their product; distance]
        self.pair_mention = nn.Linear(hidden_width, hidden_width)
        self.pair_antecedent = nn.Linear(hidden_width, hidden_width, bias=False)
        self.pair_product = nn.Linear(hidden_width, hidden_width, bias=False)
        self.pair_distance = nn.Embedding(DISTANCES, hidden_width)
        self.pair_same = nn.Embedding(2, hidden_width)
        self.pair_score = nn.Linear(hidden_width, 1)
        for table in (self.mention_width, self.span_width, self.pair_distance, self.pair_same):
            nn.init.normal_(table.weight, std=0.1)

    def drop(self, values: Tensor) -> Tensor:
        return nn.functional.dropout(values, self.dropout, self.training)

    def read(self, vectors: Tensor, lengths: list[int]) -> Words:
        """Read the sentences of a part.

        vectors: of its tokens. *Shape:* (tokens, width)
        lengths: number of tokens of each sentence.
        """
        inputs = self.drop(vectors)
        rows = self.lstm(pad_sequence(list(inputs.split(lengths)), batch_first=True), torch.tensor(lengths))
        states = self.drop(torch.cat([row[:length] for row, length in zip(rows, lengths)]))
        scores = self.attention(states)
        return Words(inputs, states, (scores - scores.max()).exp() + 1e-9)

    def score_spans(self, words: Words) -> Tensor:
        """Return the score of every span as a mention; above 0: it is one.

        *Shape:* (max_width, tokens): that of the span of w + 1 tokens from token t on is in [w, t]. Spans that would
        end after the part have -inf.
        """
        starts, ends = self.mention_start(words.states), self.mention_end(words.states)
        heads = words.attention * self.mention_head(words.inputs)
        tokens = len(starts)
        total, weight = torch.zeros_like(heads), torch.zeros_like(words.attention)
        rows = []
        for width in range(min(self.max_width, tokens)):
            count = tokens - width
            total, weight = total[:count] + heads[width:], weight[:count] + words.attention[width:]
            hidden = starts[:count] + ends[width:] + total / weight + self.mention_width.weight[width]
            scores = self.mention_score(self.drop(hidden.relu()))[:, 0]
            rows.append(nn.functional.pad(scores, (0, width), value=-torch.inf))
        missing = scores.new_full((self.max_width - len(rows), tokens), -torch.inf)
        return torch.cat([torch.stack(rows), missing])

    def span_vectors(self, words: Words, starts: Tensor, ends: Tensor) -> Tensor:
        """Return the vectors of spans.

        starts, ends: the first token of each, and the token after its last one. *Shape:* (spans,)

        *Shape:* (spans, hidden_width)
        """
        places = starts[:, None] + torch.arange(self.max_width, device=starts.device)
        inside = places < ends[:, None]
        places = places.clamp(max=len(words.states) - 1)
        weights = words.attention[places, 0] * inside
        heads = torch.einsum("sw,swd->sd", weights / weights.sum(1, keepdim=True), words.inputs[places])
        parts = torch.cat([words.states[starts], words.states[ends - 1], heads], dim=1)
        return self.drop((self.span(parts) + self.span_width(ends - starts - 1)).relu())

    def score_pairs(
        self, mentions: Tensor, antecedents: Tensor, index: Tensor, distance: Tensor, same: Tensor
    ) -> Tensor:
        """Return the score of each pair; above 0: they are more likely to corefer than not to.

        mentions: vectors of the mentions. *Shape:* (mentions, hidden_width)
        antecedents: vectors of all spans that may be antecedents. *Shape:* (spans, hidden_width)
        index: for each mention the antecedents that it is compared with. *Shape:* (mentions, k)
        distance: number of tokens between the two. *Shape:* (mentions, k)
        same: 1 if both have the same words, else 0. *Shape:* (mentions, k)

        *Shape:* (mentions, k)
        """
        hidden = self.pair_mention(mentions)[:, None] + self.pair_antecedent(antecedents)[index]
        hidden = hidden + self.pair_product(mentions[:, None] * antecedents[index])
        # 0, 1 to 2, 3 to 6, 7 to 14 ... tokens
        bucket = (distance + 1).float().log2().long().clamp(0, DISTANCES - 1)
        hidden = hidden + self.pair_distance(bucket) + self.pair_same(same)
        scores: Tensor = self.pair_score(self.drop(hidden.relu()))[..., 0]
        return scores


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


CoreferenceModel = Model[list[Doc], list[Scores]]


def build_coreference(
    tok2vec: Tok2VecModel,
    lstm_width: int = 100,
    hidden_width: int = 100,
    max_width: int = 15,
    mentions_per_token: float = 0.2,
    antecedents: int = 100,
    part_tokens: int = 2000,
    train_tokens: int = 1000,
) -> CoreferenceModel:
    """Build spacy-elmo.Coreference.v1: docs -> the scores of mentions and of their antecedents.

    tok2vec: what the BiLSTM reads, for example spacy.Tok2Vec.v2 or spacy-elmo.ElmoTok2Vec.v1.
    lstm_width: of each direction of the BiLSTM.
    hidden_width: of a span's vector, and of the hidden layers.
    max_width: number of tokens of a mention, at most.
    mentions_per_token: share of the tokens: of a part, at most that many spans are kept, those with the highest scores;
        of a part with few tokens 10.
    antecedents: number of mentions before a mention that it is compared with, at most.
    part_tokens: number of tokens that are processed at once in prediction, at most, but at least one sentence. Memory
        grows with it, and not with the doc.
    train_tokens: the same in training. Of a longer doc, a step reads a part that is drawn at random.

    Raises SettingsError if a setting can't be used.
    """
    check_sizes(lstm_width=lstm_width, hidden_width=hidden_width, max_width=max_width, antecedents=antecedents)
    check_sizes(part_tokens=part_tokens, train_tokens=train_tokens)
    if not (is_number(mentions_per_token) and 0 < mentions_per_token <= 1):
        raise SettingsError(
            f"mentions_per_token is {shown(mentions_per_token)}. Expected a number above 0 and at most 1."
        )
    build = partial(_network, lstm_width=lstm_width, hidden_width=hidden_width, max_width=max_width)
    return Model(
        "coreference",
        _forward,
        init=_init,
        layers=[tok2vec],
        shims=[TorchShim(build)],
        refs={"tok2vec": tok2vec},
        attrs={
            "dropout_rate": 0.0,
            "mentions_per_token": mentions_per_token,
            "antecedents": antecedents,
            "part_tokens": part_tokens,
            "train_tokens": train_tokens,
        },
    )


def _network(**sizes: int) -> CoreferenceNetwork:
    return CoreferenceNetwork(**sizes)


def _init(model: CoreferenceModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=X)
    if X:
        shim_of(model).prepare(width=width_of(tok2vec, X))


def _forward(
    model: CoreferenceModel, docs: list[Doc], is_train: bool
) -> tuple[list[Scores], Callable[[list[Scores]], list[Doc]]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    shim = shim_of(model)
    scorer = Scorer(shim.network, model.attrs["mentions_per_token"], model.attrs["antecedents"])
    if not is_train:
        size = model.attrs["part_tokens"]
        outputs = [scorer.predict(split_into_parts(doc, size), array) for doc, array in zip(docs, vectors)]
        return outputs, lambda gradients: docs
    shim.network.dropout = model.attrs["dropout_rate"]
    parts = [list(split_into_parts(doc, model.attrs["train_tokens"])) for doc in docs]
    steps = [scorer.train(random.choice(own), array) if own else None for own, array in zip(parts, vectors)]

    def backprop(gradients: list[Scores]) -> list[Doc]:
        d_vectors = []
        for step, gradient, array in zip(steps, gradients, vectors):
            gradient_of_doc: Any = model.ops.alloc2f(*array.shape)
            if step is not None:
                start, end = step.bounds
                gradient_of_doc[start:end] = torch2xp(step.backprop(gradient))
            d_vectors.append(gradient_of_doc)
        result: list[Doc] = backprop_vectors(d_vectors)
        return result

    return [Scores.empty() if step is None else step.scores for step in steps], backprop
