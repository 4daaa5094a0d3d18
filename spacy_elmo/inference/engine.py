"""Sentences to layers, without gradients."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..modules import BiLM, LstmState
from ..modules.lstm_scan import FORGET_BIAS
from .linear import PrepackedLinear
from .packing import Packing
from .word_vectors import WordVectors

# rows of the input product at a time: few enough for their gates to stay in the cache until their step
INPUT_ROWS = 512

Layers = npt.NDArray[np.float32]


class _Direction:
    """One layer's weights in one direction, gates reordered from i, j, f, o to i, f, o, j: one sigmoid, one tanh."""

    def __init__(self, bilm: BiLM, layer: int, direction: int, dtype: torch.dtype) -> None:
        dim = bilm.options.dim
        arrays = {name: p.detach()[direction].float() for name, p in bilm.lstm.layers[layer].named_parameters()}
        bias = arrays["bias"].clone()
        bias[2 * dim : 3 * dim] += FORGET_BIAS
        gates = torch.arange(4 * dim).view(4, dim)[[0, 2, 3, 1]].flatten()
        self.inputs = PrepackedLinear(arrays["input_weight"].t()[gates], bias[gates], INPUT_ROWS, dtype)
        self.recurrent = PrepackedLinear(arrays["recurrent_weight"].t()[gates], None, 128, dtype)
        projection = arrays.get("projection")
        self.projection = None if projection is None else PrepackedLinear(projection.t(), None, 128, dtype)


class Engine:
    """A biLM laid out for speed: to be made anew when weights change.

    dtype: of the LSTMs' products, float32 or bfloat16; the cells, the character encoder and all that is returned are
        float32 in any case.
    cached_words: how many words' layer-0 vectors are kept between calls (see WordVectors).
    Thread-safe: calls share nothing but the weights and that cache.
    """

    @torch.no_grad()
    def __init__(self, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> None:
        self.bilm, self.options = bilm, bilm.options
        self.words = WordVectors(bilm, cached_words)
        self.layers = [[_Direction(bilm, layer, d, dtype) for d in (0, 1)] for layer in range(bilm.options.n_layers)]

    @torch.no_grad()
    def run(self, sentences: Sequence[Sequence[str]], state: LstmState | None = None) -> tuple[list[Layers], LstmState]:
        """Layers of each sentence.

        sentences: words; an empty sentence gives (layers, 0, width).
        state: to start from, a row a sentence; None: the zero state.
        Returns for each sentence an array of its own, *Shape:* (layers, tokens, width), and the state after each.
        """
        if state is None:
            state = self.bilm.lstm.zero_state(len(sentences))
        if not sentences:
            return [], state
        index: dict[str, int] = {}
        rows = [
            np.array([0, *(index.setdefault(word, len(index) + 2) for word in sentence), 1]) for sentence in sentences
        ]
        encoded = torch.cat([self.words.boundary, self.words(list(index))])
        packing = Packing.of([len(row) for row in rows])
        x = encoded[torch.from_numpy(packing.pack(rows)).to(encoded.device)]
        order = torch.from_numpy(packing.order)
        h, c = state.h[:, :, order].contiguous(), state.c[:, :, order].contiguous()
        outputs = self._stack(x, packing, h, c)
        restore = torch.argsort(order)
        results: list[Layers] = [np.empty(0, np.float32)] * len(rows)
        for rank, row in enumerate(packing.order):
            places = torch.from_numpy(packing.places(rank)[1:-1]).to(x.device)
            results[row] = torch.stack([torch.cat([a[places], b[places]], 1) for a, b in outputs]).cpu().numpy()
        return results, LstmState(h[:, :, restore], c[:, :, restore])

    def _stack(self, x: Tensor, packing: Packing, h: Tensor, c: Tensor) -> list[tuple[Tensor, Tensor]]:
        """All layers as (forward, backward), *Shape:* (positions, projection_dim) each; h and c become the end's."""
        outputs = [(x, x)]
        for number, directions in enumerate(self.layers):
            pair = []
            for d, weights in enumerate(directions):
                below = outputs[-1][d]
                out = self._scan(weights, below, packing, h[number, d], c[number, d], backward=d == 1)
                pair.append(out.add_(below) if number > 0 and self.options.use_skip_connections else out)
            outputs.append((pair[0], pair[1]))
        return outputs

    def _scan(self, weights: _Direction, x: Tensor, packing: Packing, h: Tensor, c: Tensor, backward: bool) -> Tensor:
        """One layer in one direction; h (rows, projection_dim) and c (rows, dim) are updated in place."""
        dim, cell_clip, proj_clip = self.options.dim, self.options.cell_clip, self.options.proj_clip
        out = x.new_empty(len(x), self.options.projection_dim)
        steps = list(range(len(packing.active)))
        for chunk in _chunks(steps[::-1] if backward else steps, packing.active):
            first, last = min(chunk), max(chunk)
            begin = packing.offsets[first]
            inputs = weights.inputs(x[begin : packing.offsets[last] + packing.active[last]])
            for t in chunk:
                n, place = packing.active[t], packing.offsets[t]
                gates = inputs[place - begin : place - begin + n]
                gates += weights.recurrent(h[:n])
                gates[:, : 3 * dim].sigmoid_()
                i, f, o, j = gates.split(dim, 1)
                cell = c[:n].mul_(f).addcmul_(i, j.tanh_())
                if cell_clip is not None:
                    cell.clamp_(-cell_clip, cell_clip)
                hidden = torch.tanh(cell).mul_(o)
                if weights.projection is not None:
                    hidden = weights.projection(hidden)
                    if proj_clip is not None:
                        hidden.clamp_(-proj_clip, proj_clip)
                h[:n] = hidden
                out[place : place + n] = hidden
        return out


def _chunks(steps: list[int], active: list[int]) -> list[list[int]]:
    """Consecutive steps with at most INPUT_ROWS rows together (a longer step alone)."""
    chunks: list[list[int]] = []
    rows = 0
    for t in steps:
        if not chunks or rows + active[t] > INPUT_ROWS:
            chunks.append([])
            rows = 0
        chunks[-1].append(t)
        rows += active[t]
    return chunks
