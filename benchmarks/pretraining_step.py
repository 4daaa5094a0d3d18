"""Tokens per second of pretraining's step beside the same step written with torch's own modules, in one run.

Ours: the step and the updates of spacy_elmo.pretraining. Plain: as one writes it first, with torch's modules and
autograd, in float32 and under autocast to bfloat16. Both train the same network (but ours clips) from the same weights
on the same batches, new ones each round: words drawn by a Zipf distribution, with random spellings. They take turns,
after a warm-up; the reading of a corpus is not measured.

    python -m benchmarks.pretraining_step

The cores that other processes took are printed with every figure.
"""

import argparse
import copy
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.lstm_cell import FORGET_BIAS
from spacy_elmo.pretraining.config import OptimizerSettings, SoftmaxSettings, TrainingSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.objectives import RowObjective
from spacy_elmo.pretraining.optimizers import clip, dense_optimizer
from spacy_elmo.pretraining.softmax import LogUniform, Softmax
from spacy_elmo.pretraining.step import Batch, Workers
from spacy_elmo.pretraining.trainer import reuse_memory

from .common import Rounds, compared, load_of, measured, median_rate, parser_of, row

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))  # en_mini's
PAUSE = 1.0  # seconds between measurements: the other side's threads come to rest
RATE = 1e-3
PROJECTION, WORDS, STEPS, BATCHES = 128, 50_000, 20, 12  # the last: steps in a measurement
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}

State = list[tuple[Tensor, Tensor]]


class OurStep:
    def __init__(self, bilm: BiLM, softmax: Softmax, precision: str, args: argparse.Namespace) -> None:
        self.settings = OptimizerSettings(name="adamw", learning_rate=RATE)  # as the plain step has
        training = TrainingSettings(softmax=SoftmaxSettings("sampled", args.negatives), optimizer=self.settings)
        self.parameters = list(bilm.parameters())
        self.optimizer = dense_optimizer(bilm.named_parameters(), self.settings)
        self.objective = RowObjective(softmax, training)
        self.workers = Workers(bilm, args.threads, DTYPES[precision])
        self.state, self.steps = bilm.lstm.zero_state(args.streams), 0

    def __call__(self, batch: Batch, seed: int) -> float:
        scorer = self.objective.scorer(batch.targets, seed, Group())
        got = self.workers.gradients(batch, scorer, self.state, 1 / batch.targets.numel(), seed)
        self.state, self.steps = got.state, self.steps + 1
        self.objective.add(scorer, got.scored)
        clip([*got.dense, *self.objective.gradients()], self.settings.clip_norm)
        for parameter, gradient in zip(self.parameters, got.dense):
            parameter.grad = gradient
        self.optimizer.step()
        self.objective.update(self.objective.gradients(), RATE, self.steps)
        return got.loss


