"""One pretraining run's moving parts, and its step."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...errors import CheckpointError, Errors, SettingsError
from ...modules import LstmState
from ...modules.precision import Precision, dtype_of
from ...modules.softmax.adaptive import AdaptiveSoftmax
from ..model.language_model import LanguageModel
from ..settings.sections import TrainingSettings
from ..text.batches import StreamRange, Streams
from ..text.prepared import PreparedCorpus
from .distributed import Group
from .objective import AdaptiveObjective, Objective, RowObjective
from .optimizers import clip, dense_optimizer, optimizer_arrays, optimizer_forms, restore_optimizer, set_rate
from .schedule import rate_at
from .step import Batch, Workers

Arrays = dict[str, npt.NDArray[Any]]


class Trainer:
    """Trains a model on a corpus; with several processes, each on its own streams, all with one gradient.

    model: changed in place.
    shuffle_block: sentences of a block of the shuffling, of the section corpus.

    Raises SettingsError if settings, corpus and processes do not go together.
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
        groups = max(1, settings.workers // 2)
        if left or share % groups:
            expected = self.group.size * groups
            raise SettingsError(Errors.STREAMS.format(got=settings.streams, expected=expected, size=self.group.size))
        if len(corpus) < settings.streams:
            raise SettingsError(Errors.FEW_SENTENCES.format(got=len(corpus), streams=settings.streams))
        self.mine = slice(self.group.rank * share, (self.group.rank + 1) * share)
        self.streams = Streams(
            corpus,
            model.vocabulary,
            model.bilm.options.max_characters,
            StreamRange(settings.streams, self.mine.start, share),
            shuffle_block,
            settings.seed,
        )
        model.bilm.to(self.group.device)
        model.softmax.to(self.group.device)
        self.parameters = list(model.bilm.parameters())
        self.optimizer = dense_optimizer(self.parameters, settings.optimizer)
        self.objective = _objective(settings, model)
        self.state = model.bilm.lstm.zero_state(share)
        self.from_zero = _spread(settings.zero_state_share, settings.streams)[self.mine]
        precision: Precision = settings.precision  # type: ignore[assignment]  # checked by the settings
        products = dtype_of(precision, self.group.device)
        self.workers = Workers(model.bilm, settings.workers, products, settings.dropout)
        self.tokens_an_update = settings.streams * settings.steps * settings.accumulate
        self.tokens_an_epoch = corpus.n_tokens + len(corpus)
        wanted = settings.total_tokens or settings.epochs * self.tokens_an_epoch
        self.total_steps = max(1, round(wanted / self.tokens_an_update))
        self.step_number = 0

    def __enter__(self) -> "Trainer":
        """torch's own threads too are the workers' number while training lasts."""
        self._threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.workers)
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._threads)
        self.workers.close()

    @property
    def tokens(self) -> int:
        """Tokens seen by all processes, `</S>` counted."""
        return self.step_number * self.tokens_an_update

    @property
    def frozen(self) -> bool:
        """Whether the softmax alone is trained by now."""
        return self.tokens < self.settings.frozen_tokens

    @property
    def rate(self) -> float:
        """The learning rate of the next update."""
        share = rate_at(self.settings.schedule, self.step_number, self.total_steps)
        return self.settings.optimizer.learning_rate * share

    def step(self) -> float:
        """One update. Returns the mean loss of all predictions: with a sampled softmax no perplexity's."""
        settings, frozen = self.settings, self.frozen
        dense = None if frozen else [torch.zeros_like(parameter) for parameter in self.parameters]
        loss = torch.zeros((), dtype=torch.float64)
        scale = settings.optimizer.loss_scale / (2 * self.tokens_an_update)
        for number in range(settings.accumulate):
            seed = _seed(settings.seed, self.step_number, number)
            batch = self._batch()
            scorer = self.objective.scorer(batch.targets, seed, self.group)
            own = _seed(seed, self.group.rank, 0) >> 16  # processes drop other units
            got = self.workers.gradients(batch, scorer, self.state, scale, own, frozen)
            self.state = got.state
            loss += got.loss
            self.objective.add(scorer, got.scored)
            if dense is not None:
                torch._foreach_add_(dense, got.dense)
        self._update(dense, loss)
        self.step_number += 1
        return float(loss) / settings.optimizer.loss_scale

    def _update(self, dense: list[torch.Tensor] | None, loss: torch.Tensor) -> None:
        gradients = [*(dense or []), *self.objective.gradients()]
        if self.group.size > 1:
            *gradients, total = self.group.sum([*gradients, loss.float().to(self.group.device)])
            loss.copy_(total)
        n_dense = len(dense or [])
        norm = clip(gradients, self.settings.optimizer.clip_norm)
        if not math.isfinite(norm):  # nothing is changed: the weights stay sound
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

    def _batch(self) -> Batch:
        window = self.streams.next(self.settings.steps)
        keep = torch.from_numpy(~(window.starts & self.from_zero))[:, :, None].float()
        device = self.group.device
        tensors = (torch.from_numpy(values) for values in (window.characters, window.inputs, window.targets))
        characters, inputs, targets = (tensor.to(device) for tensor in tensors)
        return Batch(characters, inputs, targets, keep.to(device))

    def state_arrays(self) -> Arrays:
        """Everything that a resumed run needs to go on bit for bit; of all processes, which must all call this."""
        arrays: Arrays = {f"bilm/{name}": array for name, array in self.model.bilm.to_arrays().items()}
        arrays |= {f"softmax/{name}": t.cpu().numpy().copy() for name, t in self.model.softmax.state_dict().items()}
        arrays |= {f"optimizer/{name}": array for name, array in optimizer_arrays(self.optimizer).items()}
        arrays |= {f"objective/{name}": array for name, array in self.objective.arrays().items()}
        for name, array in self.streams.state().items():
            arrays[f"streams/{name}"] = self.group.all(torch.from_numpy(array), 0).numpy()
        for name, tensor in (("h", self.state.h), ("c", self.state.c)):
            arrays[f"state/{name}"] = self.group.all(tensor, 2).cpu().numpy().copy()
        return arrays | {"step": np.array(self.step_number)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], path: str = "the checkpoint") -> None:
        """Go to where state_arrays was called, with however many processes.

        Raises CheckpointError where the arrays are not those of such a run.
        """
        known = {name: (array.dtype, array.shape) for name, array in self.state_arrays().items()}
        optimizers = {"optimizer/": self.optimizer}
        if isinstance(self.objective, AdaptiveObjective):
            optimizers["objective/"] = self.objective.optimizer
        for top, optimizer in optimizers.items():
            if any(name.startswith(top) for name in arrays):  # not before the first update
                known |= {top + name: form for name, form in optimizer_forms(optimizer).items()}
        problems = [f"{name} is missing" for name in known if name not in arrays]
        problems += [
            f"{name} is {array.dtype} of shape {array.shape}, expected {known[name][0]} of {known[name][1]}"
            for name, array in arrays.items()
            if name in known and (array.dtype, array.shape) != known[name]
        ]
        problems += [f"{name} is unexpected" for name in arrays if name not in known]
        if not problems and arrays["step"] < 0:
            problems = [f"step is {arrays['step']}"]
        if problems:
            raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path=path, problems="; ".join(problems[:5])))
        parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            top, _, rest = name.partition("/")
            parts.setdefault(top, {})[rest] = array
        for module, title in ((self.model.bilm, "bilm"), (self.model.softmax, "softmax")):
            module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in parts[title].items()})
        if "optimizer" in parts:  # not before the first update of the biLM
            restore_optimizer(self.optimizer, parts["optimizer"])
        self.objective.restore(parts.get("objective", {}))
        self.streams.restore({name: array[self.mine] for name, array in parts["streams"].items()})
        h, c = (torch.from_numpy(np.array(parts["state"][name][:, :, self.mine])) for name in ("h", "c"))
        self.state = LstmState(h.to(self.group.device), c.to(self.group.device))
        self.step_number = int(parts["step"][""])


def _objective(settings: TrainingSettings, model: LanguageModel) -> Objective:
    softmax, n_words = settings.softmax, len(model.vocabulary)
    if isinstance(model.softmax, AdaptiveSoftmax):
        return AdaptiveObjective(model.softmax, settings.optimizer)
    if softmax.kind == "sampled" and softmax.negatives > n_words:
        raise SettingsError(Errors.MANY_NEGATIVES.format(got=softmax.negatives, n_words=n_words))
    negatives = softmax.negatives if softmax.kind == "sampled" else None
    return RowObjective(model.softmax, negatives, settings.optimizer)


def _spread(share: float, n: int) -> npt.NDArray[np.bool_]:
    """*Shape:* (n,): that share of them true, evenly spread."""
    n_true = round(share * n)
    numbers = np.arange(n)
    spread: npt.NDArray[np.bool_] = (numbers + 1) * n_true // n > numbers * n_true // n
    return spread


def _seed(*numbers: int) -> int:
    """A seed for what is drawn in one step, so that a resumed run draws the same; below 2 ** 63."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
