"""The average of the weights, against sums in float64, and weights of few bits: in resumed runs, and in their files."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from small_run import OPTIONS, STEPS, STREAMS, config_of, last_checkpoint, run, with_paths, write_text

from spacy_elmo.errors import CheckpointError, SettingsError
from spacy_elmo.formats import read_weights
from spacy_elmo.inference import linear
from spacy_elmo.pretraining.checkpoint import write_checkpoint
from spacy_elmo.pretraining.config import OptimizerSettings, PretrainConfig, SoftmaxSettings, TrainingSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.pack import pack
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.trainer import average_of, check_streams, enough_memory, training_dtype

UPDATES = 8


@pytest.fixture
def config(tmp_path: Path) -> PretrainConfig:
    return config_of(write_text(tmp_path / "text.txt"), UPDATES, average_share=0.4)


def state(output: Path) -> dict[str, np.ndarray]:
    return last_checkpoint(output)[1]


@pytest.mark.parametrize("horizon", [0.5, 4.0, 1000.0])
def test_values(horizon: float) -> None:
    """Each weight of the sum written out: the newest has share s, the one before s (1 - s), and so on."""
    module = Softmax(4, 8)
    average = average_of(module, horizon)
    random, history = np.random.default_rng(0), []
    for _ in range(100):
        module.weight.data.copy_(torch.from_numpy(random.normal(size=(4, 8))))
        average.update_parameters(module)
        history.append(module.weight.detach().double().numpy().copy())
    shares = [min(1.0, max(1 / k, 1 / horizon)) for k in range(1, 101)]
    factors = [share * np.prod([1 - later for later in shares[k + 1 :]]) for k, share in enumerate(shares)]
    assert sum(factors) == pytest.approx(1)
    expected = sum(factor * value for factor, value in zip(factors, history))
    np.testing.assert_allclose(average.module.weight.detach().numpy(), expected, atol=1e-6)
    np.testing.assert_array_equal(module.weight.detach().numpy(), history[-1])


def test_training_is_the_same_and_the_average_is_saved(config: PretrainConfig, tmp_path: Path) -> None:
    """A checkpoint without all of the average is refused."""
    run(config, tmp_path / "with")
    run(replace(config, training=replace(config.training, average_share=0.0)), tmp_path / "without")
    averaged, plain = state(tmp_path / "with"), state(tmp_path / "without")
    for name, array in plain.items():
        if not name.startswith(("progress/", "run")):
            np.testing.assert_array_equal(averaged[name], array, err_msg=name)
    with h5py.File(tmp_path / "with/model-last/weights.hdf5") as file:
        saved = file["CNN_proj/W_proj"][:]
    assert "average/module.bilm.char_cnn.projection.weight" in averaged
    np.testing.assert_array_equal(saved.T, averaged["average/module.bilm.char_cnn.projection.weight"])
    assert np.abs(saved.T - plain["bilm/char_cnn.projection.weight"]).max() > 1e-3
    del averaged["average/module.softmax.bias"]
    write_checkpoint(tmp_path / "with/checkpoints", UPDATES, averaged)
    with pytest.raises(CheckpointError, match=r"average/module\.softmax\.bias is missing"):
        run(config, tmp_path / "with")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "optimizer", "tuning"),
    [
        *((kind, name, {}) for kind in ("sampled", "full") for name in ("adamw", "adagrad")),
        ("sampled", "muon", {}),
        *((kind, "muon", {"frozen_tokens": (UPDATES - 1) * STREAMS * STEPS}) for kind in ("sampled", "full")),
        ("full", "muon", {"weight_bits": 4}),
    ],
)
def test_a_resumed_run_has_the_same_bits(
    config: PretrainConfig, tmp_path: Path, kind: str, optimizer: str, tuning: dict[str, int]
) -> None:
    """With dropout; also from the middle of the frozen part."""
    if tuning:
        run(config, tmp_path / "init")
        config = with_paths(config, init=tmp_path / "init" / "model-last")
    changes: dict[str, Any] = {"softmax": SoftmaxSettings(kind, 9), "dropout": 0.3, **tuning}
    changes["optimizer"] = OptimizerSettings(optimizer, learning_rate=0.01)
    whole = replace(config, training=replace(config.training, **changes))
    run(whole, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "interrupted")
    (tmp_path / "interrupted" / "checkpoints" / f"step-{UPDATES:09}.h5").unlink()
    assert state(tmp_path / "interrupted")["step"] == UPDATES - 2
    run(whole, tmp_path / "interrupted")
    expected, got = state(tmp_path / "whole"), state(tmp_path / "interrupted")
    assert expected.keys() == got.keys()
    for name, array in expected.items():
        if name != "progress/seconds":
            np.testing.assert_array_equal(got[name], array, err_msg=name)
    for name in ("weights.hdf5", "softmax.hdf5"):
        files = [(tmp_path / folder / "model-last" / name).read_bytes() for folder in ("whole", "interrupted")]
        assert files[0] == files[1]


class Recorder(Reporter):
    """Keeps the losses."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def step(self, step: int, tokens: int, total_tokens: int, loss: float, *told: float) -> None:
        self.losses.append(loss)


