"""The arrays that the engine returns, filled in from packed rows."""

import numpy as np
import pytest
import torch
from stack_cases import OPTIONS

from spacy_elmo import kernels
from spacy_elmo.inference.engine import fill, new_layers
from spacy_elmo.inference.packing import Packing


@pytest.mark.parametrize("loops", ["compiled", "none"])
@pytest.mark.parametrize("boundary", [0, 1])
def test_each_position_gets_its_own_row(
    boundary: int, loops: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    library = request.getfixturevalue("compiled") if loops == "compiled" else None
    monkeypatch.setattr(kernels, "load", lambda: library)
    tokens = np.array([3, 1, 5] if boundary == 0 else [3, 0, 5])
    arrays, lengths = new_layers(OPTIONS, tokens), tokens + 2 * boundary
    assert [array.shape for array in arrays] == [(OPTIONS.layers, n, OPTIONS.width) for n in tokens]
    packing, width = Packing.of(lengths), OPTIONS.projection_dim
    # position t of sentence s, layer k, direction d: d k s t, and the column behind the point
    names = np.concatenate([10 * s + np.arange(n) for s, n in enumerate(lengths)])
    for d in (0, 1):
        outputs = []
        for k in range(OPTIONS.layers):
            rows = (1000 * d + 100 * k + names[packing.source])[:, None] + np.arange(width) / 100
            outputs.append((torch.from_numpy(rows.astype(np.float32)), packing.places))
        fill(arrays, outputs, packing.unsorted_lengths, boundary, d)
    for s, array in enumerate(arrays):
        for k, t, column in np.ndindex(array.shape):
            d, at = divmod(column, width)
            name = 1000 * d + 100 * k + 10 * s + t + boundary + at / 100
            assert array[k, t, column] == np.float32(name)
