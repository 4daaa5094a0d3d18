"""The average of the weights: against sums in float64, in resumed runs, and in the files of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from small_run import config_of, run, write_text

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining.run.checkpoint import Checkpoints
from spacy_elmo.pretraining.settings.config import PretrainConfig
from spacy_elmo.pretraining.settings.sections import SoftmaxSettings
from spacy_elmo.pretraining.training.averaging import WeightAverage

UPDATES = 8


@pytest.fixture
def config(tmp_path: Path) -> PretrainConfig:
    return config_of(write_text(tmp_path / "text.txt"), UPDATES, average_share=0.4)


def state(output: Path) -> dict[str, np.ndarray]:
    found = Checkpoints(output / "checkpoints").latest(pytest.fail)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(("horizon", "interval"), [(0.5, 1), (4.0, 1), (40.0, 4), (1000.0, 10)])
def test_values(horizon: float, interval: int) -> None:
    """Each weight of the sum written out: the newest has share s, the one before s (1 - s), and so on."""
    random = np.random.default_rng(0)
    weight = torch.zeros(3, 2)
    average = WeightAverage({"a": weight}, horizon)
    history = []
    for number in range(1, 301):
        weight.copy_(torch.from_numpy(random.normal(size=(3, 2))))
        average.after_update(number)
        if number % interval == 0:
            history.append(weight.double().numpy().copy())
    shares = [min(1.0, max(1 / k, interval / horizon)) for k in range(1, len(history) + 1)]
    factors = [share * np.prod([1 - later for later in shares[k + 1 :]]) for k, share in enumerate(shares)]
    assert sum(factors) == pytest.approx(1)
    expected = sum(factor * value for factor, value in zip(factors, history))
    np.testing.assert_allclose(average.averages["a"].numpy(), expected, atol=1e-6)


def test_the_first_horizon_is_a_plain_mean() -> None:
    weight = torch.zeros(2)
    average = WeightAverage({"a": weight}, 100.0)
    for number in range(1, 101):
        weight.fill_(number)
        average.after_update(number)
    np.testing.assert_allclose(average.averages["a"].numpy(), np.mean(range(10, 101, 10)), rtol=1e-6)


def test_weights_come_back_after_an_error() -> None:
    weight = torch.full((2,), 3.0)
    average = WeightAverage({"a": weight}, 1.0)
    with average.in_place():
        assert weight.tolist() == [3, 3]  # nothing was averaged so far
    average.after_update(1)
    weight.fill_(5)
    inside = []

    def fail() -> None:
        with average.in_place():
            inside.extend(weight.tolist())
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        fail()
    assert inside == [3, 3]
    assert weight.tolist() == [5, 5]


def test_training_is_the_same_and_the_average_is_saved(config: PretrainConfig, tmp_path: Path) -> None:
    run(config, tmp_path / "with")
    run(replace(config, training=replace(config.training, average_share=0.0)), tmp_path / "without")
    averaged, plain = state(tmp_path / "with"), state(tmp_path / "without")
    for name, array in plain.items():
        if not name.startswith(("progress/", "run")):
            np.testing.assert_array_equal(averaged[name], array, err_msg=name)
    with h5py.File(tmp_path / "with/model-last/weights.hdf5") as file:
        saved = file["CNN_proj/W_proj"][:]
    assert "average/bilm/char_cnn.projection.weight" in averaged
    np.testing.assert_array_equal(saved.T, averaged["average/bilm/char_cnn.projection.weight"])
    assert np.abs(saved.T - plain["bilm/char_cnn.projection.weight"]).max() > 1e-3


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_a_resumed_run_has_the_same_bits(config: PretrainConfig, tmp_path: Path, kind: str) -> None:
    whole = replace(config, training=replace(config.training, softmax=SoftmaxSettings(kind, cutoffs=(10,))))
    run(whole, tmp_path / "whole")
    interrupted = tmp_path / "interrupted"
    run(whole, interrupted)
    for path in (interrupted / "checkpoints").glob("*.h5"):
        if not path.name.endswith("6.h5"):
            path.unlink()
    assert state(interrupted)["step"] == 6
    run(whole, interrupted)
    expected, got = state(tmp_path / "whole"), state(interrupted)
    assert expected.keys() == got.keys()
    for name, array in expected.items():
        if name != "progress/seconds":
            np.testing.assert_array_equal(got[name], array, err_msg=name)
    for name in ("weights.hdf5", "softmax.hdf5"):
        files = [(tmp_path / folder / "model-last" / name).read_bytes() for folder in ("whole", "interrupted")]
        assert files[0] == files[1]


def test_it_may_be_switched_on_and_off(config: PretrainConfig, tmp_path: Path) -> None:
    def share(updates: int, share: float) -> PretrainConfig:
        tokens = updates * config.training.tokens_per_update
        return replace(config, training=replace(config.training, total_tokens=tokens, average_share=share))

    output = tmp_path / "out"
    run(share(2, 0.0), output)
    assert not any(name.startswith("average/") for name in state(output))
    run(share(4, 0.4), output)
    assert state(output)["average/count"] == 2
    run(share(6, 0.0), output)
    assert not any(name.startswith("average/") for name in state(output))
    run(share(8, 0.0), tmp_path / "plain")
    run(share(8, 0.4), output)
    np.testing.assert_array_equal(state(output)["softmax/weight"], state(tmp_path / "plain")["softmax/weight"])


def test_a_damaged_average(config: PretrainConfig, tmp_path: Path) -> None:
    run(config, tmp_path / "out")
    arrays = state(tmp_path / "out")
    del arrays["average/softmax/bias"]
    Checkpoints(tmp_path / "out/checkpoints").write(UPDATES, arrays)
    with pytest.raises(CheckpointError, match="average/softmax/bias is missing"):
        run(config, tmp_path / "out")
