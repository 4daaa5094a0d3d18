"""The engine: from sentences to layers, without gradients."""

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

# The first LSTM layer computes W x + b of the gates only once for each distinct word. The results of one direction have
# at most this size in bytes, which is enough for a thousand words at the original size.
WORD_BYTES = 2**26


class Batch(NamedTuple):
    """How rows that run together in one direction are packed, and what each layer computes for them."""

    packing: Packing
    plans: Plans


class Engine:
    """The forward pass of a biLM.

    It is thread-safe: calls share only the weights and the cache of words. A caller's inference mode is switched off
    during a call, because the threads of the engine do not have it.

    layout: all weights, laid out.
    cached_words: number of words whose vectors of layer 0 are cached between calls (see WordVectors).
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, layout: Layout, cached_words: int = 0) -> None:
        self.options, self.device, self.stacks = layout.options, layout.device, layout.stacks
        self._input_rows, self._row_bytes = layout.input_rows, layout.row_bytes
        self.words = WordVectors(layout.encoder, layout.device, cached_words)
        # the first position is the same in all sentences, so the state that follows it is computed once
        zero, self._first = self.zero_state(1), self.zero_state(1)
        for d in range(DIRECTIONS):
            batch = self._batch(np.array([d]), np.array([1]))
            states = (_select(state, d, slice(None)) for state in (zero, self._first))
            self._run_stack(d, self.words.boundary, batch, *states)

    @classmethod
    @torch.inference_mode(False)
    @torch.no_grad()
    def of(cls, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> "Engine":
        """Return an engine with the weights of a network, which stays their owner. It is valid until they change.

        bilm: the network. Its matrices are copied; biases and convolutions are shared.
        dtype: type of the matrix multiplications, float32 or bfloat16. The convolutions have the type of the network's
            weights. The LSTM's cells and all results are float32.
        cached_words: number of words whose vectors are cached.
        """
        weights = {name: parameter.detach() for name, parameter in bilm.named_parameters()}
        layout = Layout(bilm.options, weights, dtype, lossless=False)
        layout.lay_out(weights)
        return cls(layout, cached_words)

    def zero_state(self, rows: int) -> LstmState:
        """Return the zero state, float32, *Shape:* (layers, 2, rows, projection_dim) and (layers, 2, rows, dim).

        rows: number of sentences.
        """
        shape, widths = (self.options.n_layers, DIRECTIONS, rows), (self.options.projection_dim, self.options.dim)
        return LstmState(*(torch.zeros(*shape, n, dtype=torch.float32, device=self.device) for n in widths))

    @torch.inference_mode(False)
    @torch.no_grad()
    def run(self, sentences: Sequence[Sequence[str]]) -> list[Layers]:
        """Return the layers of each sentence. Each sentence starts from the zero state.

        sentences: lists of words. An empty sentence gives *Shape:* (layers, 0, width).

        Returns *Shape:* (layers, tokens, width) for each sentence. The arrays share no memory.
        """
        encoded, index = self._encode(sentences)
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        layers = new_layers(self.options, lengths)
        not_empty = lengths > 0
        state = LstmState(*(part.expand(-1, -1, int(not_empty.sum()), -1) for part in self._first))
        self._run_both(encoded, index, lengths[not_empty], state, None, [array for array in layers if array.size], 0)
        return layers

    @torch.inference_mode(False)
    @torch.no_grad()
    def run_from(self, sentences: Sequence[Sequence[str]], state: LstmState) -> tuple[list[Layers], LstmState]:
        """Return the layers of each sentence, and the states after them. Each sentence starts from a state.

        sentences: lists of words.
        state: *Shape:* (layers, 2, sentences, projection_dim) and (layers, 2, sentences, dim).

        Returns *Shape:* (layers, tokens, width) for each sentence, and the states in float32, of the shapes of `state`.
        Raises ElmoError if `state` has other shapes.
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
        self._run_both(encoded, index, lengths + BOUNDARIES, state, ends, layers, 1)
        return layers, ends

    def _encode(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Index]:
        """Return the vectors of `<S>`, `</S>` and the distinct words, and the row of each word in them."""
        distinct: dict[str, int] = {}
        words = [word for sentence in sentences for word in sentence]
        index = np.fromiter((distinct.setdefault(word, len(distinct)) for word in words), np.int64, len(words))
        return self.words(list(distinct)), index + BOUNDARIES

    def _run_both(
        self,
        encoded: Tensor,
        index: Index,
        lengths: Index,
        state: LstmState,
        ends: LstmState | None,
        layers: list[Layers],
        boundary: int,
    ) -> None:
        """Run both directions over rows, and write their layers into `layers` and the states after them into `ends`.

        encoded: *Shape:* (words, projection_dim), the vectors of layer 0 of distinct words.
        index: *Shape:* (positions,), the row in `encoded` of each position, one row of positions after the other.
        lengths: *Shape:* (rows,), number of positions of each row, at least 1.
        state: the states before the rows.
        ends: receives the states after the rows; None: they are not needed.
        layers: receives *Shape:* (layers, tokens, width) for each row.
        boundary: number of positions at each end of a row that are not in `layers`: 1 if rows contain `<S>` and
            `</S>`, else 0.
        """
        if not len(index):
            return
        n_threads = torch.get_num_threads() if encoded.device.type == "cpu" else 1
        offsets = np.concatenate([[0], np.cumsum(lengths)])

        def parts(rows: slice) -> list[Callable[[], None]]:
            group_index = index[offsets[rows.start] : offsets[rows.stop]]
            batch = self._batch(group_index, lengths[rows])

            @torch.no_grad()
            def part(d: int) -> None:
                group_ends = ends and _select(ends, d, rows)
                outputs = self._run_stack(d, encoded, batch, _select(state, d, rows), group_ends)
                places = batch.packing.places
                layer_rows = [(encoded, group_index), *((output, places) for output in outputs)]
                fill(layers[rows], layer_rows, batch.packing.unsorted_lengths, boundary, d)

            return [partial(part, d) for d in range(DIRECTIONS)]

        run_all([part for rows in groups_of(lengths, n_threads) for part in parts(rows)], n_threads)

    def _batch(self, index: Index, lengths: Index) -> Batch:
        packing = Packing.of(lengths)
        max_words = WORD_BYTES // self._row_bytes
        first = plan_words(packing, index[packing.source], max_words, self._input_rows, self.device)
        return Batch(packing, Plans(first, plan_positions(packing, self._input_rows, self.device)))

    def _run_stack(
        self, d: int, encoded: Tensor, batch: Batch, state: LstmState, ends: LstmState | None
    ) -> list[Tensor]:
        """Run one direction over rows, and write the states after them into `ends`.

        d: 0 for the forward direction, 1 for the backward direction.
        encoded: *Shape:* (words, projection_dim).
        batch: the rows.
        state: the states before the rows, *Shape:* (layers, rows, projection_dim) and (layers, rows, dim).
        ends: receives the states after the rows, of the same shapes; None: they are not needed.

        Returns the output of each LSTM layer in the packed order, *Shape:* (positions, projection_dim).
        """
        order = torch.from_numpy(batch.packing.order).to(encoded.device)
        same = all(part.stride(1) == 0 for part in state)  # one state is expanded to all rows
        packed = state if same else LstmState(*(part[:, order] for part in state))
        after = ends and LstmState(*map(torch.empty_like, packed))
        outputs = self.stacks[d].run(encoded, batch.plans, batch.packing, packed, after, d == 1)
        for part, end in zip(ends or (), after or ()):
            part[:, order] = end
        return outputs


def _select(state: LstmState, d: int, rows: slice) -> LstmState:
    """Return views of the states of some rows in one direction."""
    return LstmState(*(part[:, d, rows] for part in state))
