"""Updates with each softmax, compared with plain autograd in float64: gradients, states, threads, freezing."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from small_run import by_frequency, trainer_of
from torch import Tensor

from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import boundary_ids
from spacy_elmo.modules import LstmState
from spacy_elmo.modules.lstm import scan_layers
from spacy_elmo.pretraining import trainer as trainer_module
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
)
from spacy_elmo.pretraining.folder import find_vocabulary, starting_model
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.scan import window_scans
from spacy_elmo.pretraining.softmax import LogUniform
from spacy_elmo.pretraining.step import Batch, Gradients
from spacy_elmo.pretraining.trainer import Trainer, _seed
from spacy_elmo.pretraining.workspace import Workspace

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 20, 16, 2, 3.0, 3.0, True)
STREAMS, STEPS, NEGATIVES, SEED = 8, 7, 9, 3
TOKENS = STREAMS * STEPS
KINDS = ["sampled", "full"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return by_frequency(tmp_path_factory.mktemp("corpus"))


def config_of(kind: str, **training: Any) -> PretrainConfig:
    fields: dict[str, Any] = {
        "streams": STREAMS,
        "steps": STEPS,
        "zero_state_share": 0.5,
        "workers": 2,
        "precision": "float32",
        "seed": SEED,
        "softmax": SoftmaxSettings(kind, NEGATIVES),
        "optimizer": OptimizerSettings(clip_norm=1e9, loss_scale=5.0),
    }
    init = "some_folder" if training.get("frozen_tokens") else None
    return PretrainConfig(PathSettings("text.txt", init=init), OPTIONS, training=TrainingSettings(**fields | training))


def model_of(config: PretrainConfig, corpus: PreparedCorpus) -> LanguageModel:
    """Weights larger than at the start of a run, so that no gradient is nearly 0."""
    fresh = replace(config, paths=PathSettings("text.txt"), training=replace(config.training, frozen_tokens=0))
    model = starting_model(fresh, find_vocabulary(fresh, corpus))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in (*model.bilm.parameters(), *model.softmax.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
        model.bilm.char_cnn.embedding.weight[0] = 0
    return model


class Call(NamedTuple):
    """One call of `Workers.gradients`: its arguments and its result."""

    batch: Batch
    scorer: Any
    state: LstmState
    got: Gradients


def watched(config: PretrainConfig, corpus: PreparedCorpus) -> tuple[Trainer, list[Call]]:
    trainer = trainer_of(config, model_of(config, corpus), corpus)
    calls: list[Call] = []
    gradients = trainer.workers.gradients

    def watch(batch: Batch, scorer: Any, state: LstmState, *others: Any) -> Gradients:
        calls.append(Call(batch, scorer, state, gradients(batch, scorer, state, *others)))
        return calls[-1].got

    trainer.workers.gradients = watch  # type: ignore[method-assign]
    return trainer, calls


def full_loss(softmax: Any, top: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(top @ softmax.weight.T + softmax.bias, targets, reduction="sum")


def sampled_loss(softmax: Any, top: Tensor, targets: Tensor, seed: int) -> Tensor:
    n_words = len(softmax.bias)
    sample, tries = LogUniform(n_words, NEGATIVES).draw(torch.Generator().manual_seed(seed))
    ranks = torch.arange(n_words, dtype=torch.float64)
    p = torch.log((ranks + 2) / (ranks + 1)) / math.log(n_words + 1)
    log_expected = torch.log(1 - (1 - p) ** tries)
    logits = top @ softmax.weight.T + softmax.bias - log_expected
    of_sample = logits[:, sample].masked_fill(sample[None] == targets[:, None], -math.inf)
    both = torch.cat([logits.gather(1, targets[:, None]), of_sample], 1)
    return F.cross_entropy(both, torch.zeros(len(both), dtype=torch.int64), reduction="sum")


def plain(model: LanguageModel, kind: str, call: Call, seed: int, scale: float) -> Gradients:
    """One batch by plain autograd in float64; of the loss the mean of all predictions."""
    bilm, softmax = copy.deepcopy(model.bilm).double(), copy.deepcopy(model.softmax).double()
    batch, state = call.batch, LstmState(*(values.double() for values in call.state))
    x = F.embedding(batch.inputs, bilm.char_cnn(batch.characters))
    scans = window_scans(batch.keep.double(), torch.float64, [Workspace() for _ in bilm.lstm.layers])
    outputs, hs, cs = scan_layers(bilm.options, bilm.lstm.weights(), x, state, scans=scans)
    top, targets = outputs[-1].flatten(0, 2), batch.targets.flatten()
    total = sampled_loss(softmax, top, targets, seed) if kind == "sampled" else full_loss(softmax, top, targets)
    parameters = [*bilm.parameters(), *softmax.parameters()]
    found = torch.autograd.grad(total * scale, parameters)
    n_dense = len(list(bilm.parameters()))
    h, c = (torch.stack([values[:, -1] for values in kind_]).detach() for kind_ in (hs, cs))
    return Gradients(total.item() / len(targets), list(found[:n_dense]), list(found[n_dense:]), LstmState(h, c))


def all_rows(scorer: Any, scored: list[Tensor], like: list[Tensor]) -> list[Tensor]:
    """The softmax's gradients, with rows of 0 for words that the batch did not use."""
    tables = [torch.zeros_like(table, dtype=torch.float32) for table in like]
    for table, part in zip(tables, scored, strict=True):
        assert len(torch.unique(scorer.rows)) == len(scorer.rows)
        table[scorer.rows] = part
    return tables


