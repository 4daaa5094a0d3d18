"""The updates of a pretraining run, and the state that a resumed run needs."""

import copy
import ctypes
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from ..errors import CHECKPOINT_PARTS, CheckpointError, SettingsError
from ..inference.linear import products_of
from ..modules import BiLM, LstmState
from .batches import ReadAhead, StreamRange, Streams
from .config import TrainingSettings, refuse
from .distributed import Group
from .language_model import LanguageModel
from .objectives import RowObjective
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
from .pack import inputs_of, steps_of
from .prepared import PreparedCorpus
from .step import Batch, GpuStep, Workers

Arrays = dict[str, npt.NDArray[Any]]
AVERAGE = "average/"  # begins the names of the average of the weights


def average_of(module: nn.Module, horizon: float) -> AveragedModel:
    """Return an average of a module's weights.

    horizon: updates after which a weight's share in the average has fallen to 1 / e. During the first horizon the
        average is the plain mean, so that the weights of the start do not count more.
    """

    @torch.no_grad()
    def add(averages: Any, weights: Any, count: Tensor | int) -> None:
        share = min(1.0, max(1 / (int(count) + 1), 1 / horizon))
        torch._foreach_lerp_(averages, weights, share)

    return AveragedModel(module, multi_avg_fn=add)


class FewBits:
    """Rounds the matrices of a biLM to few bits, as `elmo pack --bits`, by steps that stay as they are at the start."""

    def __init__(self, bilm: BiLM, bits: int) -> None:
        self.most = 2 ** (bits - 1) - 1
        self.steps: dict[str, Tensor] = {}
        for name, weight in bilm.named_parameters():
            if inputs := inputs_of(name, weight.ndim):
                steps = steps_of(weight.detach().cpu().numpy(), bits, inputs)
                self.steps[name] = torch.from_numpy(steps).to(weight)

    @torch.no_grad()
    def apply(self, bilm: BiLM) -> None:
        for name, weight in bilm.named_parameters():
            if (step := self.steps.get(name)) is not None:
                weight.copy_((weight / step).round_().clamp_(-self.most, self.most).mul_(step))

    @contextmanager
    def applied(self, bilm: BiLM) -> Iterator[None]:
        """Round in the block only, so that small changes add up (straight-through: Bengio et al. 2013)."""
        kept = [weight.detach().clone() for weight in bilm.parameters()]
        self.apply(bilm)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(bilm.parameters()), kept)


def reuse_memory() -> None:
    """Tell glibc not to return freed memory to the system, and to use one arena for all threads.

    An update needs 5 to 10 % less time without the page faults of its large arrays (measured).
    """
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            # glibc's malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, the largest values of the latter
            for parameter, value in ((-8, 1), (-3, 32 << 20), (-1, 2**31 - 1)):
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
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SettingsError(
            f"there is not enough memory ({reason}). Lower training.streams, which is {training.streams:,}, "
            f"training.steps, which is {training.steps:,}, vocabulary.size or the sizes in [bilm]."
        ) from error


