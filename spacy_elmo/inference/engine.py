"""The engine: from sentences to layers, without gradients; and the owner of the weights that it runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import kernels
from ..errors import ElmoError
from ..formats.options import BiLMOptions
from ..formats.weights import check_shapes, expected_parameters
from ..locks import Lock
from ..modules import Arrays, BiLM, LstmState
from ..modules.bilm import as_tensor
from ..modules.loading import products_of
from ..modules.lstm_cell import LayerWeights
from .lstm import make_stack
from .packing import (
    BOUNDARIES,
    Batch,
    Buffers,
    Index,
    Packing,
    groups_of,
    plan_positions,
    plan_words,
    trim,
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


def token_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Return the indices of the sentences of each batch, longest sentences first.

    Sentences of similar length are in one batch, so that the matrix multiplications of the recurrent weights have as
    many rows as possible at all positions.

    lengths: number of tokens of each sentence.
    max_tokens: number of tokens in a batch, at most. A longer sentence is a batch alone.
    """
    batches: list[list[int]] = []
    tokens = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or tokens + lengths[i] > max_tokens:
            batches.append([])
            tokens = 0
        batches[-1].append(i)
        tokens += lengths[i]
    return batches


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

    def __repr__(self) -> str:
        return f"Engine(LSTMs: {self.stacks[0]}, character encoder: {self.words.encoder.dtype})"

    @classmethod
    @torch.inference_mode(False)
    @torch.no_grad()
    def of(cls, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> Engine:
        """Return an engine with the weights of a network, which stays their owner. It is valid until they change.

        bilm: the network. All weights are copied: another thread may train it while the engine runs.
        dtype: type of the matrix multiplications, float32 or bfloat16. The convolutions have the type of the network's
            weights. The LSTM's cells and all results are float32.
        cached_words: number of words whose vectors are cached.
        """
        weights = {name: parameter.detach().clone() for name, parameter in bilm.named_parameters()}
        layout = Layout(bilm.options, weights, dtype, lossless=False)
        layout.lay_out(weights)
        return cls(layout, cached_words)

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
        return self._run(sentences, None)[0]

    @torch.inference_mode(False)
    @torch.no_grad()
    def run_from(self, sentences: Sequence[Sequence[str]], state: LstmState) -> tuple[list[Layers], LstmState]:
        """Return the layers of each sentence, and the states after them. Each sentence starts from a state.

        state: *Shape:* (layers, 2, sentences, projection_dim) and (layers, 2, sentences, dim).

        Returns *Shape:* (layers, tokens, width) for each sentence, and the states in float32, of the shapes of `state`.
        Raises ElmoError if `state` has other shapes.
        """
        for name, part, width in zip("hc", state, (self.options.projection_dim, self.options.dim)):
            expected = (self.options.n_layers, DIRECTIONS, len(sentences), width)
            if part.shape != expected:
                raise ElmoError(
                    f"State to start from: {name} has shape {tuple(part.shape)}. Expected {expected}: layers, "
                    "directions, sentences, width."
                )
        layers, ends = self._run(sentences, LstmState(*(part.to(self.device, torch.float32) for part in state)))
        assert ends is not None
        return layers, ends

    def _run(
        self, sentences: Sequence[Sequence[str]], state: LstmState | None
    ) -> tuple[list[Layers], LstmState | None]:
        """Run both directions over sentences from a state. None: from the zero state, without states at the end."""
        distinct: dict[str, int] = {}
        words = [word for sentence in sentences for word in sentence]
        index = np.fromiter((distinct.setdefault(word, len(distinct)) for word in words), np.int64, len(words))
        index += BOUNDARIES
        encoded = self.words(list(distinct))
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        layers = results = new_layers(self.options, lengths)
        ends: LstmState | None = None
        # `boundary` is the number of positions at each end of a row that are not in its layers
        if state is None:  # the rows are without `<S>` and `</S>`, so empty sentences have none
            boundary, lengths, layers = 0, lengths[lengths > 0], [array for array in results if array.size]
            state = LstmState(*(part.expand(-1, -1, len(lengths), -1) for part in self._first))
        else:
            boundary, index, lengths = 1, with_boundaries(index, lengths), lengths + BOUNDARIES
            ends = LstmState(*map(torch.empty_like, state))
        if not len(index):
            return results, ends
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
        return results, ends

    def _batch(self, index: Index, lengths: Index) -> Batch:
        packing = Packing.of(lengths)
        max_words = WORD_BYTES // self._row_bytes
        first = plan_words(packing, index[packing.source], max_words, self._input_rows, self.device)
        return Batch(packing, first, plan_positions(packing, self._input_rows, self.device))

    def _run_stack(
        self, d: int, encoded: Tensor, batch: Batch, state: LstmState, ends: LstmState | None
    ) -> list[Tensor]:
        """Run direction `d` over a batch, from states whose rows are in the caller's order. 0: forward, 1: backward."""
        order = torch.from_numpy(batch.packing.order).to(encoded.device)
        same = all(part.stride(1) == 0 for part in state)  # one state is expanded to all rows
        packed = state if same else LstmState(*(part[:, order] for part in state))
        after = ends and LstmState(*map(torch.empty_like, packed))
        outputs = self.stacks[d].run(encoded, batch, packed, after, d == 1)
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


class Layout:
    """A character encoder, and a stack of LSTM layers for each direction. They can run after `lay_out`.

    weights: the biLM's weights by parameter name. Only their names, device and types are used here.
    dtype: type of the matrix multiplications, float32 or bfloat16.
    lossless: whether `matrices` can restore the weights. Then they must be float32.
    """

    def __init__(self, options: BiLMOptions, weights: dict[str, Tensor], dtype: torch.dtype, lossless: bool) -> None:
        self.options, self.lossless = options, lossless
        self.device = weights["char_cnn.embedding.weight"].device
        self.row_bytes = 4 * 4 * options.dim  # W x + b of four gates at one position, in float32
        self.input_rows = max(1, INPUT_BYTES // self.row_bytes)
        self.encoder = WordEncoder(options, products_of(dtype, self.device), lossless)
        parts = ("input_weight", "recurrent_weight", "projection")
        self._parts = [part for part in parts if f"lstm.layers.0.{part}" in weights]
        buffers = Buffers()  # the directions share them
        self.stacks = [
            make_stack(options, "projection" in self._parts, dtype, self.device, buffers, self.input_rows)
            for _ in range(DIRECTIONS)
        ]

    @property
    def _n_layers(self) -> int:
        """Number of LSTM layers that are laid out in both directions. Their matrices are no longer in the weights."""
        return min(len(stack.layers) for stack in self.stacks)

    def lay_out(self, weights: dict[str, Tensor]) -> None:
        """Lay out all matrices. After an error, call it again with the same `weights`.

        weights: the biLM's weights by parameter name. Each matrix is removed from it after it is laid out. Biases,
            convolutions and character embeddings are not removed.
        """
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        run_all([partial(self.encoder.lay_out, weights)], n_threads)  # many small parts: faster on one thread
        for k in range(self._n_layers, self.options.n_layers):
            self._trim()
            adds = [
                partial(stack.add, self._direction(weights, k, d), self.lossless)
                for d, stack in enumerate(self.stacks)
                if len(stack.layers) == k
            ]
            run_all(adds, n_threads)
            for name in self._matrix_names(k):
                del weights[name]
        self._trim()

    def matrices(self) -> Iterator[tuple[str, Tensor]]:
        """Yield names and copies of the matrices that `lay_out` has removed, bit for bit as they were."""
        yield from self.encoder.matrices()
        for k in range(self._n_layers):
            both = zip(*(stack.matrices(k) for stack in self.stacks))
            yield from zip(self._matrix_names(k), map(torch.stack, both))

    def _direction(self, weights: dict[str, Tensor], k: int, d: int) -> LayerWeights:
        matrices = dict(zip(self._parts, (weights[name][d] for name in self._matrix_names(k))))
        return LayerWeights(
            matrices["input_weight"],
            matrices["recurrent_weight"],
            weights[f"lstm.layers.{k}.bias"][d],
            matrices.get("projection"),
        )

    def _trim(self) -> None:
        """Return the memory of removed matrices to the system, unless a network still owns them."""
        if self.lossless:
            trim()

    def _matrix_names(self, k: int) -> list[str]:
        return [f"lstm.layers.{k}.{part}" for part in self._parts]


class FrozenBiLM:
    """Owns the weights of a biLM that is not trained. Each weight is in memory once.

    Until the first `prepare_engine` the weights are plain tensors. Then their matrices are in the engine's layout, from
    which they can be restored bit for bit. If memory runs out while they are laid out, some matrices are plain and some
    are laid out. None is lost, and the next call lays out the others. It is thread-safe.

    arrays: the weights by parameter name, as formats.read_weights returns them. The dict is emptied, so that this
        object is their only owner.

    Raises WeightsError for arrays that are missing, unexpected, misshapen or not float32. The dict is then unchanged.
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, options: BiLMOptions, arrays: Arrays, device: torch.device | str = "cpu") -> None:
        check_shapes(arrays, options, "the biLM in memory")
        self.options = options
        self._names = list(expected_parameters(options, arrays))
        self._plain: dict[str, Tensor] = {}
        for name in self._names:
            self._plain[name] = as_tensor(arrays[name]).to(device)
            del arrays[name]
        self._device = self._plain["char_cnn.embedding.weight"].device
        self._layout: Layout | None = None
        self._engine: Engine | None = None
        self._lock = Lock()

    @torch.inference_mode(False)
    @torch.no_grad()
    def prepare_engine(self, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> Engine:
        """Return the engine of these weights, with the arguments that the first call gave, as those of `Engine.of`."""
        with self._lock:
            if self._engine is None:
                self._layout = self._layout or Layout(self.options, self._plain, dtype, lossless=True)
                self._layout.lay_out(self._plain)
                self._engine = Engine(self._layout, cached_words)
            return self._engine

    @torch.inference_mode(False)
    @torch.no_grad()
    def to_arrays(self) -> Arrays:
        """Return copies of the weights by parameter name, as formats.write_weights expects them."""
        with self._lock:
            tensors = {name: tensor.clone() for name, tensor in self._plain.items()}
            tensors |= dict(self._layout.matrices()) if self._layout is not None else {}
            return {name: tensors[name].cpu().numpy() for name in self._names}

    def __reduce__(self) -> tuple[type[FrozenBiLM], tuple[BiLMOptions, Arrays, torch.device]]:
        # an engine's layout can't be copied; a copy makes its own
        return FrozenBiLM, (self.options, self.to_arrays(), self._device)

    def to_network(self) -> BiLM:
        """Return a network with copies of these weights, on their device."""
        return BiLM.from_arrays(self.options, self.to_arrays()).to(self._device)
