"""Loss and gradients of one batch, whose parts run in several threads.

Each thread runs one direction of one group of streams on one core. Threads that share a matrix multiplication would be
many times slower whenever another process needs a core. Sums have a fixed order: the same seed and number of threads
give the same bits.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..modules import BiLM, LstmState
from ..modules.lstm import scan_layers
from ..modules.lstm_cell import LayerWeights
from .objectives import Scorer
from .scan import window_scans
from .workspace import Workspace

CHARACTERS = "char_cnn."  # parameters of the character encoder


def inverted_dropout(rate: float, seed: int, device: torch.device | None = None) -> Callable[[Tensor], Tensor] | None:
    """Return a function that applies inverted dropout; None: the rate is 0. The masks depend on the seed alone."""
    if not rate:
        return None
    generator = torch.Generator(device or torch.device("cpu")).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=generator.device) >= rate
        return x * kept.to(x.device, x.dtype).div_(1 - rate)

    return drop


class Batch(NamedTuple):
    """One batch of training: a `Window` as tensors.

    keep: *Shape:* (steps, streams, 1), 0 if the state is forgotten before a step, else 1.
    """

    characters: Tensor
    inputs: Tensor
    targets: Tensor
    keep: Tensor


class Gradients(NamedTuple):
    """loss: sum, times the scale; dense: of the biLM's parameters, none if it is frozen; scored: of the softmax's."""

    loss: float
    dense: list[Tensor]
    scored: list[Tensor]
    state: LstmState


class Workers:
    """Threads that compute the gradients of batches: 1, or an even number, two directions for each group of streams."""

    def __init__(self, bilm: BiLM, n_threads: int, matmul_dtype: torch.dtype, dropout: float = 0.0) -> None:
        self.bilm, self.matmul_dtype, self.dropout = bilm, matmul_dtype, dropout
        self.n_threads, self.n_groups = n_threads, max(1, n_threads // 2)
        self.executor = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
        self.workspaces: dict[int, list[Workspace]] = {}
        self.named = dict(bilm.named_parameters())
        self.of_characters = [name for name in self.named if name.startswith(CHARACTERS)]

    def close(self) -> None:
        self.executor.shutdown()

    def gradients(
        self, batch: Batch, scorer: Scorer, state: LstmState, scale: float, seed: int, frozen: bool = False
    ) -> Gradients:
        """Return the sum of the losses of all predictions, times `scale`, and its gradients. seed: of the dropout."""
        encoded = list(self.executor.map(lambda c: self._encode(c, frozen), batch.characters.chunk(self.n_threads)))
        x = torch.cat([part.detach() for part in encoded])
        rows = batch.inputs.shape[2] // self.n_groups
        tasks = [(d, slice(k * rows, (k + 1) * rows)) for k in range(self.n_groups) for d in (0, 1)]

        def read(number: int) -> tuple[float, list[Tensor], list[Tensor], LstmState]:
            """Loss, gradients of input and LSTM, those of the softmax, and the state, of a direction's group."""
            direction, part = tasks[number]
            one = slice(direction, direction + 1)
            inputs = F.embedding(batch.inputs[direction, :, part], x).requires_grad_(not frozen)
            layers = [
                LayerWeights._make(None if w is None else w.detach()[one].requires_grad_() for w in layer)
                for layer in self.bilm.lstm.weights()
            ]
            of_bilm = [] if frozen else [inputs, *(w for layer in layers for w in layer if w is not None)]
            drop = inverted_dropout(self.dropout, seed * len(tasks) + number)
            workspaces = self.workspaces.setdefault(number, [Workspace() for _ in layers])
            scans = window_scans(batch.keep[:, part].contiguous(), self.matmul_dtype, workspaces)
            with torch.set_grad_enabled(not frozen):
                outputs, hs, cs = scan_layers(
                    self.bilm.options,
                    layers,
                    inputs[None],
                    LstmState(state.h[:, one, part], state.c[:, one, part]),
                    scans=scans,
                    drop=drop,
                )
            top, of_scorer = outputs[-1][0].flatten(0, 1), scorer.leaves()
            with torch.enable_grad():
                top = top if drop is None else drop(top)
                loss = scorer.loss(of_scorer, top, direction, part, self.matmul_dtype) * scale
            found = list(torch.autograd.grad(loss, [*of_scorer, *of_bilm]))
            return loss.item(), found[len(of_scorer) :], found[: len(of_scorer)], _last(hs, cs)

        losses, of_bilm, of_scorer, states = zip(*self.executor.map(read, range(len(tasks))))
        dense: list[Tensor] = []
        if not frozen:
            d_x = torch.zeros_like(x)
            for (direction, part), (d_inputs, *_) in zip(tasks, of_bilm):
                d_x.index_add_(0, batch.inputs[direction, :, part].reshape(-1), d_inputs.flatten(0, 1))
            parts = list(self.executor.map(self._encode_back, encoded, d_x.split([len(part) for part in encoded])))
            by_name = dict(zip(self.of_characters, map(_sum, zip(*parts))))
            # tasks alternate between the directions
            directions = [[_sum(same) for same in zip(*(layers for _, *layers in of_bilm[d::2]))] for d in (0, 1)]
            of_layers = [name for name in self.named if name not in by_name]
            by_name |= {name: torch.cat(both) for name, both in zip(of_layers, zip(*directions))}
            dense = [by_name[name] for name in self.named]
        h, c = (
            torch.cat([torch.cat(list(pair), 1) for pair in zip(values[::2], values[1::2])], 2)
            for values in zip(*states)
        )
        return Gradients(sum(losses), dense, [_sum(same) for same in zip(*of_scorer)], LstmState(h, c))

    def _encode(self, characters: Tensor, frozen: bool) -> Tensor:
        with torch.set_grad_enabled(not frozen):
            encoded: Tensor = self.bilm.char_cnn(characters, self.matmul_dtype)
        return encoded

    def _encode_back(self, encoded: Tensor, d_encoded: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(encoded, [self.named[name] for name in self.of_characters], d_encoded)


def _last(hs: Sequence[Tensor], cs: Sequence[Tensor]) -> LstmState:
    return LstmState(*(torch.stack([values[:, -1] for values in kind]).detach() for kind in (hs, cs)))


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


class GpuStep:
    """Computes what `Workers` computes, in one thread."""

    def __init__(self, bilm: BiLM, matmul_dtype: torch.dtype, dropout: float = 0.0) -> None:
        self.bilm, self.matmul_dtype, self.dropout = bilm, matmul_dtype, dropout
        self.workspaces = [Workspace() for _ in bilm.lstm.layers]

    def close(self) -> None:
        """Do nothing."""

    def gradients(
        self, batch: Batch, scorer: Scorer, state: LstmState, scale: float, seed: int, frozen: bool = False
    ) -> Gradients:
        drop = inverted_dropout(self.dropout, seed, batch.inputs.device)
        characters, inputs = without_repetitions(batch.characters, batch.inputs)
        with torch.set_grad_enabled(not frozen):
            encoded = self.bilm.char_cnn(characters, self.matmul_dtype)
            outputs, hs, cs = scan_layers(
                self.bilm.options,
                self.bilm.lstm.weights(),
                F.embedding(inputs, encoded),
                state,
                scans=window_scans(batch.keep, self.matmul_dtype, self.workspaces),
                drop=drop,
            )
            top = outputs[-1] if drop is None else drop(outputs[-1])
        of_scorer, parameters = scorer.leaves(), [] if frozen else list(self.bilm.parameters())
        with torch.enable_grad():
            losses = [
                scorer.loss(of_scorer, rows.flatten(0, 1), direction, slice(None), self.matmul_dtype)
                for direction, rows in enumerate(top)
            ]
            loss = torch.stack(losses).sum() * scale
        found = list(torch.autograd.grad(loss, [*of_scorer, *parameters]))
        return Gradients(loss.item(), found[len(of_scorer) :], found[: len(of_scorer)], _last(hs, cs))


def without_repetitions(characters: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return each word's character ids once, and the inputs as indices of these words."""
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, characters.shape[1:], generator=generator, device="cpu")
    distinct, index = torch.unique((characters * factors.to(characters.device)).sum(1), return_inverse=True)
    numbers = torch.arange(len(characters), device=characters.device)
    first = torch.full_like(distinct, len(characters)).scatter_reduce_(0, index, numbers, "amin")
    kept = characters[first]
    if not torch.equal(kept[index], characters):  # two words have the same sum
        return characters, inputs
    return kept, index[inputs]
