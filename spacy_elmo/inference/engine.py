"""Sentences to layers, without gradients."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import ElmoError, Errors
from ..modules import BiLM, LstmState
from ..modules.lstm.layers import LayerWeights
from .layers import Layers, fill, new_layers
from .lstm.packing import BOUNDARIES, Index, Packing, groups_of, with_boundaries
from .lstm.plan import Plans, plan_positions, plan_words
from .lstm.stacks import make_stack
from .memory import Buffers, trim
from .word_vectors import WordVectors
from .workers import run_all

DIRECTIONS = 2
# of the input products that are taken at a time: little memory, and on AMX and in torch they stay in the cache
INPUT_BYTES = 2**23
# of the first layer's input products that are kept, in one direction: room for a thousand words at the original size
WORD_BYTES = 2**26


class Batch(NamedTuple):
    """Rows that run together, of one direction or the other."""

    packing: Packing
    plans: Plans


class Engine:
    """A biLM laid out for speed: to be made anew when weights change.

    dtype: of the products, float32 or bfloat16; the characters' convolutions, the cells and all that is returned are
        float32 in any case.
    cached_words: how many words' layer-0 vectors are kept between calls (see WordVectors).
    take: empty the biLM's matrices, float32, as soon as they are laid out here: they are in memory once, and nobody
        else can use the biLM until give_back.
    Thread-safe: calls share nothing but the weights and that cache. A caller's inference mode, which other threads do
    not have, is left meanwhile.
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(
        self, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0, *, take: bool = False
    ) -> None:
        bilm.reclaim()
        self.bilm, self.options = bilm, bilm.options
        self.n_taken = 0  # LSTM layers whose matrices the biLM lacks
        self._row_bytes = 4 * 4 * bilm.options.dim
        self.input_rows = max(1, INPUT_BYTES // self._row_bytes)
        self.words = WordVectors(bilm, dtype, cached_words)
        try:
            if take:
                self.words.encoder.take()
            self._lay_out(dtype, take)
            # from the zero state every sentence's first position is the same: the state after it is taken once
            zero, self.begun = self.zero_state(1), self.zero_state(1)
            for d in range(DIRECTIONS):
                batch = self._batch(np.array([d]), np.array([1]))
                states = (_of(state, d, slice(None)) for state in (zero, self.begun))
                self._run_stack(d, self.words.boundary, batch, *states)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # what is half made: memory may be short
            bilm.unreturned = self.give_back
            bilm.reclaim()
            raise

    def _lay_out(self, dtype: torch.dtype, take: bool) -> None:
        weights, buffers = self.bilm.lstm.weights(), Buffers()
        made_for = weights[0].projection is not None, dtype, self.device, buffers, self.input_rows
        self.stacks = [make_stack(self.options, *made_for) for _ in range(DIRECTIONS)]
        if take:
            trim()  # what reading the files left
        for layer in weights:
            for d, stack in enumerate(self.stacks):
                stack.add(_detached(layer, d), take)
            if take:
                self.n_taken += 1
                for matrix in layer.matrices:
                    matrix.data = matrix.data.new_empty(0)
                trim()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.bilm.boundary.device

    def zero_state(self, rows: int) -> LstmState:
        """The state before anything was read, float32."""
        return LstmState(*(part.float() for part in self.bilm.lstm.zero_state(rows)))

    @property
    def is_taken(self) -> bool:
        """Whether the biLM lacks matrices."""
        return self.n_taken > 0 or self.words.encoder.is_taken

    @torch.inference_mode(False)
    @torch.no_grad()
    def matrices(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The biLM's parameters that were taken, each with its values."""
        yield from self.words.encoder.matrices()
        for number, layer in enumerate(self.bilm.lstm.weights()[: self.n_taken]):
            both = [stack.matrices(number) for stack in self.stacks]
            yield from zip(layer.matrices, map(torch.stack, zip(*both)))

    @torch.inference_mode(False)
    @torch.no_grad()
    def give_back(self) -> None:
        """Make the biLM whole again, bit for bit, where it was taken."""
        for parameter, values in self.matrices():
            parameter.data = values
        self.words.encoder.forget_taken()
        self.n_taken = 0

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
        state = LstmState(*(part.expand(-1, -1, int(is_read.sum()), -1) for part in self.begun))
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
        kept = WORD_BYTES // self._row_bytes
        first = plan_words(packing, index[packing.source], kept, self.input_rows, self.device)
        return Batch(packing, Plans(first, plan_positions(packing, self.input_rows, self.device)))

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


def _detached(layer: LayerWeights, d: int) -> LayerWeights:
    return LayerWeights(*(None if weights is None else weights.detach()[d] for weights in layer))  # type: ignore[arg-type]


def _of(state: LstmState, d: int, rows: slice) -> LstmState:
    """Views of one direction's rows."""
    return LstmState(*(part[:, d, rows] for part in state))
