"""Copies of rows from and to float32 tensors.

On the CPU numpy copies them. Torch would wake its own threads, which then spin for some milliseconds on the cores that
the engine's threads need.
"""

import numpy as np
import torch
from torch import Tensor

from .lstm.packing import Index


def gather_rows(table: Tensor, places: Index, out: Tensor) -> None:
    """Set out[k] = table[places[k]].

    table: *Shape:* (any, width).
    places: *Shape:* (rows,).
    out: *Shape:* (rows, width).
    """
    if table.device.type == "cpu":
        np.take(table.numpy(), places, 0, out.numpy(), mode="clip")  # the default writes a copy first
    else:
        torch.index_select(table, 0, torch.from_numpy(places).to(table.device), out=out)


def scatter_rows(table: Tensor, places: Index, values: Tensor) -> None:
    """Set table[places[k]] = values[k].

    table: *Shape:* (any, width).
    places: *Shape:* (rows,), without repetitions.
    values: *Shape:* (rows, width).
    """
    if table.device.type == "cpu":
        table.numpy()[places] = values.numpy()
    else:
        table[torch.from_numpy(places).to(table.device)] = values
