"""Rows of float32 tensors.

On the CPU numpy moves them. Torch would wake threads of its own, which then spin for some milliseconds on the cores
that the engine's threads need.
"""

import numpy as np
import torch
from torch import Tensor

from .lstm.packing import Index


def take_rows(table: Tensor, places: Index, out: Tensor) -> None:
    """out[k] = table[places[k]]."""
    if table.device.type == "cpu":
        np.take(table.numpy(), places, 0, out.numpy(), mode="clip")  # the default writes a copy first
    else:
        torch.index_select(table, 0, torch.from_numpy(places).to(table.device), out=out)


def put_rows(table: Tensor, places: Index, values: Tensor) -> None:
    """table[places[k]] = values[k]."""
    if table.device.type == "cpu":
        table.numpy()[places] = values.numpy()
    else:
        table[torch.from_numpy(places).to(table.device)] = values
