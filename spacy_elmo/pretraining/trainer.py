"""One pretraining run's moving parts, and its step."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import CheckpointError, Errors, SettingsError
from ..formats.options import BiLMOptions
from ..modules import BiLM, LstmState
from ..modules.softmax import LogUniform, Softmax, sampled_loss
from .batches import Streams, Window
from .config import PretrainConfig
from .corpus import SPECIAL, UNKNOWN, Corpus


class _Leaves(NamedTuple):
    """Rows of the softmax that a shard needs, or their gradients."""

    sample_weight: Tensor
    sample_bias: Tensor
    target_weight: Tensor
    target_bias: Tensor


class _Shard(NamedTuple):
    """What one worker brings back from its share of the streams."""

    loss: float
    dense: tuple[Tensor, ...]
    targets: Tensor
    softmax: _Leaves
    state: LstmState


def _one_thread() -> None:
    torch.set_num_threads(1)


class Trainer:
    """Trains a biLM and its softmax on a corpus.

    Workers are threads that each run forward and backward over their share of the streams, with one intra-op thread:
    two intra-op threads collapse when another process needs a core. Sums are taken in a fixed order, so that the same
    seed and number of workers give the same bits.
    """

    def __init__(self, options: BiLMOptions, config: PretrainConfig, corpus: Corpus) -> None:
        if corpus.train.n_sentences < config.streams:
            raise SettingsError(Errors.FEW_SENTENCES.format(got=corpus.train.n_sentences, streams=config.streams))
        known = int((corpus.counts[len(SPECIAL) :] > 0).sum()) + len(SPECIAL)
        if known < config.n_words:
            raise SettingsError(Errors.FEW_WORDS.format(got=known, n_words=config.n_words))
        self.config, self.corpus = config, corpus
        generator = torch.Generator().manual_seed(config.seed)
        self.bilm = BiLM(options)
        self.bilm.reset_parameters(generator)
        self.softmax = Softmax(config.n_words, options.projection_dim)
        self.softmax.reset_parameters(torch.from_numpy(corpus.log_unigram(config.n_words)), generator)
        self.sampler = LogUniform(config.n_words, config.negatives, generator)
        betas = (config.beta1, config.beta2)
        self.parameters = list(self.bilm.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.learning_rate, betas=betas, fused=True)
        self.softmax_optimizer = torch.optim.SparseAdam(
            [self.softmax.weight, self.softmax.bias], lr=config.learning_rate, betas=betas
        )
        self.streams = Streams(corpus.train, config.streams, config.seed)
        rows = config.streams // config.workers
        self.states = [self.bilm.lstm.zero_state(rows) for _ in range(config.workers)]
        self.character_ids = corpus.character_ids(options.max_characters)
        n_zero = round(config.zero_state_share * config.streams)
        # spread over the workers' shares, so that each has as many
        self.zero_state = (np.arange(1, config.streams + 1) * n_zero // config.streams) > (
            np.arange(config.streams) * n_zero // config.streams
        )
        self.step_number = 0
        self.executor = ThreadPoolExecutor(config.workers, initializer=_one_thread)

    def __enter__(self) -> "Trainer":
        """The optimisers too run on one thread while training lasts."""
        self._threads = torch.get_num_threads()
        _one_thread()
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._threads)
        self.executor.shutdown()

    @property
    def tokens(self) -> int:
        """Tokens seen, `</S>` counted."""
        return self.step_number * self.config.streams * self.config.steps

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return max(1, self.config.total_tokens // (self.config.streams * self.config.steps))

    def step(self) -> float:
        """One update. Returns the mean sampled loss of the batch (no perplexity: see perplexity.py)."""
        window = self.streams.next(self.config.steps)
        assert window is not None, "shuffled streams never end"
        sample, tries = self.sampler.draw()
        rows = self.config.streams // self.config.workers
        slices = [slice(k * rows, (k + 1) * rows) for k in range(self.config.workers)]
        shards = list(
            self.executor.map(lambda part, state: self._shard(window, part, state, sample, tries), slices, self.states)
        )
        self.states = [shard.state for shard in shards]
        for k, parameter in enumerate(self.parameters):
            parameter.grad = sum((shard.dense[k] for shard in shards[1:]), start=shards[0].dense[k])
        words = torch.cat([sample, *(shard.targets for shard in shards)])[None]
        for parameter, of_sample, of_targets in (
            (self.softmax.weight, [s.softmax.sample_weight for s in shards], [s.softmax.target_weight for s in shards]),
            (self.softmax.bias, [s.softmax.sample_bias for s in shards], [s.softmax.target_bias for s in shards]),
        ):
            values = torch.cat([sum(of_sample[1:], start=of_sample[0]), *of_targets])
            parameter.grad = torch.sparse_coo_tensor(words, values, parameter.shape, check_invariants=False).coalesce()
        self._clip()
        rate = self.config.learning_rate_at(self.step_number)
        for optimizer in (self.optimizer, self.softmax_optimizer):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
        self.step_number += 1
        return sum(shard.loss for shard in shards)

    def _shard(self, window: Window, part: slice, state: LstmState, sample: Tensor, tries: int) -> _Shard:
        inputs = window.inputs[:, :, part]
        words, inverse = np.unique(inputs, return_inverse=True)
        index = torch.from_numpy(np.asarray(inverse).reshape(inputs.shape))
        targets = torch.from_numpy(window.targets[:, :, part].reshape(-1).copy())
        targets[targets >= self.config.n_words] = UNKNOWN
        forget = torch.from_numpy(window.starts[:, part] & self.zero_state[part])
        keep = (~forget)[:, :, None].to(state.h.dtype)
        weight, bias = self.softmax.weight.detach(), self.softmax.bias.detach()
        rows_of_softmax = (weight[sample], bias[sample], weight[targets], bias[targets])
        leaves = _Leaves(*(rows.requires_grad_() for rows in rows_of_softmax))
        with torch.enable_grad():
            ids = torch.from_numpy(self.character_ids[words].astype(np.int64))
            x = F.embedding(index, self.bilm.char_cnn(ids))
            outputs, hs, cs = self.bilm.lstm.scan(x, state, keep)
            top = outputs[-1].reshape(len(targets), -1)
            total = sampled_loss(
                top,
                targets,
                sample,
                leaves.sample_weight,
                leaves.sample_bias,
                leaves.target_weight,
                leaves.target_bias,
                self.sampler.log_expected(sample, tries),
                self.sampler.log_expected(targets, tries),
            )
            loss = total / (len(targets) * self.config.workers)
        gradients = torch.autograd.grad(loss, [*self.parameters, *leaves])
        n = len(self.parameters)
        last = LstmState(torch.stack([h[:, -1] for h in hs]).detach(), torch.stack([c[:, -1] for c in cs]).detach())
        return _Shard(loss.item(), gradients[:n], targets, _Leaves(*gradients[n:]), last)

    def _clip(self) -> None:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        gradients += [p.grad.values() for p in self.softmax.parameters() if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
        scale = self.config.clip_norm / (norm + 1e-6)
        if scale < 1:
            for gradient in gradients:
                gradient.mul_(scale)

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Everything that a resumed run needs to go on bit for bit, as plain arrays."""
        arrays = {f"bilm/{name}": array for name, array in self.bilm.to_arrays().items()}
        arrays |= {f"softmax/{name}": t.detach().numpy().copy() for name, t in self.softmax.state_dict().items()}
        for title, optimizer in (("adam", self.optimizer), ("sparse_adam", self.softmax_optimizer)):
            for number, values in optimizer.state_dict()["state"].items():
                arrays |= {
                    f"{title}/{number}/{name}": torch.as_tensor(value).numpy().copy() for name, value in values.items()
                }
        arrays |= {f"streams/{name}": value for name, value in self.streams.state().items()}
        arrays["random"] = self.sampler.generator.get_state().numpy().copy()
        arrays["step"] = np.array(self.step_number)
        arrays["state/h"] = torch.cat([state.h for state in self.states], 2).numpy()
        arrays["state/c"] = torch.cat([state.c for state in self.states], 2).numpy()
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go to where state_arrays was called. Raises CheckpointError where the arrays are not those of such a run."""
        problems = [f"{name} is missing" for name in self.state_arrays() if name not in arrays]
        problems += [
            f"{name} has shape {arrays[name].shape}, expected {array.shape}"
            for name, array in self.state_arrays().items()
            if name in arrays and arrays[name].shape != array.shape
        ]
        if not problems and int(arrays["step"]) and not {"adam/0/step", "sparse_adam/0/step"} <= arrays.keys():
            problems = ["the optimisers' states are missing"]
        if problems:
            raise CheckpointError(
                Errors.CHECKPOINT_PARTS.format(path="the checkpoint", problems="; ".join(problems[:5]))
            )
        parts: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for name, array in arrays.items():
            top, _, rest = name.partition("/")
            parts.setdefault(top, {})[rest] = array
        for module, title in ((self.bilm, "bilm"), (self.softmax, "softmax")):
            module.load_state_dict({name: torch.from_numpy(array) for name, array in parts[title].items()})
        for optimizer, title in ((self.optimizer, "adam"), (self.softmax_optimizer, "sparse_adam")):
            state: dict[int, dict[str, object]] = {}
            for name, array in parts.get(title, {}).items():
                number, _, key = name.partition("/")
                # SparseAdam counts its steps in a Python int, Adam in a tensor
                plain = title == "sparse_adam" and key == "step"
                state.setdefault(int(number), {})[key] = int(array) if plain else torch.from_numpy(np.asarray(array))
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        self.streams.restore(parts["streams"])
        self.sampler.generator.set_state(torch.from_numpy(parts["random"][""]))
        self.step_number = int(parts["step"][""])
        h, c = (torch.from_numpy(parts["state"][name]) for name in ("h", "c"))
        workers = self.config.workers
        self.states = [LstmState(*pair) for pair in zip(h.chunk(workers, 2), c.chunk(workers, 2))]
