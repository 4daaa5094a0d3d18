"""The architecture `spacy-elmo.Coreference.v1`: docs -> scores of mentions and of their antecedents."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE, LOWER
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pad_sequence

from ...errors import SettingsError, check_whole, shown
from ...inference.workers import run_apart
from ...models.types import Tok2VecModel, is_number
from ..shared import BiLSTM, TorchShim, dropout_of, init_network, shim_of

Array = NDArray[Any]
LONGEST_SENTENCE = 250  # tokens; longer ones are cut
FEWEST_MENTIONS = 10  # of a part, so that a short text keeps more than a share of its few tokens
DISTANCES = 10  # buckets of the distance of two mentions


class Scores(NamedTuple):
    """The scores of a doc, or of a part of it.

    In training `spans` has all spans of a part. In prediction it has the mentions alone, and k is 1: the best one.
    """

    spans: Array  # first token of each, and the token after its last one. *Shape:* (spans, 2)
    mention_scores: Array  # above 0: the span is a mention. *Shape:* (spans,)
    kept: Array  # which spans may have antecedents and be antecedents, in the order of the text. *Shape:* (kept,)
    antecedents: Array  # for each of them, the places in `kept` of those before it; -1: none. *Shape:* (kept, k)
    pair_scores: Array  # above 0: the two corefer, rather than not. -inf if there is none. *Shape:* (kept, k)

    @classmethod
    def empty(cls) -> Scores:
        """The scores of a doc without tokens."""
        whole, real = np.zeros((0, 1), np.int64), np.zeros((0, 1), np.float32)
        return cls(np.zeros((0, 2), np.int64), real[:, 0], whole[:, 0], whole, real)


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

    It is the network of Lee et al. 2017, made small.

    lstm_width: of each direction of the BiLSTM.
    hidden_width: of a span's vector, and of the hidden layers.
    max_width: number of tokens of a mention, at most.
    mentions_per_token: share of the tokens: of a part, at most that many spans are kept, those with the highest scores;
        of a part with few tokens 10.
    antecedents: number of mentions before a mention that it is compared with, at most.
    part_tokens: number of tokens that are processed at once in prediction, at most, but at least one sentence. Memory
        grows with it, and not with the doc.
    train_tokens: the same in training. Of a longer doc, a step reads a part that is drawn at random.
    """
    check_whole(lstm_width=lstm_width, hidden_width=hidden_width, max_width=max_width, antecedents=antecedents)
    check_whole(part_tokens=part_tokens, train_tokens=train_tokens)
    if not (is_number(mentions_per_token) and 0 < mentions_per_token <= 1):
        raise SettingsError(f"mentions_per_token is {shown(mentions_per_token)}. Expected a number above 0, up to 1.")
    sizes = {"lstm_width": lstm_width, "hidden_width": hidden_width, "max_width": max_width}
    return Model(
        "coreference",
        _forward,
        init=init_network,
        layers=[tok2vec],
        shims=[TorchShim(partial(CoreferenceNetwork, **sizes))],
        refs={"tok2vec": tok2vec},
        attrs={
            "dropout_rate": 0.0,
            "mentions_per_token": mentions_per_token,
            "antecedents": antecedents,
            "part_tokens": part_tokens,
            "train_tokens": train_tokens,
        },
    )