def batches(n_words: int, streams: int, steps: int) -> Iterator[Batch]:
    """Windows of endless streams; the word of rank r comes with a probability in proportion to 1 / r."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))
    spellings: dict[str, None] = {}
    while len(spellings) < n_words:
        spellings["".join(rng.choice(letters, rng.integers(2, 14)))] = None
    ids = words_to_ids(list(spellings))
    p = 1 / np.arange(1, n_words + 1)
    while True:
        words = rng.choice(n_words, (steps + 1, streams), p=p / p.sum())
        both = np.stack([words, words[::-1]])
        distinct, inputs = np.unique(both[:, :-1], return_inverse=True)
        yield Batch(
            torch.from_numpy(ids[distinct]),
            torch.from_numpy(inputs.reshape(2, steps, streams)),
            torch.from_numpy(both[:, 1:].copy()),
            torch.ones(steps, streams, 1),
        )


class PlainModel(nn.Module):
    """Character encoder on distinct words; an nn.LSTM for each direction and layer; the softmax's rows embedded."""

    def __init__(self, bilm: BiLM, softmax: Softmax) -> None:
        super().__init__()
        self.encoder: Any = copy.deepcopy(bilm.char_cnn)  # its parts are torch's own modules, called one by one
        self.lstms: Any = nn.ModuleList(nn.ModuleList(_lstm(layer, d) for layer in bilm.lstm.layers) for d in (0, 1))
        self.weight = nn.Embedding.from_pretrained(softmax.weight.detach().clone(), freeze=False, sparse=True)
        self.bias = nn.Embedding.from_pretrained(softmax.bias.detach()[:, None].clone(), freeze=False, sparse=True)

    def encode(self, characters: Tensor) -> Tensor:
        """characters: *Shape:* (words, characters); returns (words, projection_dim)."""
        x = self.encoder.embedding(characters).transpose(1, 2)
        x = torch.relu(torch.cat([convolution(x).amax(2) for convolution in self.encoder.convolutions], 1))
        for highway in self.encoder.highways:
            gate = torch.sigmoid(highway.carry(x))
            x = gate * torch.relu(highway.transform(x)) + (1 - gate) * x
        projected: Tensor = self.encoder.projection(x)
        return projected

    def read(self, x: Tensor, direction: int, state: State) -> tuple[Tensor, State]:
        """x: *Shape:* (steps, streams, projection_dim); returns the top layer's output and the state behind."""
        after = []
        for k, lstm in enumerate(self.lstms[direction]):
            h, end = lstm(x, state[k])
            after.append((end[0].detach(), end[1].detach()))
            x = h + x if k else h
        return x, after

    def loss(self, x: Tensor, targets: Tensor, sample: Tensor, of_sample: Tensor, of_targets: Tensor) -> Tensor:
        """Cross entropy over [target; negatives]. x: *Shape:* (rows, projection_dim); log expected counts: of_..."""
        true = (x * self.weight(targets)).sum(1) + self.bias(targets)[:, 0] - of_targets
        negative = x @ self.weight(sample).t() + (self.bias(sample)[:, 0] - of_sample)
        place = torch.searchsorted(sample, targets).clamp_(max=len(sample) - 1)
        rows = torch.nonzero(sample[place] == targets)[:, 0]
        negative[rows, place[rows]] = float("-inf")
        logits = torch.cat([true[:, None].to(negative.dtype), negative], 1)
        return F.cross_entropy(logits, torch.zeros_like(targets), reduction="sum")