def assert_close(got: list[Tensor], expected: list[Tensor], bound: float = 1e-4) -> None:
    """bound: of the relative L2 distance of each."""
    for number, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.shape == b.shape
        assert b.norm() > 0, number
        assert float((a.double() - b.double()).norm() / b.double().norm()) <= bound, number


@pytest.mark.parametrize(
    ("kind", "workers", "frozen"),
    [("sampled", 2, 1), *(pytest.param(kind, n, n // 2, marks=pytest.mark.slow) for kind in KINDS for n in (1, 4))],
)
def test_gradients_losses_and_states(corpus: PreparedCorpus, kind: str, workers: int, frozen: int) -> None:
    """The first updates are of the softmax alone: the frozen biLM keeps its bits."""
    trainer, calls = watched(config_of(kind, workers=workers, frozen_tokens=frozen * TOKENS), corpus)
    state = trainer.model.bilm.lstm.zero_state(STREAMS)
    with trainer:
        for step in range(3):
            before = copy.deepcopy(trainer.model)
            assert trainer.frozen == (step < frozen)
            loss = trainer.step()
            call = calls[step]
            expected = plain(before, kind, call, _seed(SEED, step, 0), 5.0 / (2 * TOKENS))
            assert loss == pytest.approx(expected.loss, rel=1e-5)
            assert_close(call.got.dense, expected.dense if step >= frozen else [])
            assert_close(all_rows(call.scorer, call.got.scored, expected.scored), expected.scored)
            assert_close(list(call.got.state), list(expected.state))
            for carried, left in zip(call.state, state):
                assert torch.equal(carried, left)
            state = call.got.state
            for changed, parameters in ((step >= frozen, "bilm"), (True, "softmax")):
                both = zip(*(getattr(model, parameters).parameters() for model in (before, trainer.model)))
                assert all(torch.equal(a, b) != changed for a, b in both)


def test_states_are_zero_at_sentence_starts_in_a_share_of_the_streams(corpus: PreparedCorpus) -> None:
    trainer, calls = watched(config_of("full", zero_state_share=0.25), corpus)
    start, end = (torch.from_numpy(ids) for ids in boundary_ids(OPTIONS.max_characters))
    with trainer:
        for _ in range(4):
            trainer.step()
    kept = torch.cat([call.batch.keep[:, :, 0] for call in calls])
    for direction, boundary in ((0, start), (1, end)):
        begins = torch.cat([(c.batch.characters[c.batch.inputs[direction]] == boundary).all(2) for c in calls])
        forgetful = [s for s in range(STREAMS) if (kept[:, s] == 0).any()]
        assert forgetful == [3, 7]
        assert torch.equal(kept[:, forgetful] == 0, begins[:, forgetful])
        assert begins.sum() > 3 * STREAMS


@pytest.mark.parametrize("kind", KINDS)
def test_accumulated_batches_give_the_mean_of_their_gradients(
    corpus: PreparedCorpus, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, calls = watched(config_of(kind, accumulate=2), corpus)
    before, clipped = copy.deepcopy(trainer.model), []

    def record(gradients: list[Tensor], bound: float) -> float:
        clipped.extend(gradient.clone() for gradient in gradients)
        return 1.0

    monkeypatch.setattr(trainer_module, "clip", record)
    with trainer:
        loss = trainer.step()
    assert len(calls) == 2
    assert trainer.tokens == 2 * TOKENS
    one, other = (plain(before, kind, call, _seed(SEED, 0, n), 5.0 / (2 * TOKENS)) for n, call in enumerate(calls))
    assert loss == pytest.approx((one.loss + other.loss) / 2, rel=1e-5)
    n_dense = len(one.dense)
    assert_close(clipped[:n_dense], [(a + b) / 2 for a, b in zip(one.dense, other.dense)])
    means = [(a + b) / 2 for a, b in zip(one.scored, other.scored)]
    rows = torch.unique(torch.cat([call.scorer.rows for call in calls]))
    assert kind == "full" or len(rows) > len(calls[0].scorer.rows)  # the second batch has other negatives
    assert_close(clipped[n_dense:], [mean[rows] for mean in means])
    for mean in means:
        other_rows = mean.clone()
        other_rows[rows] = 0
        assert not other_rows.any()


def test_more_negatives_than_words(corpus: PreparedCorpus) -> None:
    config = config_of("sampled", softmax=SoftmaxSettings("sampled", 40))
    with pytest.raises(SettingsError, match=r"training\.softmax\.negatives is 40, but the vocabulary has 3\d words"):
        trainer_of(config, model_of(config, corpus), corpus)
