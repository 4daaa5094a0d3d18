"""The torch network: ESIM (Chen et al. 2017, arXiv:1609.06038), made small."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pad_sequence

from ..shared.bilstm import BiLSTM


class Esim(nn.Module):
    """Compares two sentences, word by word. *Shapes:* N pairs, P and H words in the longest premise and hypothesis.

    width: of the word vectors.
    lstm_width: of each direction of the BiLSTMs. The other layers are twice as wide.
    labels: number of classes.
    """

    def __init__(self, width: int, lstm_width: int, labels: int) -> None:
        super().__init__()
        both = 2 * lstm_width
        self.encoder = BiLSTM(width, lstm_width)
        self.comparison = nn.Linear(4 * both, both)
        self.composition = BiLSTM(both, lstm_width)
        self.hidden = nn.Linear(4 * both, both)
        self.output = nn.Linear(both, labels)

    def forward(self, words: Tensor, lengths: Sequence[int], drop: float) -> Tensor:
        """Return a score for each class, before the softmax. *Shape:* (N, labels).

        words: vectors of all words, those of the N premises before those of the N hypotheses. *Shape:* (words, width).
        lengths: number of words of each sentence, in the same order, 2 N numbers, none of them 0.
        drop: dropout rate; only used in training.
        """
        number = len(lengths) // 2
        in_premise, in_hypothesis = _mask(lengths[:number], words), _mask(lengths[number:], words)
        # both in one run of the LSTM
        encoded = _run(self.encoder, self._drop(words, drop), lengths)
        premise, hypothesis = encoded[:number, : in_premise.shape[1]], encoded[number:, : in_hypothesis.shape[1]]
        # align: each word with what it attends to in the other sentence
        similarity = premise @ hypothesis.transpose(1, 2)  # (N, P, H)
        for_premise = _attention(similarity, in_hypothesis) @ hypothesis
        for_hypothesis = _attention(similarity.transpose(1, 2), in_premise) @ premise
        # compare
        compared = torch.cat(
            [
                self._compare(premise[in_premise], for_premise[in_premise]),
                self._compare(hypothesis[in_hypothesis], for_hypothesis[in_hypothesis]),
            ]
        )
        # compose and pool
        composed = _run(self.composition, self._drop(compared, drop), lengths)
        pooled = torch.cat(
            [
                *_pool(composed[:number, : in_premise.shape[1]], in_premise),
                *_pool(composed[number:, : in_hypothesis.shape[1]], in_hypothesis),
            ],
            dim=1,
        )
        hidden = torch.tanh(self.hidden(self._drop(pooled, drop)))
        scores: Tensor = self.output(self._drop(hidden, drop))
        return scores

    def _compare(self, words: Tensor, aligned: Tensor) -> Tensor:
        """Compare words with what they are aligned to. Both, and the result, have *Shape:* (words, 2 * lstm_width)."""
        features = torch.cat([words, aligned, words - aligned, words * aligned], dim=1)
        return torch.relu(self.comparison(features))

    def _drop(self, values: Tensor, rate: float) -> Tensor:
        return dropout(values, rate, self.training)


def _mask(lengths: Sequence[int], like: Tensor) -> Tensor:
    """Return which places of padded sentences have words. *Shape:* (N, longest)."""
    places = torch.arange(max(lengths), device=like.device)
    return places < torch.tensor(lengths, device=like.device)[:, None]


def _run(lstm: BiLSTM, words: Tensor, lengths: Sequence[int]) -> Tensor:
    """Run a BiLSTM over sentences. words: *Shape:* (words, width). Returns *Shape:* (sentences, longest, hidden)."""
    result: Tensor = lstm(pad_sequence(words.split(list(lengths)), batch_first=True), torch.tensor(lengths))
    return result


def _attention(similarity: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the words of the last dimension. mask: *Shape:* (N, size of the last dimension)."""
    return torch.softmax(similarity.masked_fill(~mask[:, None], float("-inf")), dim=2)


def _pool(words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and maximum of each sentence's words, *Shape:* (N, width)."""
    outside = ~mask[:, :, None]
    mean = words.masked_fill(outside, 0.0).sum(1) / mask.sum(1, keepdim=True)
    return mean, words.masked_fill(outside, float("-inf")).amax(1)
