"""A bidirectional LSTM over padded rows."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded rows. Padding does not change what it returns for the tokens of a row.

    Each layer is two LSTMs, the second of which reads the rows from their ends. torch's packed rows would say the same,
    but take 1.5 to 2.2 times as long on a CPU.

    width: of the input.
    lstm_width: of each direction's output.
    depth: number of layers.
    """

    def __init__(self, width: int, lstm_width: int, depth: int = 1) -> None:
        super().__init__()
        widths = [width, *[2 * lstm_width] * (depth - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(each, lstm_width, batch_first=True) for each in widths)
        self.backwards = nn.ModuleList(nn.LSTM(each, lstm_width, batch_first=True) for each in widths)

    def forward(self, x: Tensor, lengths: Tensor, dropout: float = 0.0) -> Tensor:
        """Return *Shape:* (rows, tokens, 2 * lstm_width). What is beyond a row's end means nothing.

        x: *Shape:* (rows, tokens, width).
        lengths: *Shape:* (rows,), number of tokens of each row without padding.
        dropout: rate of dropout between the layers.
        """
        places = torch.arange(x.shape[1], device=x.device)[None]
        lengths = lengths.to(x.device)[:, None]
        mirrored = torch.where(places < lengths, lengths - 1 - places, places)
        for number, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards)):
            if number:
                x = F.dropout(x, dropout)
            ahead, _ = forwards(x)
            back, _ = backwards(_take(x, mirrored))
            x = torch.cat([ahead, _take(back, mirrored)], dim=-1)
        return x


def _take(x: Tensor, places: Tensor) -> Tensor:
    """Return the vectors of each row at these places. x: *Shape:* (rows, tokens, width), places: (rows, tokens)."""
    return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))
