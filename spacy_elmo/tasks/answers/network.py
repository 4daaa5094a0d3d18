"""The network in torch: bidirectional attention, self-attention, and pointers to the start and the end of an answer.

Clark and Gardner 2018, made small.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shared.bilstm import BiLSTM

_FAR_BELOW = -1e9  # a score that softmax turns into 0


class Similarity(nn.Module):
    """How similar the vectors of two sequences are: w_a a + w_b b + w_ab (a * b) (Seo et al. 2017).

    width: width of both.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_first = nn.Linear(width, 1, bias=False)
        self.of_second = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return *Shape:* (rows, m, n) for first (rows, m, width) and second (rows, n, width)."""
        both = (first * self.of_both) @ second.transpose(1, 2)
        result: Tensor = both + self.of_first(first) + self.of_second(second).transpose(1, 2)
        return result


class AnswersNetwork(nn.Module):
    """Scores of each token of a context as the start and as the end of the answer.

    width: width of the tokens' vectors.
    lstm_width: width of each direction of the BiLSTMs.
    self_attention: whether the tokens of a context attend to one another.
    """

    def __init__(self, width: int, lstm_width: int, self_attention: bool) -> None:
        super().__init__()
        both = 2 * lstm_width
        self.project = nn.Linear(width, both)
        self.read = BiLSTM(both + 1, lstm_width)
        self.compare = Similarity(both)
        self.merge = nn.Linear(4 * both, both)
        self.model = BiLSTM(both, lstm_width)
        self.compare_self = Similarity(both) if self_attention else None
        self.merge_self = nn.Linear(3 * both, both) if self_attention else None
        self.start = nn.Linear(both, 1)
        self.read_end = BiLSTM(both, lstm_width)
        self.end = nn.Linear(both, 1)

    def forward(
        self,
        vectors: Tensor,
        question: Tensor,
        window: Tensor,
        question_shared: Tensor,
        window_shared: Tensor,
        question_lengths: Tensor,
        window_lengths: Tensor,
        dropout: float,
    ) -> Tensor:
        """Return *Shape:* (rows, window tokens, 2), the scores of start and end. Those of padding mean nothing.

        vectors: *Shape:* (tokens, width), of all tokens of the batch.
        question, window: *Shape:* (rows, question tokens), (rows, window tokens), indices of tokens in `vectors`.
        question_shared, window_shared: of the same shapes, 1.0 if the other part of the row has this word.
        question_lengths, window_lengths: *Shape:* (rows,), number of tokens without padding.
        dropout: rate of dropout; 0.0 for predictions.
        """
        projected = self.project(F.dropout(vectors, dropout))
        q = self._read(projected[question], question_shared, question_lengths, dropout)
        c = self._read(projected[window], window_shared, window_lengths, dropout)
        is_question, is_window = _mask(question, question_lengths), _mask(window, window_lengths)

        similar = self.compare(c, q).masked_fill(~is_question[:, None], _FAR_BELOW)  # (rows, window, question)
        of_question = similar.softmax(dim=2) @ q
        weights = similar.amax(dim=2).masked_fill(~is_window, _FAR_BELOW).softmax(dim=1)
        of_window = weights[:, None] @ c  # (rows, 1, width)
        x = F.relu(self.merge(torch.cat([c, of_question, c * of_question, of_question * of_window], dim=-1)))
        x = F.dropout(x, dropout)

        x = self.model(x, window_lengths)
        if self.compare_self is not None and self.merge_self is not None:
            modelled = F.dropout(x, dropout)
            itself = torch.eye(window.shape[1], dtype=torch.bool, device=window.device)
            similar = self.compare_self(modelled, modelled)
            similar = similar.masked_fill(~is_window[:, None] | itself, _FAR_BELOW)
            others = similar.softmax(dim=2) @ modelled
            x = x + F.relu(self.merge_self(torch.cat([modelled, others, modelled * others], dim=-1)))
        x = F.dropout(x, dropout)
        ends = F.dropout(self.read_end(x, window_lengths), dropout)
        return torch.cat([self.start(x), self.end(ends)], dim=-1)

    def _read(self, projected: Tensor, shared: Tensor, lengths: Tensor, dropout: float) -> Tensor:
        x = torch.cat([projected, shared[:, :, None]], dim=-1)
        return F.dropout(self.read(x, lengths), dropout)


def _mask(indices: Tensor, lengths: Tensor) -> Tensor:
    """Return *Shape:* (rows, tokens), true at tokens and false at padding."""
    return torch.arange(indices.shape[1], device=indices.device)[None] < lengths[:, None]
