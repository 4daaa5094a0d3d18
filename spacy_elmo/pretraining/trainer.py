"""The updates of a pretraining run, and the state that a resumed run needs."""

import ctypes
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from ..errors import CHECKPOINT_PARTS, CheckpointError, SettingsError
from ..modules import LstmState
from ..modules.loading import Precision, dtype_of
from .batches import ReadAhead, StreamRange, Streams
from .config import TrainingSettings
from .distributed import Group
from .language_model import LanguageModel
from .objectives import AdaptiveObjective, objective_of
from .optimizers import (
    MuonAdamW,
    clip,
    dense_optimizer,
    optimizer_arrays,
    optimizer_forms,
    rate_at,
    restore_optimizer,
    set_rate,
)
from .prepared import PreparedCorpus
from .step import Batch, GpuStep, Workers

Tensors = tuple[Tensor, ...] | list[Tensor]


def average_of(model: LanguageModel, horizon: float) -> AveragedModel:
    """Return an average of a model's weights, for `update_average`. It holds a copy of them.

    horizon: number of updates after which a weight's share in the average has fallen to 1 / e, above 0. During the
        first horizon the average is the plain mean, so that the weights of the start do not count more.
    """

    @torch.no_grad()
    def add(averages: Tensors, weights: Tensors, count: Tensor | int) -> None:
        share = min(1.0, max(1 / (int(count) + 1), 1 / horizon))
        torch._foreach_lerp_(averages, weights, share)

    return AveragedModel(_modules(model), multi_avg_fn=add)


def update_average(average: AveragedModel, model: LanguageModel) -> None:
    """Add the weights of a model to an average that `average_of` made of it. Call it after each update."""
    average.update_parameters(_modules(model))


def averaged_model(average: AveragedModel, model: LanguageModel) -> LanguageModel:
    """Return a model of the averages; the model itself if nothing was added to them so far."""
    if not average.n_averaged:
        return model
    modules: Any = average.module
    return LanguageModel(modules["bilm"], modules["softmax"], model.vocabulary)


def _modules(model: LanguageModel) -> nn.ModuleDict:
    return nn.ModuleDict({"bilm": model.bilm, "softmax": model.softmax})


Forms = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
Value = TypeVar("Value")
AVERAGE = "average/"  # begins the names of the average of the weights