def _forward(
    model: CoreferenceModel, docs: list[Doc], is_train: bool
) -> tuple[list[Scores], Callable[[list[Scores]], list[Doc]]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    if not is_train:
        found = [run_apart(partial(predict, model, doc, array)) for doc, array in zip(docs, vectors)]
        return found, lambda gradients: docs
    parts = [list(split_into_parts(doc, model.attrs["train_tokens"])) for doc in docs]
    chosen = [random.choice(own) if own else None for own in parts]
    steps = [part and run_apart(partial(train, model, part, array)) for part, array in zip(chosen, vectors)]

    def backprop(gradients: list[Scores]) -> list[Doc]:
        d_vectors = [model.ops.alloc2f(*array.shape) for array in vectors]
        for step, gradient, d_array in zip(steps, gradients, d_vectors):
            if step is not None:
                run_apart(partial(step[1], gradient, d_array))
        result: list[Doc] = backprop_vectors(d_vectors)
        return result

    return [Scores.empty() if step is None else step[0] for step in steps], backprop


def train(model: CoreferenceModel, part: Part, vectors: Any) -> tuple[Scores, Callable[[Scores, Any], None]]:
    """Return the scores of all spans of a part, and a function that writes the gradient of the doc's vectors."""
    inputs = _tensor(vectors[part.start : part.end]).requires_grad_()
    drop = dropout_of(model, is_train=True)
    words, spans, scores = _score_spans(model, part, inputs, drop)
    kept = best_spans(spans, _array(scores), _most(model, part))
    _, antecedents, pair_scores = _score_pairs(model, part, words, spans[kept], _no_mentions(model), {}, drop)

    def backprop(gradient: Scores, d_vectors: Any) -> None:
        outputs = [scores, pair_scores]
        gradients = [torch.as_tensor(gradient.mention_scores), torch.as_tensor(gradient.pair_scores)]
        torch.autograd.backward(outputs, [one.to(out) for one, out in zip(gradients, outputs)])
        assert inputs.grad is not None
        d_vectors[part.start : part.end] = torch2xp(inputs.grad)

    return Scores(spans + part.start, _array(scores), kept, antecedents, _array(pair_scores)), backprop


@torch.no_grad()
def predict(model: CoreferenceModel, doc: Doc, vectors: Any) -> Scores:
    """Return the mentions of a doc, each with its best antecedent, which may be in an earlier part."""
    found = [Scores.empty()]
    texts: dict[tuple[int, ...], int] = {}
    earlier, before = _no_mentions(model), 0
    for part in split_into_parts(doc, model.attrs["part_tokens"]):
        inputs = _tensor(vectors[part.start : part.end])
        words, spans, mention_scores = _score_spans(model, part, inputs, 0.0)
        scores = _array(mention_scores)
        kept = best_spans(spans, scores, min(_most(model, part), int((scores > 0).sum())))
        both, antecedents, pair_scores = _score_pairs(model, part, words, spans[kept], earlier, texts, 0.0)
        # places in all of the doc's mentions
        places = np.where(antecedents < 0, -1, antecedents + before - len(earlier.bounds))
        rows, best = np.arange(len(kept)), _array(pair_scores).argmax(1)
        found.append(
            Scores(
                spans[kept] + part.start,
                scores[kept],
                rows + before,
                places[rows, best][:, None],
                _array(pair_scores)[rows, best][:, None],
            )
        )
        before += len(kept)
        last = slice(-model.attrs["antecedents"], None)
        earlier = Mentions(both.bounds[last], both.texts[last], both.vectors[last].clone())
    return Scores(*(np.concatenate(arrays) for arrays in zip(*found)))


def _most(model: CoreferenceModel, part: Part) -> int:
    share: float = model.attrs["mentions_per_token"]
    return max(FEWEST_MENTIONS, round(share * (part.end - part.start)))


class Mentions(NamedTuple):
    """Mentions that others are compared with."""

    bounds: Array  # *Shape:* (mentions, 2)
    texts: Array  # a number for each text
    vectors: Tensor  # *Shape:* (mentions, hidden_width)


def _no_mentions(model: CoreferenceModel) -> Mentions:
    weight = shim_of(model).network.span.weight
    return Mentions(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), weight.new_zeros((0, len(weight))))


