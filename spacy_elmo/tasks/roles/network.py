"""The network of semantic roles in torch: vectors of tokens and a predicate -> scores of tags."""

from typing import cast

import torch

from ..shared.bilstm import BiLSTM


class RoleNetwork(torch.nn.Module):
    """A BiLSTM over a sentence in which one token is marked as the predicate (He et al. 2017, made small).

    The mark is a vector that is added to the predicate's own, and another one that is added to all others. Each
    token's scores come from its state and that of the predicate.

    width: of the tokens' vectors.
    tags: number of tags.
    lstm_width: of each direction of the LSTM.
    depth: number of LSTM layers.
    """

    def __init__(self, width: int, tags: int, lstm_width: int, depth: int) -> None:
        super().__init__()
        self.mark = torch.nn.Embedding(2, width)
        self.lstm = BiLSTM(width, lstm_width, depth)
        self.dropout = torch.nn.Dropout(0.0)
        self.output = torch.nn.Linear(4 * lstm_width, tags)

    def set_dropout(self, rate: float) -> None:
        """Set the dropout of the input, between the LSTM layers, and of the output."""
        self.dropout.p = rate

    def forward(
        self, vectors: torch.Tensor, places: torch.Tensor, lengths: torch.Tensor, predicates: torch.Tensor
    ) -> torch.Tensor:
        """Return the scores of all tags. *Shape:* (rows, longest, tags); what is beyond a row's end means nothing.

        vectors: of all tokens, each one once. *Shape:* (tokens, width).
        places: for each token of each row, its number in `vectors`; anything beyond a row's end. *Shape:* (rows,
            longest).
        lengths: of the rows, the longest first. *Shape:* (rows,).
        predicates: for each row, the place of its predicate. *Shape:* (rows,).
        """
        marks = torch.nn.functional.one_hot(predicates, places.shape[1])
        inputs = self.dropout(torch.nn.functional.embedding(places, vectors)) + self.mark(marks)
        states = self.dropout(self.lstm(inputs, lengths, self.dropout.p if self.training else 0.0))
        own = states[torch.arange(len(states)), predicates]
        # the output layer in two parts: the predicate's is computed once for each row
        first, second = self.output.weight.split(states.shape[-1], dim=1)
        scores = states @ first.T + (own @ second.T + self.output.bias)[:, None]
        return cast(torch.Tensor, scores)