@pytest.mark.slow
def test_weights_of_few_bits(config: PretrainConfig, tmp_path: Path) -> None:
    """An update has the loss of the packed model, its change is of all bits, and what is saved has few again."""
    run(replace(config, training=replace(config.training, average_share=0.0)), tmp_path / "first")
    init = tmp_path / "first" / "model-last"
    pack(init, tmp_path / "rounded", 23, "none", bits=3)
    packed = Path(shutil.copytree(init, tmp_path / "of 3 bits"))  # its softmax has all bits
    shutil.copy(tmp_path / "rounded" / "weights.hdf5", packed)
    of_all = with_paths(replace(config, training=replace(config.training, total_tokens=80)), init=init)
    few = replace(of_all, training=replace(of_all.training, weight_bits=3))
    losses = {}
    for name, settings in (("few", few), ("packed", with_paths(of_all, init=packed)), ("all", of_all)):
        reporter = Recorder()
        run(settings, tmp_path / name, reporter)
        losses[name] = reporter.losses[0]
    assert losses["few"] == pytest.approx(losses["packed"], rel=1e-6)
    assert abs(losses["few"] - losses["all"]) > 1e-3
    pack(tmp_path / "few" / "model-last", tmp_path / "again", 23, "float32", bits=3)
    saved = read_weights(tmp_path / "few" / "model-last" / "weights.hdf5", OPTIONS)
    rounded = read_weights(tmp_path / "again" / "weights.hdf5", OPTIONS)
    for name, values in saved.items():
        np.testing.assert_array_equal(rounded[name], values, err_msg=name)
    kept = state(tmp_path / "few")["bilm/lstm.layers.0.input_weight"]
    steps = state(tmp_path / "few")["few_bits/lstm.layers.0.input_weight"]
    assert np.abs(kept / steps - np.rint(kept / steps)).max() > 0.1
    with pytest.raises(SettingsError, match=r"training\.weight_bits is 3\. Expected null where paths\.init is not set"):
        with_paths(few, init=None)


@pytest.mark.slow
def test_it_may_be_switched_on_and_off(config: PretrainConfig, tmp_path: Path) -> None:
    def share(updates: int, share: float) -> PretrainConfig:
        tokens = updates * config.training.tokens_per_update
        return replace(config, training=replace(config.training, total_tokens=tokens, average_share=share))

    output = tmp_path / "out"
    run(share(2, 0.0), output)
    assert not any(name.startswith("average/") for name in state(output))
    run(share(4, 0.4), output)
    assert state(output)["average/n_averaged"] == 2
    run(share(6, 0.0), output)
    assert not any(name.startswith("average/") for name in state(output))
    run(share(8, 0.0), tmp_path / "plain")
    run(share(8, 0.4), output)
    np.testing.assert_array_equal(state(output)["softmax/weight"], state(tmp_path / "plain")["softmax/weight"])


@pytest.mark.parametrize(
    ("training", "size", "message"),
    [
        ({"streams": 6, "workers": 4}, 1, None),
        ({"streams": 6, "workers": 2, "readers": 3}, 2, None),
        ({"streams": 7, "workers": 2}, 2, r"streams is 7\. Expected a multiple of 2: .* among 2 processes"),
        ({"streams": 6, "workers": 4}, 2, r"streams is 6\. Expected a multiple of 4"),
        ({"streams": 6, "workers": 4, "device": "cuda"}, 2, None),
        (
            {"streams": 12, "readers": 4},
            2,
            r"readers is 4\. Expected 0 or a number that divides the 6 .*: 1, 2, 3, 6\.",
        ),
    ],
)
def test_streams_that_can_be_divided(training: dict[str, Any], size: int, message: str | None) -> None:
    settings, group = TrainingSettings(**training), Group(size=size)
    with nullcontext() if message is None else pytest.raises(SettingsError, match=message):
        check_streams(settings, group)


SETTINGS = TrainingSettings(streams=12, steps=1000)


@pytest.mark.parametrize("allocate", [lambda n: np.empty(n, np.int8), lambda n: torch.empty(n, dtype=torch.int8)])
def test_arrays_that_are_too_large(allocate: object) -> None:
    message = (
        r"there is not enough memory \(.*\)\. Lower training\.streams, which is 12, training\.steps, which is 1,000, "
    )
    with pytest.raises(SettingsError, match=message), enough_memory(SETTINGS):
        allocate(2**62)  # type: ignore[operator]


@pytest.mark.parametrize("has", [True, False])
def test_the_precision_of_training(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "has_bfloat16", lambda device: has)
    cpu = torch.device("cpu")
    assert training_dtype("float32", cpu) == torch.float32
    assert training_dtype("auto", cpu) == (torch.bfloat16 if has else torch.float32)
    if has:
        assert training_dtype("bfloat16", cpu) == torch.bfloat16
    else:
        with pytest.raises(SettingsError, match=r'cpu has no matrix multiplications in bfloat16\. Set it to "float32"'):
            training_dtype("bfloat16", cpu)
