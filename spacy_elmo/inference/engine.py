"""Sentences to layers, without gradients."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import ElmoError, Errors
from ..modules import BiLM, LstmState
from .layers import Layers, fill, new_layers
from .layout import DIRECTIONS, Layout
from .lstm.packing import BOUNDARIES, Index, Packing, groups_of, with_boundaries
from .lstm.plan import Plans, plan_positions, plan_words
from .word_vectors import WordVectors
from .workers import run_all

# of the gates' sums of words, which the first layer computes once, in one direction: room for a thousand words at the
# original size
WORD_BYTES = 2**26


class Batch(NamedTuple):
    """Rows that run together, of one direction or the other."""

    packing: Packing
    plans: Plans


class Engine:
    """The forward pass of a biLM over a layout of its weights.

    layout: of all weights.
    cached_words: how many words' layer-0 vectors are held between calls (see WordVectors).
    Thread-safe: calls share nothing but the weights and that cache. A caller's inference mode, which other threads do
    not have, is left meanwhile.
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, layout: Layout, cached_words: int = 0) -> None:
        self.options, self.device, self.stacks = layout.options, layout.device, layout.stacks
        self._input_rows, self._row_bytes = layout.input_rows, layout.row_bytes
        self.words = WordVectors(layout.encoder, layout.device, cached_words)
        # from the zero state every sentence's first position is the same: the state after it is computed once
        zero, self._first = self.zero_state(1), self.zero_state(1)
        for d in range(DIRECTIONS):
            batch = self._batch(np.array([d]), np.array([1]))
            states = (_of(state, d, slice(None)) for state in (zero, self._first))
            self._run_stack(d, self.words.boundary, batch, *states)

    @classmethod
    @torch.inference_mode(False)
    @torch.no_grad()
    def of(cls, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> "Engine":
        """An engine beside a network, which goes on owning its weights. Once these change, make another one.

        bilm: left as it is; its matrices are copied, the rest is shared.
        dtype: of the matrix multiplications, float32 or bfloat16. The characters' convolutions run in the network's
            own type, the cells in float32, and all that is returned is float32.
        cached_words: see Engine.
        """
        weights = {name: parameter.detach() for name, parameter in bilm.named_parameters()}
        layout = Layout(bilm.options, weights, dtype, lossless=False)
        layout.lay_out(weights)
        return cls(layout, cached_words)

    def zero_state(self, rows: int) -> LstmState:
        """The state before anything was read, float32.

        rows: sentences. *Shape:* (layers, 2, rows, projection_dim) and (layers, 2, rows, dim).
        """
        shape, widths = (self.options.n_layers, DIRECTIONS, rows), (self.options.projection_dim, self.options.dim)
        return LstmState(*(torch.zeros(*shape, n, dtype=torch.float32, device=self.device) for n in widths))

    @torch.inference_mode(False)
    @torch.no_grad()
    def run(self, sentences: Sequence[Sequence[str]]) -> list[Layers]:
        """Layers of each sentence, which starts from the zero state.

        sentences: words; an empty sentence gives (layers, 0, width).
        Returns for each sentence an array of its own, *Shape:* (layers, tokens, width).
        """
        encoded, index = self._encode(sentences)
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        layers = new_layers(self.options, lengths)
        is_read = lengths > 0
        state = LstmState(*(part.expand(-1, -1, int(is_read.sum()), -1) for part in self._first))
        self._both(encoded, index, lengths[is_read], state, None, [array for array in layers if array.size], 0)
        return layers

    @torch.inference_mode(False)
    @torch.no_grad()
    def run_from(self, sentences: Sequence[Sequence[str]], state: LstmState) -> tuple[list[Layers], LstmState]:
        """As run, but each sentence starts from a state; returns the states after them too, float32.

        state: *Shape:* (layers, 2, sentences, projection_dim) and (layers, 2, sentences, dim).
        Raises ElmoError for one of another shape.
        """
        for name, part, width in zip("hc", state, (self.options.projection_dim, self.options.dim)):
            expected = (self.options.n_layers, DIRECTIONS, len(sentences), width)
            if part.shape != expected:
                raise ElmoError(Errors.STATE_SHAPE.format(name=name, got=tuple(part.shape), expected=expected))
        state = LstmState(*(part.to(self.device, torch.float32) for part in state))
        encoded, words = self._encode(sentences)
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        layers = new_layers(self.options, lengths)
        index = with_boundaries(words, lengths)
        ends = LstmState(*map(torch.empty_like, state))
        self._both(encoded, index, lengths + BOUNDARIES, state, ends, layers, 1)
        return layers, ends

    def _encode(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Index]:
        """Layer 0 of the boundaries and of the distinct words, and each word's row in it."""
        numbers: dict[str, int] = {}
        words = [word for sentence in sentences for word in sentence]
        index = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int64, len(words))
        return self.words(list(numbers)), index + BOUNDARIES

    def _both(
        self,
        encoded: Tensor,
        index: Index,
        lengths: Index,
        state: LstmState,
        ends: LstmState | None,
        layers: list[Layers],
        boundary: int,
    ) -> None:
        """Run both directions over rows that lie one after another; their layers and ends, the states after them, are
        filled in.

        index: *Shape:* (positions,), into encoded, (words, projection_dim); lengths: of the rows, at least 1.
        boundary: positions at both ends of a row that its array has no place for.
        """
        if not len(index):
            return
        n_threads = torch.get_num_threads() if encoded.device.type == "cpu" else 1
        begins = np.concatenate([[0], np.cumsum(lengths)])

        def parts(rows: slice) -> list[Callable[[], None]]:
            here = index[begins[rows.start] : begins[rows.stop]]
            batch = self._batch(here, lengths[rows])

            @torch.no_grad()
            def part(d: int) -> None:
                ends_here = ends and _of(ends, d, rows)
                outputs = self._run_stack(d, encoded, batch, _of(state, d, rows), ends_here)
                places = batch.packing.places
                rows_of = [(encoded, here), *((output, places) for output in outputs)]
                fill(layers[rows], rows_of, batch.packing.given, boundary, d)

            return [partial(part, d) for d in range(DIRECTIONS)]

        run_all([part for rows in groups_of(lengths, n_threads) for part in parts(rows)], n_threads)

    def _batch(self, index: Index, lengths: Index) -> Batch:
        packing = Packing.of(lengths)
        most = WORD_BYTES // self._row_bytes
        first = plan_words(packing, index[packing.source], most, self._input_rows, self.device)
        return Batch(packing, Plans(first, plan_positions(packing, self._input_rows, self.device)))

    def _run_stack(
        self, d: int, encoded: Tensor, batch: Batch, state: LstmState, ends: LstmState | None
    ) -> list[Tensor]:
        """One direction over some rows: outputs in the packed order. state, ends: (layers, rows, ...)."""
        order = torch.from_numpy(batch.packing.order).to(encoded.device)
        same = all(part.stride(1) == 0 for part in state)  # all rows begin alike
        packed = state if same else LstmState(*(part[:, order] for part in state))
        after = ends and LstmState(*map(torch.empty_like, packed))
        outputs = self.stacks[d].run(encoded, batch.plans, batch.packing, packed, after, d == 1)
        for part, end in zip(ends or (), after or ()):
            part[:, order] = end
        return outputs


def _of(state: LstmState, d: int, rows: slice) -> LstmState:
    """Views of one direction's rows."""
    return LstmState(*(part[:, d, rows] for part in state))