def _lstm(layer: Any, direction: int) -> nn.LSTM:
    """torch's gates stand in the order i, f, j, o."""
    _, width, four_dim = layer.input_weight.shape
    i, j, f, o = torch.arange(four_dim).chunk(4)
    order = torch.cat([i, f, j, o])
    lstm = nn.LSTM(width, four_dim // 4, proj_size=layer.projection.shape[2])
    bias = layer.bias.detach()[direction].clone()
    bias[f] += FORGET_BIAS
    weights = {"ih": layer.input_weight, "hh": layer.recurrent_weight}
    arrays = {f"weight_{name}_l0": weight.detach()[direction].t()[order] for name, weight in weights.items()}
    arrays |= {"bias_ih_l0": bias[order], "bias_hh_l0": torch.zeros(four_dim)}
    lstm.load_state_dict(arrays | {"weight_hr_l0": layer.projection.detach()[direction].t()})
    return lstm


class PlainStep:
    def __init__(self, bilm: BiLM, softmax: Softmax, precision: str, args: argparse.Namespace) -> None:
        self.model, self.autocast = PlainModel(bilm, softmax), precision == "bfloat16"
        self.sampler = LogUniform(len(softmax.bias), args.negatives)
        sparse = [self.model.weight.weight, self.model.bias.weight]
        dense = [p for p in self.model.parameters() if not any(p is other for other in sparse)]
        self.optimizers = [torch.optim.Adam(dense, lr=RATE), torch.optim.SparseAdam(sparse, lr=RATE)]
        zero = (torch.zeros(1, args.streams, PROJECTION), torch.zeros(1, args.streams, args.dim))
        self.states = [[zero] * bilm.options.n_layers for _ in (0, 1)]

    def __call__(self, batch: Batch, seed: int) -> float:
        sample, tries = self.sampler.draw(torch.Generator().manual_seed(seed))
        of_sample = self.sampler.log_expected(sample, tries)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        total = torch.zeros(())
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            encoded = self.model.encode(batch.characters)
            for d in (0, 1):
                top, self.states[d] = self.model.read(F.embedding(batch.inputs[d], encoded), d, self.states[d])
                targets = batch.targets[d].reshape(-1)
                of_targets = self.sampler.log_expected(targets, tries)
                total = total + self.model.loss(top.flatten(0, 1), targets, sample, of_sample, of_targets)
        loss = total / batch.targets.numel()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()


def rate_of(step: Callable[[Batch, int], float], given: list[Batch], tokens: int) -> float:
    begin = time.perf_counter()
    for seed, batch in enumerate(given):
        step(batch, seed)
    return tokens / (time.perf_counter() - begin)


def main() -> None:
    parser = parser_of(__doc__, "precisions", "threads")
    parser.add_argument("--dim", type=int, default=512, help="of the LSTMs")
    parser.add_argument("--negatives", type=int, default=8192, help="of the sampled softmax")
    parser.add_argument("--streams", type=int, default=128, help="rows of a batch")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    args = parser.parse_args()
    reuse_memory()  # as pretrain does; all sides profit
    warnings.filterwarnings("ignore", "LSTM with projections")  # torch says that oneDNN has none
    options = BiLMOptions(16, FILTERS, 1, "relu", 50, args.dim, PROJECTION, 2, 3.0, 3.0, True)
    source = batches(WORDS, args.streams, STEPS)
    given = [next(source) for _ in range(BATCHES)]
    distinct = round(statistics.mean(len(batch.characters) for batch in given))
    print(
        f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}, {args.threads} "
        f"threads\nLSTM {args.dim}, projection {PROJECTION}, {WORDS:,} words, {args.negatives:,} negatives, "
        f"{args.streams} x {STEPS} tokens a step, {distinct:,} distinct words"
    )
    sides: dict[str, OurStep | PlainStep] = {}
    for kind, precision in product(("ours", "plain"), args.precisions):
        generator = torch.Generator().manual_seed(0)
        bilm, softmax = BiLM(options), Softmax(WORDS, PROJECTION)
        bilm.reset_parameters(generator)
        softmax.reset_parameters(generator=generator)
        make = OurStep if kind == "ours" else PlainStep
        sides[f"{kind} {precision}"] = make(bilm, softmax, precision, args)
    losses = {name: step(given[0], 0) for name, step in sides.items()}
    print("loss of the first step: " + ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items()) + "\n")
    print(row(["round", *(f"{name}, tokens/s (others' cores)" for name in sides)]))
    print("|---" * (1 + len(sides)) + "|")
    found: dict[str, Rounds] = {name: [] for name in sides}
    for number in range(1, args.rounds + 1):
        given = [next(source) for _ in range(BATCHES)]
        for name, step in sides.items():
            torch.set_num_threads(args.threads)
            found[name].append(measured(partial(rate_of, step, given, BATCHES * args.streams * STEPS), PAUSE))
        last = [rounds[-1] for rounds in found.values()]
        print(row([number, *(f"{one.rate:,.0f} ({one.others:.2f})" for one in last)]), flush=True)
    print("\nmedians of the undisturbed rounds, if there are any:")
    first, *_ = found
    for name, rounds in found.items():
        ratio = compared(found[first], rounds, ".2f")
        print(f"{name} {median_rate(rounds):,.0f} tokens/s (others {load_of(rounds)}); {first} / it: {ratio}")
    for step in sides.values():
        if isinstance(step, OurStep):
            step.workers.close()


if __name__ == "__main__":
    main()
