"""Computes loss and gradients of one batch, whose parts run in several threads.

Each thread runs one direction of one group of streams on one core. If two threads shared a matrix multiplication, they
would wait for each other, and would be many times slower whenever another process needs a core. Sums are computed in a
fixed order. So the same seed and number of threads give the same bits.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..modules import BiLM, LstmState
from ..modules.lstm import GpuWorkspace, scan_layers
from ..modules.lstm_cell import Arrays, LayerWeights
from .objectives import Scorer


def inverted_dropout(rate: float, seed: int, device: torch.device | None = None) -> Callable[[Tensor], Tensor] | None:
    """Return a function that applies inverted dropout; None: the rate is 0.

    The masks depend on the seed and the kind of device, not on the thread.
    """
    if not rate:
        return None
    generator = torch.Generator(device or torch.device("cpu")).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=generator.device) >= rate
        return x * kept.to(x.device, x.dtype).div_(1 - rate)

    return drop


CHARACTERS = "char_cnn."  # parameters of the character encoder


class Batch(NamedTuple):
    """One batch of training. A stream is one row of it, which the next batch continues.

    characters: *Shape:* (distinct words, characters), character ids.
    inputs: *Shape:* (2, steps, streams), indices of the distinct words, forward and backward.
    targets: *Shape:* (2, steps, streams), ids of the vocabulary.
    keep: *Shape:* (steps, streams, 1), 0 if the state is forgotten before a step, else 1.
    """

    characters: Tensor
    inputs: Tensor
    targets: Tensor
    keep: Tensor


class Gradients(NamedTuple):
    """Loss and gradients of a batch.

    loss: sum of the losses, times the scale.
    dense: gradients of the biLM's parameters, in their order; empty if the biLM is frozen.
    scored: gradients of the scorer's leaves.
    state: the LSTM's state after the batch.
    """

    loss: float
    dense: list[Tensor]
    scored: list[Tensor]
    state: LstmState


class _Part(NamedTuple):
    """What one thread computes: loss and gradients of one direction of one group of streams.

    x: gradient of the LSTM's input, *Shape:* (steps, streams, projection_dim); None if the biLM is frozen.
    layers: gradients of the LSTM layers' parameters; empty if the biLM is frozen.
    h, c: *Shape:* (layers, 1, streams, projection_dim) and (layers, 1, streams, dim), the state after the batch.
    loss, scored: as in `Gradients`, of this part.
    """

    loss: float
    x: Tensor | None
    layers: tuple[Tensor, ...]
    scored: tuple[Tensor, ...]
    h: Tensor
    c: Tensor


def _one_thread() -> None:
    torch.set_num_threads(1)


class Workers:
    """Threads that compute the gradients of batches.

    bilm: the network. Its weights are read at each call, and not changed.
    n_threads: 1, or an even number: two directions for each group of streams.
    matmul_dtype: type of the matrix multiplications; weights and sums stay float32.
    dropout: share of each LSTM layer's inputs and of the top layer's outputs that is set to 0.
    """

    def __init__(self, bilm: BiLM, n_threads: int, matmul_dtype: torch.dtype, dropout: float = 0.0) -> None:
        self.bilm, self.matmul_dtype, self.dropout = bilm, matmul_dtype, dropout
        self.n_threads, self.n_groups = n_threads, max(1, n_threads // 2)
        self.executor = ThreadPoolExecutor(n_threads, initializer=_one_thread)
        self.workspaces: dict[int, list[Arrays]] = {}
        self.named = dict(bilm.named_parameters())
        self.of_characters = [name for name in self.named if name.startswith(CHARACTERS)]

    def close(self) -> None:
        self.executor.shutdown()

    def gradients(
        self, batch: Batch, scorer: Scorer, state: LstmState, scale: float, seed: int, frozen: bool = False
    ) -> Gradients:
        """Return the sum of the losses of all predictions, times `scale`, and its gradients.

        state: the LSTM's state before the batch.
        seed: of the dropout.
        frozen: whether the biLM is not trained, so that only the gradients of the scorer are computed.
        """
        encoded = list(self.executor.map(lambda c: self._encode(c, frozen), batch.characters.chunk(self.n_threads)))
        x = torch.cat([part.detach() for part in encoded])
        tasks = [
            (direction, part) for part in self._groups(batch.inputs.shape[2]) for direction in range(len(batch.inputs))
        ]
        parts = list(
            self.executor.map(
                lambda k: self._read(
                    x, batch, scorer, state, *tasks[k], scale, seed * len(tasks) + k, frozen, self._spaces(k)
                ),
                range(len(tasks)),
            )
        )
        dense: list[Tensor] = []
        if not frozen:
            d_x = torch.zeros_like(x)
            for (direction, part), got in zip(tasks, parts):
                assert got.x is not None
                d_x.index_add_(0, batch.inputs[direction, :, part].reshape(-1), got.x.flatten(0, 1))
            of_characters = list(self.executor.map(self._encode_back, encoded, d_x.split([len(p) for p in encoded])))
            dense = self._collect(of_characters, [direction for direction, _ in tasks], parts)
        scored = [_sum(same) for same in zip(*(part.scored for part in parts))]
        return Gradients(sum(part.loss for part in parts), dense, scored, self._state(parts))

    def _spaces(self, task: int) -> list[Arrays]:
        return self.workspaces.setdefault(task, [{} for _ in self.bilm.lstm.layers])

    def _groups(self, streams: int) -> list[slice]:
        rows = streams // self.n_groups
        return [slice(k * rows, (k + 1) * rows) for k in range(self.n_groups)]

    def _encode(self, characters: Tensor, frozen: bool) -> Tensor:
        with torch.set_grad_enabled(not frozen):
            encoded: Tensor = self.bilm.char_cnn(characters, self.matmul_dtype)
        return encoded

    def _encode_back(self, encoded: Tensor, d_encoded: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(encoded, [self.named[name] for name in self.of_characters], d_encoded)

    def _read(
        self,
        encoded: Tensor,
        batch: Batch,
        scorer: Scorer,
        state: LstmState,
        direction: int,
        part: slice,
        scale: float,
        seed: int,
        frozen: bool,
        workspaces: Sequence[Arrays],
    ) -> _Part:
        one = slice(direction, direction + 1)
        x = F.embedding(batch.inputs[direction, :, part], encoded).requires_grad_(not frozen)
        layers = [_leaves(layer, one) for layer in self.bilm.lstm.weights()]
        leaves = [] if frozen else [x, *(weight for layer in layers for weight in layer if weight is not None)]
        drop = inverted_dropout(self.dropout, seed)
        start = LstmState(state.h[:, one, part], state.c[:, one, part])
        keep = batch.keep[:, part].contiguous()
        with torch.set_grad_enabled(not frozen):
            outputs, hs, cs = scan_layers(
                self.bilm.options,
                layers,
                x[None],
                start,
                keep,
                drop=drop,
                matmul_dtype=self.matmul_dtype,
                workspaces=workspaces,
            )
        top = outputs[-1][0].flatten(0, 1)
        of_scorer = scorer.leaves()
        with torch.enable_grad():
            total = scorer.loss(of_scorer, top if drop is None else drop(top), direction, part, self.matmul_dtype)
            loss = total * scale
        gradients = torch.autograd.grad(loss, [*of_scorer, *leaves])
        of_bilm = gradients[len(of_scorer) :]
        h, c = (torch.stack([values[:, -1] for values in kind]).detach() for kind in (hs, cs))
        return _Part(loss.item(), of_bilm[0] if of_bilm else None, of_bilm[1:], gradients[: len(of_scorer)], h, c)

    def _collect(
        self, of_characters: Sequence[tuple[Tensor, ...]], directions: Sequence[int], parts: Sequence[_Part]
    ) -> list[Tensor]:
        """Return the gradients of all parameters of the biLM, in their order."""
        by_name = {name: _sum([part[k] for part in of_characters]) for k, name in enumerate(self.of_characters)}
        of_layers = [name for name in self.named if name not in by_name]
        halves = [[part.layers for part, d in zip(parts, directions) if d == direction] for direction in (0, 1)]
        for k, name in enumerate(of_layers):
            by_name[name] = torch.cat([_sum([layers[k] for layers in half]) for half in halves])
        return [by_name[name] for name in self.named]

    def _state(self, parts: Sequence[_Part]) -> LstmState:
        both = [
            LstmState(*(torch.cat([getattr(part, kind) for part in parts[k : k + 2]], 1) for kind in ("h", "c")))
            for k in range(0, len(parts), 2)
        ]
        return LstmState(torch.cat([s.h for s in both], 2), torch.cat([s.c for s in both], 2))


def _leaves(layer: LayerWeights, rows: slice) -> LayerWeights:
    input_weight, recurrent_weight, bias, projection = layer
    return LayerWeights(
        _leaf(input_weight, rows),
        _leaf(recurrent_weight, rows),
        _leaf(bias, rows),
        None if projection is None else _leaf(projection, rows),
    )


def _leaf(weight: Tensor, rows: slice) -> Tensor:
    return weight.detach()[rows].requires_grad_()


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


class GpuStep:
    """Computes what `Workers` computes, in one thread."""

    def __init__(self, bilm: BiLM, matmul_dtype: torch.dtype, dropout: float = 0.0) -> None:
        self.bilm, self.matmul_dtype, self.dropout = bilm, matmul_dtype, dropout
        on_gpu = next(bilm.parameters()).is_cuda
        self.workspaces = [GpuWorkspace() if on_gpu else {} for _ in bilm.lstm.layers]

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def gradients(
        self, batch: Batch, scorer: Scorer, state: LstmState, scale: float, seed: int, frozen: bool = False
    ) -> Gradients:
        """Return what `Workers.gradients` returns."""
        drop = inverted_dropout(self.dropout, seed, batch.inputs.device)
        characters, inputs = without_repetitions(batch.characters, batch.inputs)
        with torch.set_grad_enabled(not frozen):
            encoded = self.bilm.char_cnn(characters, self.matmul_dtype)
            outputs, hs, cs = scan_layers(
                self.bilm.options,
                self.bilm.lstm.weights(),
                F.embedding(inputs, encoded),
                state,
                batch.keep,
                drop=drop,
                matmul_dtype=self.matmul_dtype,
                workspaces=self.workspaces,
            )
            top = outputs[-1] if drop is None else drop(outputs[-1])
        of_scorer, parameters = scorer.leaves(), [] if frozen else list(self.bilm.parameters())
        with torch.enable_grad():
            losses = [
                scorer.loss(of_scorer, rows.flatten(0, 1), direction, slice(None), self.matmul_dtype)
                for direction, rows in enumerate(top)
            ]
            loss = torch.stack(losses).sum() * scale
        gradients = torch.autograd.grad(loss, [*of_scorer, *parameters])
        end = LstmState(*(torch.stack([values[:, -1] for values in kind]).detach() for kind in (hs, cs)))
        return Gradients(loss.item(), list(gradients[len(of_scorer) :]), list(gradients[: len(of_scorer)]), end)


def without_repetitions(characters: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return each word once, and the inputs as indices of these words.

    characters: *Shape:* (words, characters), character ids, in which words may be repeated.
    inputs: of any shape, indices of words.
    """
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, characters.shape[1:], generator=generator, device="cpu")
    distinct, index = torch.unique((characters * factors.to(characters.device)).sum(1), return_inverse=True)
    numbers = torch.arange(len(characters), device=characters.device)
    first = torch.full_like(distinct, len(characters)).scatter_reduce_(0, index, numbers, "amin")
    kept = characters[first]
    if not torch.equal(kept[index], characters):  # two words have the same sum
        return characters, inputs
    return kept, index[inputs]
