"""The engine: from one batch of sentences to their layers, without gradients."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from ..kernels.calls import GATES
from ..modules import BiLM, LstmState
from ..modules.bilm import in_float32
from .linear import products_of
from .lstm import make_direction
from .packing import (
    BOUNDARIES,
    Batch,
    Buffers,
    Index,
    Packing,
    groups_of,
    plan_positions,
    plan_words,
    with_boundaries,
)
from .words import WordEncoder, WordVectors
from .workers import run_all

Layers = npt.NDArray[np.float32]
DIRECTIONS = 2
# The first LSTM layer computes W x + b of the gates only once for each distinct word. The results of one direction have
# at most this size in bytes, which is enough for a thousand words at the original size.
WORD_BYTES = 2**26
# size of the result of one matrix multiplication of the input weights: small enough for the processor's cache
INPUT_BYTES = 2**23


class Engine:
    """The forward pass of a biLM, on copies of a network's weights. It is valid until these change.

    It is thread-safe: calls share only the weights and the cache of words. Another thread may train the network
    meanwhile. A caller's inference mode is switched off during a call, because the threads of the engine do not have
    it.

    bilm: the network, on any device. Weights in float16 are read as float32.
    dtype: type of the matrix multiplications, float32 or bfloat16. The convolutions have the type of the network's
        weights. The LSTM's cells and all results are float32.
    cached_words: number of words whose vectors of layer 0 are cached between calls (see WordVectors).
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> None:
        self.options, self.device = bilm.options, bilm.boundary.device
        self._row_bytes = 4 * GATES * self.options.dim  # W x + b of all gates at one position, in float32
        self._input_rows = max(1, INPUT_BYTES // self._row_bytes)
        layers = bilm.lstm.weights()
        has_projection, buffers = layers[0].projection is not None, Buffers()  # the directions share them
        self.directions = [
            make_direction(self.options, has_projection, dtype, self.device, buffers, self._input_rows)
            for _ in range(DIRECTIONS)
        ]
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        for layer in layers:
            run_all(
                [partial(direction.add, layer.direction(d)) for d, direction in enumerate(self.directions)], n_threads
            )
        named = bilm.char_cnn.named_parameters(prefix="char_cnn")
        weights = {name: in_float32(parameter.detach()) for name, parameter in named}
        encoders: list[WordEncoder] = []

        @torch.no_grad()
        def encode() -> None:
            encoders.append(WordEncoder(self.options, weights, products_of(dtype, self.device)))

        run_all([encode], n_threads)  # many small parts: faster on one thread
        self.words = WordVectors(encoders[0], self.device, cached_words)
        # the first position is the same in all sentences, so the state that follows it is computed once
        zero, self._first = self.zero_state(1), self.zero_state(1)
        for d in range(DIRECTIONS):
            batch = self._batch(np.array([d]), np.array([1]))
            states = (_select(state, d, slice(None)) for state in (zero, self._first))
            self._run_direction(d, self.words.boundary, batch, *states)

    def __repr__(self) -> str:
        return f"Engine(LSTMs: {self.directions[0]}, character encoder: {self.words.encoder.dtype})"

    def zero_state(self, rows: int) -> LstmState:
        """Return the zero state, float32, *Shape:* (layers, 2, rows, projection_dim) and (layers, 2, rows, dim)."""
        shape, widths = (self.options.n_layers, DIRECTIONS, rows), (self.options.projection_dim, self.options.dim)
        return LstmState(*(torch.zeros(*shape, n, dtype=torch.float32, device=self.device) for n in widths))

    @torch.inference_mode(False)
    @torch.no_grad()
    def run(self, sentences: Sequence[Sequence[str]]) -> list[Layers]:
        """Return the layers of each sentence, *Shape:* (layers, tokens, width), from the zero state.

        sentences: lists of words, which may be empty. The arrays share no memory.
        """
        return self._run(sentences)

    @torch.inference_mode(False)
    @torch.no_grad()
    def run_from(self, sentences: Sequence[Sequence[str]], state: LstmState) -> tuple[list[Layers], LstmState]:
        """Return the layers of each sentence, and the states after them. Each sentence starts from a state.

        state: *Shape:* (layers, 2, sentences, projection_dim) and (layers, 2, sentences, dim).

        Returns *Shape:* (layers, tokens, width) for each sentence, and the states in float32, of the shapes of `state`.
        """
        start = LstmState(*(part.to(self.device, torch.float32) for part in state))
        ends = LstmState(*map(torch.empty_like, start))
        return self._run(sentences, start, ends), ends

    def _run(
        self, sentences: Sequence[Sequence[str]], state: LstmState | None = None, ends: LstmState | None = None
    ) -> list[Layers]:
        """Run both directions over sentences from a state, and set `ends`. None: from the zero state, without ends."""
        distinct: dict[str, int] = {}
        words = [word for sentence in sentences for word in sentence]
        index = np.fromiter((distinct.setdefault(word, len(distinct)) for word in words), np.int64, len(words))
        index += BOUNDARIES
        encoded = self.words(list(distinct))
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        layers = results = new_layers(self.options, lengths)
        # `boundary` is the number of positions at each end of a row that are not in its layers
        if state is None:  # the rows are without `<S>` and `</S>`, so empty sentences have none
            boundary, lengths, layers = 0, lengths[lengths > 0], [array for array in results if array.size]
            state = LstmState(*(part.expand(-1, -1, len(lengths), -1) for part in self._first))
        else:
            boundary, index, lengths = 1, with_boundaries(index, lengths), lengths + BOUNDARIES
        if not len(index):
            return results
        n_threads = torch.get_num_threads() if encoded.device.type == "cpu" else 1
        offsets = np.concatenate([[0], np.cumsum(lengths)])

        def parts(rows: slice) -> list[Callable[[], None]]:
            group_index = index[offsets[rows.start] : offsets[rows.stop]]
            batch = self._batch(group_index, lengths[rows])

            @torch.no_grad()
            def part(d: int) -> None:
                group_ends = ends and _select(ends, d, rows)
                outputs = self._run_direction(d, encoded, batch, _select(state, d, rows), group_ends)
                places = batch.packing.places
                layer_rows = [(encoded, group_index), *((output, places) for output in outputs)]
                fill(layers[rows], layer_rows, batch.packing.unsorted_lengths, boundary, d)

            return [partial(part, d) for d in range(DIRECTIONS)]

        run_all([part for rows in groups_of(lengths, n_threads) for part in parts(rows)], n_threads)
        return results

    def _batch(self, index: Index, lengths: Index) -> Batch:
        packing = Packing.of(lengths)
        max_words = WORD_BYTES // self._row_bytes
        first = plan_words(packing, index[packing.source], max_words, self._input_rows, self.device)
        return Batch(packing, first, plan_positions(packing, self._input_rows, self.device))

    def _run_direction(
        self, d: int, encoded: Tensor, batch: Batch, state: LstmState, ends: LstmState | None
    ) -> list[Tensor]:
        """Run direction `d` over a batch, from states whose rows are in the caller's order. 0: forward, 1: backward."""
        order = torch.from_numpy(batch.packing.order).to(encoded.device)
        same = all(part.stride(1) == 0 for part in state)  # one state is expanded to all rows
        packed = state if same else LstmState(*(part[:, order] for part in state))
        after = ends and LstmState(*map(torch.empty_like, packed))
        outputs = self.directions[d].run(encoded, batch, packed, after, d == 1)
        for part, end in zip(ends or (), after or ()):
            part[:, order] = end
        return outputs


def _select(state: LstmState, d: int, rows: slice) -> LstmState:
    """Return views of the states of some rows in one direction."""
    return LstmState(*(part[:, d, rows] for part in state))


def new_layers(options: BiLMOptions, lengths: Index) -> list[Layers]:
    """Return an array for each sentence, *Shape:* (layers, tokens, width), whose values are not set."""
    return [np.empty((options.layers, n, options.width), np.float32) for n in lengths.tolist()]


def fill(
    layers: Sequence[Layers], outputs: Sequence[tuple[Tensor, Index]], lengths: Index, boundary: int, d: int
) -> None:
    """Write one direction's half of all layers into the arrays of sentences.

    layers: what `new_layers` returned. The forward half is [..., :projection_dim], the backward half the other one.
    outputs: for each layer a tensor of *Shape:* (any, projection_dim), and the row in it of each position of all
        sentences, one sentence after the other.
    lengths: number of positions of each sentence.
    boundary: number of positions at each end of a sentence that are not in `layers`.
    d: 0 for the forward half, 1 for the backward half.
    """
    library = kernels.load()
    tokens, ends = lengths - 2 * boundary, np.cumsum(lengths).tolist()
    if library is not None:
        shapes = [(len(outputs), n, 2 * outputs[0][0].shape[1]) for n in tokens.tolist()]
        starts = [kernels.address("layers", array, np.float32, shape) for array, shape in zip(layers, shapes)]
        addresses = np.array(starts, np.uintp)
        of_lengths = kernels.address("lengths", lengths, np.int64, (len(layers),))
    for k, (output, places) in enumerate(outputs):
        rows = np.ascontiguousarray(output.cpu().numpy())
        width = rows.shape[1]
        if library is None:
            positions = rows[places]
            for array, end in zip(layers, ends):
                stop = end - boundary
                array[k, :, d * width : (d + 1) * width] = positions[stop - array.shape[1] : stop]
            continue
        targets = addresses + ((2 * k * tokens + d) * width * rows.itemsize).astype(np.uintp)
        library.fill_rows(
            len(layers),
            boundary,
            width,
            2 * width,
            of_lengths,
            kernels.address("places", places, np.int64, (None,)),
            kernels.address("rows", rows, np.float32, (None, width)),
            kernels.address("targets", targets, np.uintp, (len(layers),)),
        )
