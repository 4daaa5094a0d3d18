"""The torch network: scores of spans as mentions, and of pairs of mentions (Lee et al. 2017, made small)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ..shared.bilstm import BiLSTM

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