def _score_spans(model: CoreferenceModel, part: Part, inputs: Tensor, drop: float) -> tuple[Words, Array, Tensor]:
    """Return the part's words, the bounds of all its spans, and their scores."""
    network = shim_of(model).network
    words = network.read(inputs, part.lengths, drop)
    width, start = spans_of(part, network.max_width).T
    scores = network.score_spans(words, drop)[torch.as_tensor(width), torch.as_tensor(start)]
    return words, np.stack([start, start + width + 1], axis=1), scores


def _score_pairs(
    model: CoreferenceModel,
    part: Part,
    words: Words,
    spans: Array,
    earlier: Mentions,
    texts: dict[tuple[int, ...], int],
    drop: float,
) -> tuple[Mentions, Array, Tensor]:
    """Return all mentions, `earlier` first, the places of each span's antecedents (-1: none), and the scores."""
    network = shim_of(model).network
    device = words.states.device
    own = network.span_vectors(words, *(torch.as_tensor(side, device=device) for side in spans.T), drop)
    keys = [tuple(part.lower[start:end].tolist()) for start, end in spans]
    numbers = np.array([texts.setdefault(key, len(texts)) for key in keys], dtype=np.int64)
    bounds = np.concatenate([earlier.bounds, spans + part.start])
    both = Mentions(bounds, np.concatenate([earlier.texts, numbers]), torch.cat([earlier.vectors, own]))
    mentions = np.arange(len(earlier.bounds), len(bounds))
    k = max(1, min(model.attrs["antecedents"], len(bounds) - 1))
    index = mentions[:, None] - np.arange(1, k + 1)
    places = index.clip(0)
    distance = bounds[mentions, 0][:, None] - bounds[places, 0]
    same = (both.texts[mentions][:, None] == both.texts[places]).astype(np.int64)
    tensors = (torch.as_tensor(one, device=device) for one in (places, distance, same))
    scores = network.score_pairs(own, both.vectors, *tensors, drop)
    missing = torch.as_tensor(index < 0, device=device)
    return both, np.where(index < 0, -1, index), scores.masked_fill(missing, -torch.inf)


def _array(scores: Tensor) -> Any:
    return scores.detach().cpu().numpy()


def _tensor(vectors: Any) -> Tensor:
    tensor: Tensor = xp2torch(vectors)
    return tensor.clone()  # the array may be another's


class Part(NamedTuple):
    """Successive sentences of a doc: doc[start:end]."""

    start: int
    end: int
    lengths: list[int]  # number of tokens of each sentence
    lower: Array  # ids of the lower-case words
    space: Array  # 1 for tokens that are whitespace


def split_into_parts(doc: Doc, most: int) -> Iterator[Part]:
    """Return the parts of a doc, of `most` tokens at most, but at least one sentence; LONGEST_SENTENCE cuts these."""
    words = doc.to_array([LOWER, IS_SPACE])
    whole = [len(sent) for sent in doc.sents] if doc.has_annotation("SENT_START") else [len(doc)]
    lengths: list[int] = []
    start = end = 0
    for sentence in whole:
        for cut in range(0, sentence, LONGEST_SENTENCE):
            length = min(LONGEST_SENTENCE, sentence - cut)
            if lengths and end + length - start > most:
                yield Part(start, end, lengths, words[start:end, 0], words[start:end, 1])
                start, lengths = end, []
            lengths.append(length)
            end += length
    if lengths:
        yield Part(start, end, lengths, words[start:end, 0], words[start:end, 1])


def spans_of(part: Part, max_width: int) -> Array:
    """Return width less 1 and start of all spans in one sentence without whitespace at their ends: (spans, 2)."""
    sentence = np.repeat(np.arange(len(part.lengths)), part.lengths)
    tokens = len(sentence)
    valid = np.zeros((max_width, tokens), dtype=bool)
    for width in range(min(max_width, tokens)):
        count = tokens - width
        valid[width, :count] = sentence[:count] == sentence[width:]
        valid[width, :count] &= (part.space[:count] == 0) & (part.space[width:] == 0)
    return np.argwhere(valid).astype(np.int64)