def fitting(arrays: Mapping[str, npt.NDArray[Any]], expected: Forms, path: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a checkpoint that a run needs, after a check of their names, types and shapes.

    An average of the weights may be absent or not needed, because `training.average_share` may change.

    arrays: of the checkpoint.
    expected: type and shape of each array that the run has.
    path: name of the checkpoint in messages.

    Raises CheckpointError if they are not those of this run.
    """
    if not (_has_average(arrays) and _has_average(expected)):
        arrays, expected = _without_average(arrays), _without_average(expected)
    problems = [f"{name} is missing" for name in expected if name not in arrays]
    problems += [
        f"{name} is {array.dtype} of shape {array.shape}, expected {expected[name][0]} of {expected[name][1]}"
        for name, array in arrays.items()
        if name in expected and (array.dtype, array.shape) != expected[name]
    ]
    problems += [f"{name} is unexpected" for name in arrays if name not in expected]
    if not problems:
        problems = [f"{name} is {arrays[name]}" for name in ("step", AVERAGE + "n_averaged") if arrays.get(name, 0) < 0]
    if problems:
        raise CheckpointError(CHECKPOINT_PARTS.format(path=path, problems="; ".join(problems[:5])))
    return dict(arrays)


def _has_average(arrays: Mapping[str, object]) -> bool:
    return any(name.startswith(AVERAGE) for name in arrays)


def _without_average(arrays: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in arrays.items() if not name.startswith(AVERAGE)}


# numbers of the parameters in glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST_MMAP_THRESHOLD = 32 << 20  # bytes; glibc accepts no more. Code that needs larger arrays must reuse them itself
LARGEST_TRIM_THRESHOLD = 2**31 - 1


def reuse_memory() -> None:
    """Tell glibc not to return freed memory to the system, and to use one arena for all threads.

    Otherwise each update would have page faults for all its large arrays: an update needs 5 to 10 % less time this way
    (measured). It is meant for a process that only trains. Without glibc it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for parameter, value in (
        (M_ARENA_MAX, 1),
        (M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD),
        (M_TRIM_THRESHOLD, LARGEST_TRIM_THRESHOLD),
    ):
        mallopt(parameter, value)


@contextmanager
def enough_memory(training: TrainingSettings) -> Iterator[None]:
    """Turn errors of numpy and torch about missing memory into SettingsError, which names the settings to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # on a CPU torch raises a plain RuntimeError
        if not isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise SettingsError(
            f"there is not enough memory ({reason}). Lower training.streams, which is {training.streams:,}, "
            f"training.steps, which is {training.steps:,}, vocabulary.size or the sizes in [bilm]."
        ) from error


Arrays = dict[str, npt.NDArray[Any]]


class Trainer:
    """Trains a model on a corpus. Use it in a `with` block, which sets the number of torch's threads.

    Each call of `step` is an update. With several processes each reads its part of the streams, and all use the sum of
    their gradients. To resume a run, save what `state_arrays` returns and hand it to `restore` of a new trainer.

    model: changed in place.
    shuffle_block: sentences of a block of the shuffling; see BlockShuffle.
    group: the processes of the run; None: this process alone.

    Raises SettingsError if the settings, the corpus and the number of processes do not fit each other.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        model: LanguageModel,
        corpus: PreparedCorpus,
        shuffle_block: int,
        group: Group | None = None,
    ) -> None:
        self.settings, self.model, self.group = settings, model, Group() if group is None else group
        share, left = divmod(settings.streams, self.group.size)
        on_gpu = self.group.device.type == "cuda"
        groups = 1 if on_gpu else max(1, settings.workers // 2)
        if left or share % groups:
            expected = self.group.size * groups
            raise SettingsError(
                f"training.streams is {settings.streams}. Expected a multiple of {expected}: the streams are "
                f"divided equally among {self.group.size} processes, and in each process among the pairs of "
                "training.workers."
            )
        if len(corpus) < settings.streams:
            raise SettingsError(
                f"the training text has {len(corpus)} sentences, but training.streams is {settings.streams}. "
                "Expected at least one sentence for each stream: set training.streams lower, or give more text."
            )
        self.local_streams = slice(self.group.rank * share, (self.group.rank + 1) * share)
        of_text = (corpus, model.vocabulary, model.bilm.options.max_characters)
        order = (StreamRange(settings.streams, self.local_streams.start, share), shuffle_block, settings.seed)
        ahead = settings.readers, settings.steps
        self.streams = ReadAhead(*of_text, *order, *ahead) if settings.readers else Streams(*of_text, *order)
        model.bilm.to(self.group.device)
        model.softmax.to(self.group.device)
        self.parameters = list(model.bilm.parameters())
        self.objective = objective_of(settings, model)
        self.state = model.bilm.lstm.zero_state(share)
        self.from_zero = _evenly_true(settings.zero_state_share, settings.streams)[self.local_streams]
        precision: Precision = settings.precision  # type: ignore[assignment]  # checked by the settings
        matmul_dtype = dtype_of(precision, self.group.device)
        self.optimizer = dense_optimizer(model.bilm.named_parameters(), settings.optimizer, matmul_dtype)
        self.workers = (
            GpuStep(model.bilm, matmul_dtype, settings.dropout)
            if on_gpu
            else Workers(model.bilm, settings.workers, matmul_dtype, settings.dropout)
        )
        self.tokens_per_update = settings.tokens_per_update
        self.tokens_per_epoch = corpus.n_tokens + len(corpus)
        wanted = settings.total_tokens or settings.epochs * self.tokens_per_epoch
        self.total_steps = max(1, round(wanted / self.tokens_per_update))
        self.step_number = 0
        horizon = settings.average_share * self.total_steps
        self.average = average_of(model, horizon) if horizon else None

    def __enter__(self) -> "Trainer":
        self._threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.workers)
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._threads)
        self.workers.close()
        self.streams.close()

    @property
    def tokens(self) -> int:
        """Tokens of one direction that all processes have read, `</S>` counted."""
        return self.step_number * self.tokens_per_update

    @property
    def frozen(self) -> bool:
        """Whether the next update changes the softmax only."""
        return self.tokens < self.settings.frozen_tokens

    @property
    def rate(self) -> float:
        share = rate_at(self.settings.schedule, self.step_number, self.total_steps)
        return self.settings.optimizer.learning_rate * share

    def check_rounding(self) -> None:
        """Raise SettingsError if Muon's matrices, which each process computes, would differ from process to process."""
        if self.group.size > 1 and isinstance(self.optimizer, MuonAdamW):
            problem = (
                f'training.optimizer.name is "muon", and process {self.group.rank} rounds matrix '
                "multiplications in another way than process 0, so their weights would drift apart. Expected "
                'processors of one kind and the same version of torch, or a new run with "adamw".'
            )
            self.group.check_alike(self.optimizer.rounding(), SettingsError(problem))

    def step(self) -> float:
        """Make one update. All processes must call it.

        If a gradient is not finite, the weights stay as they are, but the trainer can't go on.

        Returns the mean loss of all predictions in nats, NaN if a gradient is not finite. Its exponential is no
        perplexity if the softmax is sampled.
        """
        settings, frozen = self.settings, self.frozen
        dense = None if frozen else [torch.zeros_like(parameter) for parameter in self.parameters]
        loss = torch.zeros((), dtype=torch.float64)
        scale = settings.optimizer.loss_scale / (2 * self.tokens_per_update)
        for number in range(settings.accumulate):
            seed = _seed(settings.seed, self.step_number, number)
            batch = self._batch()
            scorer = self.objective.scorer(batch.targets, seed, self.group)
            dropout_seed = _seed(seed, self.group.rank, 0) >> 16  # each process has other dropout masks
            result = self.workers.gradients(batch, scorer, self.state, scale, dropout_seed, frozen)
            self.state = result.state
            loss += result.loss
            self.objective.add(scorer, result.scored)
            if dense is not None:
                torch._foreach_add_(dense, result.dense)
        self._update(dense, loss)
        self.step_number += 1
        if self.average is not None:
            update_average(self.average, self.model)
        return float(loss) / settings.optimizer.loss_scale

    def _update(self, dense: list[torch.Tensor] | None, loss: torch.Tensor) -> None:
        gradients = [*(dense or []), *self.objective.gradients()]
        if self.group.size > 1:
            *gradients, total = self.group.sum([*gradients, loss.float().to(self.group.device)])
            loss.copy_(total)
        n_dense = len(dense or [])
        norm = clip(gradients, self.settings.optimizer.clip_norm)
        if not math.isfinite(norm):  # an update would make the weights NaN
            loss.fill_(math.nan)
            return
        self.objective.replace(gradients[n_dense:])
        rate = self.rate
        if dense is not None:
            for parameter, gradient in zip(self.parameters, gradients):
                parameter.grad = gradient
            set_rate(self.optimizer, rate)
            self.optimizer.step()
        self.objective.update(rate, self.step_number + 1)

    @property
    def model_to_keep(self) -> LanguageModel:
        """The model that is evaluated and saved: of the average of the weights, if there is one."""
        return self.model if self.average is None else averaged_model(self.average, self.model)

    def _batch(self) -> Batch:
        window = self.streams.next(self.settings.steps)
        keep = torch.from_numpy(~(window.starts & self.from_zero))[:, :, None].float()
        device = self.group.device
        tensors = (torch.from_numpy(values) for values in (window.characters, window.inputs, window.targets))
        characters, inputs, targets = (tensor.to(device).long() for tensor in tensors)
        return Batch(characters, inputs, targets, keep.to(device))

    def state_arrays(self) -> Arrays:
        """Return the state of the run, which all processes must ask for together.

        A run that is restored from it makes exactly the same updates, bit by bit.

        Returns the arrays by their names: weights, state of the optimizers, positions of all streams, LSTM states of
        all streams, and the number of updates.
        """
        arrays: Arrays = {f"bilm/{name}": array for name, array in self.model.bilm.to_arrays().items()}
        arrays |= {f"softmax/{name}": t.cpu().numpy().copy() for name, t in self.model.softmax.state_dict().items()}
        arrays |= {f"optimizer/{name}": array for name, array in optimizer_arrays(self.optimizer).items()}
        arrays |= {f"objective/{name}": array for name, array in self.objective.arrays().items()}
        if self.average is not None:
            arrays |= {AVERAGE + name: t.cpu().numpy().copy() for name, t in self.average.state_dict().items()}
        for name, array in self.streams.state().items():
            arrays[f"streams/{name}"] = self.group.concatenate(torch.from_numpy(array), 0).numpy()
        for name, tensor in (("h", self.state.h), ("c", self.state.c)):
            arrays[f"state/{name}"] = self.group.concatenate(tensor, 2).cpu().numpy().copy()
        return arrays | {"step": np.array(self.step_number)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], path: str = "the checkpoint") -> None:
        """Continue from a saved state. The number of processes may differ from that of the saved run.

        path: name of the checkpoint in messages.

        Raises CheckpointError if names, types or shapes of the arrays are not those of this run.
        """
        expected: Forms = {name: (array.dtype, array.shape) for name, array in self.state_arrays().items()}
        optimizers = {"optimizer/": self.optimizer}
        if isinstance(self.objective, AdaptiveObjective):
            optimizers["objective/"] = self.objective.optimizer
        for top, optimizer in optimizers.items():
            if any(name.startswith(top) for name in arrays):  # they are absent before the first update
                expected |= {top + name: form for name, form in optimizer_forms(optimizer).items()}
        arrays = fitting(arrays, expected, path)
        parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            top, _, name_in_part = name.partition("/")
            parts.setdefault(top, {})[name_in_part] = array
        for module, title in ((self.model.bilm, "bilm"), (self.model.softmax, "softmax")):
            module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in parts[title].items()})
        if "optimizer" in parts:  # it is absent before the first update of the biLM
            restore_optimizer(self.optimizer, parts["optimizer"])
        self.objective.restore(parts.get("objective", {}))
        if self.average is not None and "average" in parts:
            self.average.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in parts["average"].items()})
        self.streams.restore({name: array[self.local_streams] for name, array in parts["streams"].items()})
        h, c = (torch.from_numpy(np.array(parts["state"][name][:, :, self.local_streams])) for name in ("h", "c"))
        self.state = LstmState(h.to(self.group.device), c.to(self.group.device))
        self.step_number = int(parts["step"][""])


def _evenly_true(share: float, n: int) -> npt.NDArray[np.bool_]:
    """Return *Shape:* (n,), of which `share` is true, at even distances."""
    n_true = round(share * n)
    numbers = np.arange(n)
    result: npt.NDArray[np.bool_] = (numbers + 1) * n_true // n > numbers * n_true // n
    return result


def _seed(*numbers: int) -> int:
    """Return a seed below 2 ** 63 for random numbers of one update, so that a resumed run draws the same numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