def training_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Return the type of the matrix multiplications of pretraining. Raises SettingsError if the device lacks it."""
    multiplied = products_of(torch.bfloat16, device)
    if precision == "bfloat16" and multiplied != torch.bfloat16:
        raise SettingsError(
            f'training.precision is "bfloat16", but this machine\'s {device.type} has no matrix multiplications in '
            'bfloat16. Set it to "float32", or to "auto", which uses bfloat16 only if the machine has it.'
        )
    return torch.float32 if precision == "float32" else multiplied


def check_streams(settings: TrainingSettings, group: Group) -> None:
    """Raise SettingsError if the streams can't be divided among processes, their pairs of workers and their readers."""
    share, left = divmod(settings.streams, group.size)
    groups = 1 if settings.device == "cuda" else max(1, settings.workers // 2)
    if left or share % groups:
        expected = (
            f"a multiple of {group.size * groups}: the streams are divided equally among {group.size} processes, and "
            "in each process among the pairs of training.workers"
        )
        refuse("training.streams", settings.streams, expected)
    if settings.readers and share % settings.readers:
        divisors = ", ".join(str(number) for number in range(1, min(share, 256) + 1) if share % number == 0)
        expected = f"0 or a number that divides the {share} streams of a process: {divisors}"
        refuse("training.readers", settings.readers, expected)


class Trainer:
    """Trains a model, in place, on a corpus. Use it in a `with` block, which sets the number of torch's threads.

    With several processes each reads its part of the streams, and all use the sum of their gradients.

    settings: `check_streams` accepts them. group: None: this process alone.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        model: LanguageModel,
        corpus: PreparedCorpus,
        shuffle_block: int,
        group: Group | None = None,
    ) -> None:
        self.settings, self.model, self.group = settings, model, group or Group()
        if len(corpus) < settings.streams:
            expected = f"a sentence for each: the training text has {len(corpus)}. Set it lower, or give more text"
            refuse("training.streams", settings.streams, expected)
        share = settings.streams // self.group.size
        self.local_streams = slice(self.group.rank * share, (self.group.rank + 1) * share)
        part = StreamRange(settings.streams, self.local_streams.start, share)
        given = corpus, model.vocabulary, model.bilm.options.max_characters, part, shuffle_block, settings.seed
        self.streams = ReadAhead(settings.readers, settings.steps, *given) if settings.readers else Streams(*given)
        model.bilm.to(self.group.device)
        model.softmax.to(self.group.device)
        self.parameters = list(model.bilm.parameters())
        self.few_bits = None if settings.weight_bits is None else FewBits(model.bilm, settings.weight_bits)
        self.objective = RowObjective(model.softmax, settings)
        self.state = model.bilm.lstm.zero_state(share)
        self.from_zero = _evenly_true(settings.zero_state_share, settings.streams)[self.local_streams]
        matmul_dtype = training_dtype(settings.precision, self.group.device)
        self.optimizer = dense_optimizer(model.bilm.named_parameters(), settings.optimizer, matmul_dtype)
        self.workers = (
            GpuStep(model.bilm, matmul_dtype, settings.dropout)
            if self.group.device.type == "cuda"
            else Workers(model.bilm, settings.workers, matmul_dtype, settings.dropout)
        )
        self.tokens_per_update = settings.tokens_per_update
        self.tokens_per_epoch = corpus.n_tokens + len(corpus)
        wanted = settings.total_tokens or settings.epochs * self.tokens_per_epoch
        self.total_steps = max(1, round(wanted / self.tokens_per_update))
        self.step_number = 0
        self.modules = nn.ModuleDict({"bilm": model.bilm, "softmax": model.softmax})
        horizon = settings.average_share * self.total_steps
        self.average = average_of(self.modules, horizon) if horizon else None

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

    @property
    def model_to_keep(self) -> LanguageModel:
        """The model that is evaluated and saved: of the average of the weights, if there is one, and rounded."""
        model = self.model
        if self.average is not None and self.average.n_averaged:
            modules: Any = self.average.module
            model = LanguageModel(modules["bilm"], modules["softmax"], model.vocabulary)
        if self.few_bits is None:
            return model
        bilm = copy.deepcopy(model.bilm)
        self.few_bits.apply(bilm)
        return LanguageModel(bilm, model.softmax, model.vocabulary)

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

        Returns the mean loss of all predictions in nats; NaN if a gradient is not finite. Then the weights stay as they
        are, but the trainer can't go on.
        """
        torch.set_num_threads(1)  # torch's own threads would spin beside the workers, and bring nothing (measured)
        try:
            return self._step()
        finally:
            torch.set_num_threads(self.settings.workers)

    def _step(self) -> float:
        settings, frozen = self.settings, self.frozen
        dense = [] if frozen else [torch.zeros_like(parameter) for parameter in self.parameters]
        loss = torch.zeros((), dtype=torch.float64)
        scale = settings.optimizer.loss_scale / (2 * self.tokens_per_update)
        for number in range(settings.accumulate):
            seed = _seed(settings.seed, self.step_number, number)
            batch = self._batch()
            scorer = self.objective.scorer(batch.targets, seed, self.group)
            dropout_seed = _seed(seed, self.group.rank, 0) >> 16  # each process has other dropout masks
            with self.few_bits.applied(self.model.bilm) if self.few_bits else nullcontext():
                result = self.workers.gradients(batch, scorer, self.state, scale, dropout_seed, frozen)
            self.state = result.state
            loss += result.loss
            self.objective.add(scorer, result.scored)
            if dense:
                torch._foreach_add_(dense, result.dense)
        gradients = [*dense, *self.objective.gradients()]
        if self.group.size > 1:
            *gradients, total = self.group.sum([*gradients, loss.float().to(self.group.device)])
            loss.copy_(total)
        if math.isfinite(clip(gradients, settings.optimizer.clip_norm)):  # or the weights would become NaN
            rate = self.rate
            if dense:
                for parameter, gradient in zip(self.parameters, gradients):
                    parameter.grad = gradient
                set_rate(self.optimizer, rate)
                self.optimizer.step()
            self.objective.update(gradients[len(dense) :], rate, self.step_number + 1)
        else:
            loss.fill_(math.nan)
        self.step_number += 1
        if self.average is not None:
            self.average.update_parameters(self.modules)
        return float(loss) / settings.optimizer.loss_scale

    def _batch(self) -> Batch:
        window = self.streams.next(self.settings.steps)
        keep = torch.from_numpy(~(window.starts & self.from_zero))[:, :, None].float()
        device = self.group.device
        tensors = (torch.from_numpy(values) for values in (window.characters, window.inputs, window.targets))
        characters, inputs, targets = (tensor.to(device).long() for tensor in tensors)
        return Batch(characters, inputs, targets, keep.to(device))

    def state_arrays(self) -> Arrays:
        """Return what a run needs to go on bit by bit, as arrays by their names. All processes must call it.

        `run.py` adds its `Progress` and the run's identity. Checkpoints of earlier versions must be read: an array that
        is new may be missing in `_fitting`, and gets a value in `restore` then.
        """
        arrays: Arrays = {f"bilm/{name}": array for name, array in self.model.bilm.to_arrays().items()}
        arrays |= {f"softmax/{name}": t.cpu().numpy().copy() for name, t in self.model.softmax.state_dict().items()}
        arrays |= {f"optimizer/{name}": array for name, array in optimizer_arrays(self.optimizer).items()}
        arrays |= {f"objective/{name}": array for name, array in self.objective.arrays().items()}
        if self.few_bits is not None:
            arrays |= {f"few_bits/{name}": steps.cpu().numpy().copy() for name, steps in self.few_bits.steps.items()}
        if self.average is not None:
            arrays |= {AVERAGE + name: t.cpu().numpy().copy() for name, t in self.average.state_dict().items()}
        for name, array in self.streams.state().items():
            arrays[f"streams/{name}"] = self.group.concatenate(torch.from_numpy(array), 0).numpy()
        for name, tensor in self.state._asdict().items():
            arrays[f"state/{name}"] = self.group.concatenate(tensor, 2).cpu().numpy().copy()
        return arrays | {"step": np.array(self.step_number)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], path: str = "") -> None:
        """Continue from what `state_arrays` returned, in any number of processes. Raises CheckpointError.

        path: of the checkpoints, for messages.
        """
        parts: dict[str, Arrays] = {}
        for name, array in self._fitting(arrays, path).items():
            top, _, name_in_part = name.partition("/")
            parts.setdefault(top, {})[name_in_part] = np.asarray(array)  # a number in HDF5 is no array
        modules = dict(self.modules.items())
        if self.average is not None and "average" in parts:
            modules["average"] = self.average
        for title, module in modules.items():
            module.load_state_dict({name: torch.from_numpy(array) for name, array in parts[title].items()})
        if "optimizer" in parts:  # it is absent before the first update of the biLM
            restore_optimizer(self.optimizer, parts["optimizer"])
        self.objective.restore(parts["objective"])
        if self.few_bits is not None:
            steps = parts["few_bits"].items()
            self.few_bits.steps = {name: torch.tensor(array, device=self.group.device) for name, array in steps}
        self.streams.restore({name: array[self.local_streams] for name, array in parts["streams"].items()})
        h, c = (torch.from_numpy(parts["state"][name][:, :, self.local_streams].copy()) for name in ("h", "c"))
        self.state = LstmState(h.to(self.group.device), c.to(self.group.device))
        self.step_number = int(parts["step"][""])

    def _fitting(self, arrays: Mapping[str, npt.NDArray[Any]], path: str) -> Arrays:
        """Return the arrays of a checkpoint that the run needs. Raises CheckpointError if it is not one of this run."""
        expected = {name: (array.dtype, array.shape) for name, array in self.state_arrays().items()}
        if any(name.startswith("optimizer/") for name in arrays):  # they are absent before the biLM's first update
            expected |= {f"optimizer/{name}": form for name, form in optimizer_forms(self.optimizer).items()}
        if self.average is None or not any(name.startswith(AVERAGE) for name in arrays):  # average_share may change
            arrays = {name: array for name, array in arrays.items() if not name.startswith(AVERAGE)}
            expected = {name: form for name, form in expected.items() if not name.startswith(AVERAGE)}
        got = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        problems = [f"{name} is missing" for name in expected.keys() - got.keys()]
        problems += [f"{name} is unexpected" for name in got.keys() - expected.keys()]
        for name, form in got.items():
            if form != expected.get(name, form):
                (dtype, shape), (wanted, size) = form, expected[name]
                problems.append(f"{name} is {dtype} of shape {shape}, expected {wanted} of {size}")
        if problems:
            raise CheckpointError(CHECKPOINT_PARTS.format(path=path, problems="; ".join(sorted(problems)[:5])))
        return dict(arrays)


def _evenly_true(share: float, n: int) -> npt.NDArray[np.bool_]:
    """Return *Shape:* (n,), of which `share` is true, at even distances."""
    n_true = round(share * n)
    numbers = np.arange(n)
    result: npt.NDArray[np.bool_] = (numbers + 1) * n_true // n > numbers * n_true // n
    return result


def _seed(*numbers: int) -> int:
    """Return a seed below 2 ** 63 for random numbers of one update, so that a resumed run draws the same numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
