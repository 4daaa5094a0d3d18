"""A training step: dropout, the scale of the loss, the parts that run side by side, and the matmul type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_run import by_frequency
from torch import Tensor

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import boundary_ids, words_to_ids
from spacy_elmo.inference.linear import has_bfloat16
from spacy_elmo.modules import BiLM, LstmState, lstm
from spacy_elmo.modules.char_cnn import CharCnn
from spacy_elmo.pretraining import step as step_module
from spacy_elmo.pretraining import workspace
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
)
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.folder import find_vocabulary, starting_model
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.step import Batch, GpuStep, Workers, inverted_dropout, without_repetitions
from spacy_elmo.pretraining.trainer import Trainer

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 10, 6, 2, 3.0, 3.0, True)
STEPS, STREAMS = 5, 4


class SumOfTop:
    """A scorer whose loss is the sum of the top layer's outputs."""

    def __init__(self) -> None:
        self.types: list[torch.dtype] = []

    def leaves(self) -> list[Tensor]:
        return []

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        self.types.append(matmul_dtype)
        return top.sum()


def gradients(
    n_threads: int, rate: float, seed: int, scale: float = 1.0, matmul: torch.dtype = torch.float32
) -> tuple[step_module.Gradients, SumOfTop]:
    bilm, scorer = BiLM(OPTIONS), SumOfTop()
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    characters = torch.cat([torch.from_numpy(boundary_ids(12)), torch.from_numpy(words_to_ids(["a", "bc"], 12))])
    inputs = torch.randint(0, 4, (2, STEPS, STREAMS), generator=generator)
    keep = torch.randint(0, 2, (STEPS, STREAMS, 1), generator=generator).float()
    keep[0] = 1
    batch = Batch(characters, inputs, inputs, keep)
    state = LstmState(*(torch.randn(part.shape, generator=generator) for part in bilm.lstm.zero_state(STREAMS)))
    workers = Workers(bilm, n_threads, matmul, rate)
    try:
        return workers.gradients(batch, scorer, state, scale, seed), scorer
    finally:
        workers.close()


def test_inverted_dropout() -> None:
    x = torch.rand(200, 100, generator=torch.Generator().manual_seed(2)) + 1
    drop = inverted_dropout(0.25, 7)
    assert drop is not None
    first, second = drop(x), drop(x)
    for dropped in (first, second):
        kept = dropped != 0
        assert abs(float(kept.float().mean()) - 0.75) < 0.02
        torch.testing.assert_close(dropped[kept], x[kept] / 0.75)
    assert not torch.equal(first, second)
    again, other = inverted_dropout(0.25, 7), inverted_dropout(0.25, 8)
    assert again is not None
    assert other is not None
    assert torch.equal(again(x), first)
    assert not torch.equal(other(x), first)
    assert inverted_dropout(0.0, 7) is None