def best_spans(spans: Array, scores: Array, most: int) -> Array:
    """Return which spans have the highest scores, `most` or fewer, no two of which cross, in the order of the text."""
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


class Words(NamedTuple):
    """The tokens of a part of a doc, as spans are made of them."""

    inputs: Tensor  # of the BiLSTM: *Shape:* (tokens, width)
    states: Tensor  # *Shape:* (tokens, 2 * lstm_width)
    attention: Tensor  # weight of each token in the head of a span, not normalised: *Shape:* (tokens, 1)


class CoreferenceNetwork(nn.Module):
    """Scores spans and pairs of spans. Its sizes are those of `build_coreference`."""

    def __init__(self, *, width: int, lstm_width: int, hidden_width: int, max_width: int) -> None:
        super().__init__()
        self.max_width = max_width
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

    def read(self, vectors: Tensor, lengths: list[int], drop: float) -> Words:
        inputs = dropout(vectors, drop)
        rows = self.lstm(pad_sequence(list(inputs.split(lengths)), batch_first=True), torch.tensor(lengths))
        states = dropout(torch.cat([row[:length] for row, length in zip(rows, lengths)]), drop)
        scores = self.attention(states)
        return Words(inputs, states, (scores - scores.max()).exp() + 1e-9)

    def score_spans(self, words: Words, drop: float) -> Tensor:
        """Return *Shape:* (max_width, tokens): in [w, t] the score of the span of w + 1 tokens from t; -inf: none."""
        starts, ends = self.mention_start(words.states), self.mention_end(words.states)
        heads = words.attention * self.mention_head(words.inputs)
        tokens = len(starts)
        total, weight = torch.zeros_like(heads), torch.zeros_like(words.attention)
        rows = []
        for width in range(min(self.max_width, tokens)):
            count = tokens - width
            total, weight = total[:count] + heads[width:], weight[:count] + words.attention[width:]
            hidden = starts[:count] + ends[width:] + total / weight + self.mention_width.weight[width]
            scores = self.mention_score(dropout(hidden.relu(), drop))[:, 0]
            rows.append(nn.functional.pad(scores, (0, width), value=-torch.inf))
        missing = scores.new_full((self.max_width - len(rows), tokens), -torch.inf)
        return torch.cat([torch.stack(rows), missing])

    def span_vectors(self, words: Words, starts: Tensor, ends: Tensor, drop: float) -> Tensor:
        """Return the vectors of spans, from first tokens and those after the last ones: (spans, hidden_width)."""
        places = starts[:, None] + torch.arange(self.max_width, device=starts.device)
        inside = places < ends[:, None]
        places = places.clamp(max=len(words.states) - 1)
        weights = words.attention[places, 0] * inside
        heads = torch.einsum("sw,swd->sd", weights / weights.sum(1, keepdim=True), words.inputs[places])
        parts = torch.cat([words.states[starts], words.states[ends - 1], heads], dim=1)
        return dropout((self.span(parts) + self.span_width(ends - starts - 1)).relu(), drop)

    def score_pairs(
        self, mentions: Tensor, antecedents: Tensor, index: Tensor, distance: Tensor, same: Tensor, drop: float
    ) -> Tensor:
        """Return the score of each mention with the antecedents at its index, (mentions, k); above 0: they corefer."""
        hidden = self.pair_mention(mentions)[:, None] + self.pair_antecedent(antecedents)[index]
        hidden = hidden + self.pair_product(mentions[:, None] * antecedents[index])
        # 0, 1 to 2, 3 to 6, 7 to 14 ... tokens
        bucket = (distance + 1).float().log2().long().clamp(0, DISTANCES - 1)
        hidden = hidden + self.pair_distance(bucket) + self.pair_same(same)
        scores: Tensor = self.pair_score(dropout(hidden.relu(), drop))[..., 0]
        return scores
