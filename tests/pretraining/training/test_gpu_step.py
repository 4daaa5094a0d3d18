"""The step of GPUs: on the CPU against the step of threads, and whole updates on a GPU against those on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_corpora import by_frequency
from starts import find_vocabulary, starting_model

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import lstm
from spacy_elmo.modules.lstm import GpuWorkspace
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
)
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.step import GpuStep, without_repetitions
from spacy_elmo.pretraining.trainer import Trainer

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 20, 16, 2, 3.0, 3.0, True)
KINDS = ["sampled", "full", "adaptive"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return by_frequency(tmp_path_factory.mktemp("corpus"))


def trainer_on(
    device: str, corpus: PreparedCorpus, kind: str, options: BiLMOptions = OPTIONS, **training: Any
) -> Trainer:
    fields: dict[str, Any] = {
        "streams": 8,
        "steps": 7,
        "zero_state_share": 0.5,
        "workers": 2,
        "precision": "float32",
        "softmax": SoftmaxSettings(kind, 9, (6, 14)),
        "optimizer": OptimizerSettings(clip_norm=1e9),
    }
    config = PretrainConfig(PathSettings("text.txt"), options, training=TrainingSettings(**fields))
    model = starting_model(config, find_vocabulary(config, corpus))
    settings = TrainingSettings(**fields | training)
    return Trainer(settings, model, corpus, 8, Group(device=torch.device(device)))


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


def test_words_with_the_same_sum_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "randint", lambda *_, **__: torch.ones(2, dtype=torch.int64))
    characters, inputs = torch.tensor([[1, 2], [2, 1]]), torch.tensor([0, 1])
    distinct, index = without_repetitions(characters, inputs)
    assert torch.equal(distinct[index], characters[inputs])


class Repeated:
    """Stands for a recorded call on the CPU: it repeats the first call's function, with the arrays of that call."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def __call__(self) -> Any:
        return self.function()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("frozen", "accumulate"), [(0, 1), (10**6, 1), (2 * 56, 1), (0, 3)])
@pytest.mark.parametrize("recorded", [False, True], ids=["started", "recorded"])
def test_it_computes_what_the_threads_compute(
    corpus: PreparedCorpus, kind: str, frozen: int, accumulate: int, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lstm, "Replayed", Repeated)
    losses, states = [], []
    for of_gpu in (False, True):
        trainer = trainer_on("cpu", corpus, kind, frozen_tokens=frozen, accumulate=accumulate)
        if of_gpu:
            monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
            trainer.workers.close()
            trainer.workers = GpuStep(trainer.model.bilm, torch.float32)
            if recorded:
                trainer.workers.workspaces = [GpuWorkspace() for _ in trainer.model.bilm.lstm.layers]
        with trainer:
            losses.append([trainer.step() for _ in range(4)])
        states.append(trainer.state_arrays())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    for name, values in states[0].items():
        np.testing.assert_allclose(states[1][name], values, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["muon", "adamw", "adagrad"])
def test_updates_on_a_gpu_are_those_on_the_cpu(corpus: PreparedCorpus, gpu: str, kind: str, name: str) -> None:
    losses, states = [], []
    for device in ("cpu", gpu):
        trainer = trainer_on(device, corpus, kind, optimizer=OptimizerSettings(name, clip_norm=1e9), average_share=0.1)
        with trainer:
            losses.append([trainer.step() for _ in range(6)])
        states.append(trainer.state_arrays())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for key, values in states[0].items():
        np.testing.assert_allclose(states[1][key], values, rtol=1e-2, atol=1e-3, err_msg=key)


@pytest.fixture(scope="module")
def many_words(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    folder = tmp_path_factory.mktemp("many_words")
    words = np.random.default_rng(0).permutation(3000)
    lines = [" ".join(f"w{word}" for word in part) for part in words.reshape(-1, 6)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return prepare(folder / "text.txt", folder / "prepared")


@pytest.mark.parametrize(
    ("options", "training"),
    [
        (OPTIONS, {"accumulate": 3}),
        (OPTIONS, {"frozen_tokens": 10**6}),
        (OPTIONS, {"frozen_tokens": 2 * 56}),
        (replace(OPTIONS, dim=16), {}),
        (replace(OPTIONS, dim=1100), {}),
        (OPTIONS, {"softmax": SoftmaxSettings("sampled", 2500)}),
    ],
    ids=["accumulated", "frozen", "thawed", "without projection", "more cells than a block", "many negatives"],
)
def test_updates_of_other_settings_on_a_gpu_are_those_on_the_cpu(
    many_words: PreparedCorpus, gpu: str, options: BiLMOptions, training: dict[str, Any]
) -> None:
    losses, states = [], []
    for device in ("cpu", gpu):
        trainer = trainer_on(device, many_words, "sampled", options, **training)
        with trainer:
            losses.append([trainer.step() for _ in range(4)])
        states.append(trainer.state_arrays())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for key, values in states[0].items():
        np.testing.assert_allclose(states[1][key], values, rtol=1e-2, atol=1e-3, err_msg=key)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_restored_trainer_on_a_gpu_makes_the_same_updates(
    corpus: PreparedCorpus, gpu: str, kind: str, precision: str
) -> None:
    """Bit by bit, with dropout, and with the text read ahead."""
    given: dict[str, Any] = {"precision": precision, "dropout": 0.3, "readers": 2, "average_share": 0.1}
    going = trainer_on(gpu, corpus, kind, **given)
    with going:
        for _ in range(3):
            going.step()
        saved = going.state_arrays()
        later = [going.step() for _ in range(5)]
    again = trainer_on(gpu, corpus, kind, **given)
    with again:
        again.restore(saved)
        assert [again.step() for _ in range(5)] == later
    for name, values in going.state_arrays().items():
        np.testing.assert_array_equal(again.state_arrays()[name], values, err_msg=name)