@pytest.mark.parametrize("n_threads", [1, 4])
def test_inputs_of_layers_and_the_top_are_dropped(monkeypatch: pytest.MonkeyPatch, n_threads: int) -> None:
    calls: dict[int, list[tuple[int, ...]]] = {}

    def to_zero(rate: float, seed: int) -> Callable[[Tensor], Tensor]:
        assert rate == 0.25
        shapes = calls.setdefault(seed, [])

        def drop(x: Tensor) -> Tensor:
            shapes.append(tuple(x.shape))
            return x * 0

        return drop

    monkeypatch.setattr(step_module, "inverted_dropout", to_zero)
    groups = max(1, n_threads // 2)
    streams = STREAMS // groups
    for seed in (0, 1):  # no seed of one update is one of the next update
        assert gradients(n_threads, 0.25, seed)[0].loss == 0
        assert len(calls) == 2 * groups * (seed + 1)
    assert list(calls.values()) == [[(1, STEPS, streams, 6)] * 2 + [(STEPS * streams, 6)]] * len(calls)


def test_the_matmul_type_reaches_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[torch.dtype] = []
    scans, encode = step_module.window_scans, CharCnn.forward

    def watched_scans(keep: Tensor, matmul_dtype: torch.dtype, *others: Any) -> Any:
        types.append(matmul_dtype)
        return scans(keep, matmul_dtype, *others)

    def watched_encode(self: CharCnn, ids: Tensor, matmul_dtype: torch.dtype) -> Tensor:
        types.append(matmul_dtype)
        return encode(self, ids, matmul_dtype)

    monkeypatch.setattr(step_module, "window_scans", watched_scans)
    monkeypatch.setattr(CharCnn, "forward", watched_encode)
    _, scorer = gradients(1, 0.0, 0, matmul=torch.bfloat16)
    assert types + scorer.types == [torch.bfloat16] * (1 + 2 + 2)  # all words at once, both directions


GPU_OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 20, 16, 2, 3.0, 3.0, True)
KINDS = ["sampled", "full"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return by_frequency(tmp_path_factory.mktemp("words"))


def trainer_on(
    device: str, words: PreparedCorpus, kind: str, options: BiLMOptions = GPU_OPTIONS, **training: Any
) -> Trainer:
    fields: dict[str, Any] = {
        "streams": 8,
        "steps": 7,
        "zero_state_share": 0.5,
        "workers": 2,
        "precision": "float32",
        "softmax": SoftmaxSettings(kind, 9),
        "optimizer": OptimizerSettings(clip_norm=1e9),
    }
    config = PretrainConfig(PathSettings("text.txt"), options, training=TrainingSettings(**fields))
    model = starting_model(config, find_vocabulary(config, words))
    settings = TrainingSettings(**fields | training)
    return Trainer(settings, model, words, 8, Group(device=torch.device(device)))


@pytest.mark.skipif(not has_bfloat16(torch.device("cpu")), reason="this machine multiplies no bfloat16")
@pytest.mark.usefixtures("cell")
def test_bfloat16_goes_the_way_of_float32(words: PreparedCorpus) -> None:
    """The gradients of a compiled loop that read float32 as bfloat16 were NaN, or wrong, after the first step."""
    options = replace(GPU_OPTIONS, dim=64, projection_dim=64)
    losses = []
    for precision in ("float32", "bfloat16"):
        quick: dict[str, Any] = {"optimizer": OptimizerSettings(learning_rate=0.01), "precision": precision}
        trainer = trainer_on("cpu", words, "full", options, **quick, schedule=ScheduleSettings("constant", 0))
        with trainer:
            losses.append([trainer.step() for _ in range(12)])
    exact, low = losses
    assert exact[-1] < exact[0] - 0.1
    assert low == pytest.approx(exact, abs=0.005)


@pytest.fixture
def gpu() -> str:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch sees")
    return "cuda"


def test_each_word_once() -> None:
    characters = torch.tensor([[1, 2], [3, 4], [1, 2], [5, 6], [3, 4]])
    inputs = torch.tensor([[0, 1, 2], [3, 4, 0]])
    distinct, index = without_repetitions(characters, inputs)
    assert len(distinct) == 3
    assert torch.equal(distinct[index], characters[inputs])


@pytest.mark.parametrize(
    ("kind", "frozen", "accumulate"),
    [("sampled", 0, 3), ("sampled", 2 * 56, 1), ("full", 10**6, 1), ("full", 0, 1)],
)
def test_it_computes_what_the_threads_compute(
    words: PreparedCorpus, kind: str, frozen: int, accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "Replayed", lambda function: function)
    losses, states = [], []
    for of_gpu in (False, True):
        trainer = trainer_on("cpu", words, kind, frozen_tokens=frozen, accumulate=accumulate)
        if of_gpu:
            monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
            trainer.workers.close()
            trainer.workers = GpuStep(trainer.model.bilm, torch.float32)
        with trainer:
            losses.append([trainer.step() for _ in range(4)])
        states.append(trainer.state_arrays())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    for name, values in states[0].items():
        np.testing.assert_allclose(states[1][name], values, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.fixture(scope="module")
def many_words(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    folder = tmp_path_factory.mktemp("many_words")
    words = np.random.default_rng(0).permutation(3000)
    lines = [" ".join(f"w{word}" for word in part) for part in words.reshape(-1, 6)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return prepare(folder / "text.txt", folder / "prepared")


@pytest.mark.parametrize(
    ("kind", "options", "training"),
    [
        *(
            (kind, GPU_OPTIONS, {"optimizer": OptimizerSettings("muon", clip_norm=1e9), "average_share": 0.1})
            for kind in KINDS
        ),
        *(
            (kind, GPU_OPTIONS, {"optimizer": OptimizerSettings(name, clip_norm=1e9)})
            for name in ("adamw", "adagrad")
            for kind in KINDS
        ),
        ("sampled", GPU_OPTIONS, {"accumulate": 3}),
        ("sampled", GPU_OPTIONS, {"frozen_tokens": 10**6}),
        ("sampled", GPU_OPTIONS, {"frozen_tokens": 2 * 56}),
        ("sampled", replace(GPU_OPTIONS, dim=16), {}),
        ("sampled", replace(GPU_OPTIONS, dim=1100), {}),
        ("sampled", GPU_OPTIONS, {"softmax": SoftmaxSettings("sampled", 2500)}),
    ],
)
def test_updates_on_a_gpu_are_those_on_the_cpu(
    words: PreparedCorpus,
    many_words: PreparedCorpus,
    gpu: str,
    kind: str,
    options: BiLMOptions,
    training: dict[str, Any],
) -> None:
    losses, states = [], []
    for device in ("cpu", gpu):
        trainer = trainer_on(device, words if "optimizer" in training else many_words, kind, options, **training)
        with trainer:
            losses.append([trainer.step() for _ in range(5)])
        states.append(trainer.state_arrays())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for key, values in states[0].items():
        np.testing.assert_allclose(states[1][key], values, rtol=1e-2, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_restored_trainer_on_a_gpu_makes_the_same_updates(
    words: PreparedCorpus, gpu: str, kind: str, precision: str
) -> None:
    """Bit by bit, with dropout, and with the text read ahead."""
    given: dict[str, Any] = {"precision": precision, "dropout": 0.3, "readers": 2, "average_share": 0.1}
    going = trainer_on(gpu, words, kind, **given)
    with going:
        for _ in range(3):
            going.step()
        saved = going.state_arrays()
        later = [going.step() for _ in range(5)]
    again = trainer_on(gpu, words, kind, **given)
    with again:
        again.restore(saved)
        assert [again.step() for _ in range(5)] == later
    for name, values in going.state_arrays().items():
        np.testing.assert_array_equal(again.state_arrays()[name], values, err_msg=name)
