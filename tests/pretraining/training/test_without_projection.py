"""Training of a biLM whose LSTMs have no projection, in bfloat16 as in float32."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from starts import find_vocabulary, starting_model, trainer_of

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules.loading import has_bfloat16
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
)
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare

OPTIONS = BiLMOptions(4, ((1, 8), (2, 16)), 1, "relu", 12, 64, 64, 2, 3.0, 3.0, True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """Sentences of 2 to 6 words, so that states are forgotten within each window."""
    rng, folder = random.Random(0), tmp_path_factory.mktemp("text")
    lines = [" ".join(f"w{k}" for k in range(rng.randint(2, 6))) for _ in range(80)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return prepare(Path(folder, "text.txt"), folder / "prepared")


def losses(corpus: PreparedCorpus, precision: str) -> list[float]:
    training = TrainingSettings(
        streams=8,
        steps=9,
        zero_state_share=0.5,
        workers=1,
        precision=precision,
        softmax=SoftmaxSettings("full"),
        optimizer=OptimizerSettings(learning_rate=0.01),
        schedule=ScheduleSettings("constant", warmup_steps=0),
    )
    config = PretrainConfig(PathSettings("text.txt"), OPTIONS, training=training)
    torch.manual_seed(0)
    trainer = trainer_of(config, starting_model(config, find_vocabulary(config, corpus)), corpus)
    with trainer:
        return [trainer.step() for _ in range(6)]


@pytest.mark.skipif(not has_bfloat16(torch.device("cpu")), reason="this machine multiplies no bfloat16")
@pytest.mark.usefixtures("cell")
def test_bfloat16_goes_the_way_of_float32(corpus: PreparedCorpus) -> None:
    """The gradients of a compiled loop that read float32 as bfloat16 were NaN, or wrong, after the first step."""
    exact, low = (losses(corpus, precision) for precision in ("float32", "bfloat16"))
    assert exact[-1] < exact[0] - 0.1
    for got, expected in zip(low, exact, strict=True):
        assert got == pytest.approx(expected, abs=0.005)
