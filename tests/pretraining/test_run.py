"""A run as a whole: how it begins, is stopped, killed and resumed to the same bits, diverges, and what it warns of."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_run import STEPS, STREAMS, config_of, run, write_text
from small_run import last_checkpoint as checkpoint

from spacy_elmo.errors import CheckpointError, WeightsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining import run as loop
from spacy_elmo.pretraining.checkpoint import write_checkpoint
from spacy_elmo.pretraining.config import EvaluationSettings, PathSettings, PretrainConfig, ScheduleSettings
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.folder import Run
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.run import readers_told, start_warnings
from spacy_elmo.pretraining.scoring import Score
from spacy_elmo.pretraining.vocabulary import Vocabulary


@pytest.fixture
def config(tmp_path: Path) -> PretrainConfig:
    return config_of(write_text(tmp_path / "text.txt"))


def model_files(output: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (output / "model-last").iterdir() if p.name != "README.md"}


def longer(config: PretrainConfig, updates: int) -> PretrainConfig:
    return replace(config, training=replace(config.training, total_tokens=updates * STREAMS * STEPS))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four updates."""
    folder = tmp_path_factory.mktemp("ended")
    run(config_of(write_text(folder / "text.txt")), folder / "out")
    return folder / "out"


# Divergence


def scores(loss: float) -> Callable[..., Score]:
    return lambda model, sentences, **_: Score(5, 35, 0, (40 * loss, 40 * loss), (0.0, 0.0))


def test_a_loss_that_is_not_finite(config: PretrainConfig, tmp_path: Path) -> None:
    optimizer = replace(config.training.optimizer, learning_rate=1e38)
    diverging = replace(config, training=replace(config.training, optimizer=optimizer))
    diverging = replace(diverging, evaluation=EvaluationSettings(100, 100, 5))
    with pytest.raises(CheckpointError, match=r"step \d is not finite: .* lower training\.optimizer\.learning_rate\."):
        run(diverging, tmp_path / "out")
    assert not (tmp_path / "out" / "model-last").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["infinite", "refused"])
def test_a_perplexity_that_is_not_finite(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Models and checkpoints of before stay as they are: exp overflows beyond 709."""
    run(longer(config, 2), tmp_path / "out")
    before, metrics = model_files(tmp_path / "out"), (tmp_path / "out" / "metrics.jsonl").read_bytes()
    assert json.loads(metrics)["step"] == 2

    def refuse(model: object, sentences: object, **_: object) -> Score:
        raise WeightsError("the loss of a sentence is not finite")

    bad = {"infinite": scores(710.0), "refused": refuse}[kind]
    monkeypatch.setattr(loop, "score_text", bad)
    message = r"^the held-out perplexity after step 4 is not finite: training has diverged"
    with pytest.raises(CheckpointError, match=message):
        run(longer(config, 4), tmp_path / "out")
    assert checkpoint(tmp_path / "out")[0] == 2
    assert model_files(tmp_path / "out") == before
    assert (tmp_path / "out" / "metrics.jsonl").read_bytes() == metrics


class Messages(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)


def test_a_perplexity_far_above_the_number_of_words_is_told_once(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on. It has 30 words, and the perplexities of its three evaluations after an update are these."""
    perplexities = iter([59.0, 61.0, 62.0])
    monkeypatch.setattr(loop, "score_text", lambda *_, **__: scores(math.log(next(perplexities)))(None, None))
    reporter = Messages()
    every = replace(longer(config, 3), evaluation=EvaluationSettings(1, 9, 100))
    run(every, tmp_path / "out", reporter)
    [told] = [text for text in reporter.texts if "equal probabilities" in text]
    assert "after step 2 is 61, worse than the 30 of" in told


# Checkpoints whose SHA-256 is right, and whose contents are not


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step", np.array(4.0), r"step is float64 of shape \(\), expected int64"),
        ("streams/position", np.full(STREAMS, 10**6), "the stream 0 at epoch 0, sentence 1000000"),
        ("streams/epoch", np.array([0, 0, -1, 0]), "the stream 2 at epoch -1"),
        ("state/h", None, r"state/h is complex64"),
        ("run", np.array([255, 254], np.uint8), "it is of another run"),
        ("progress/more", np.array(1.0), "progress/more is unexpected"),
        ("optimizer/0/exp_avg", np.zeros((2, 2), np.float32), r"optimizer/0/exp_avg is float32 of shape \(2, 2\)"),
        ("optimizer/x/y/z", np.zeros(2, np.float32), "optimizer/x/y/z is unexpected"),
        ("run", ..., r"not a checkpoint of this run \('run' is missing\)"),
        ("progress/best", ..., "'progress/best' is missing"),
    ],
)
def test_contents_that_can_not_be(ended: Path, tmp_path: Path, name: str, value: Any, message: str) -> None:
    shutil.copytree(ended, tmp_path / "out")
    step, arrays = checkpoint(tmp_path / "out")
    assert step == 4
    arrays[name] = arrays[name].astype(np.complex64) if value is None else value
    if value is ...:
        del arrays[name]
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    write_checkpoint(tmp_path / "out" / "checkpoints", step, arrays)
    with pytest.raises(CheckpointError, match=message):
        run(config_of(ended.parent / "text.txt", 6), tmp_path / "out")


@pytest.mark.slow
def test_a_finished_run_says_so_when_it_is_given_again(ended: Path) -> None:
    again = Messages()
    run(config_of(ended.parent / "text.txt"), ended, again)
    assert again.texts == ["finished before: training.epochs or training.total_tokens would make it longer"]


def test_a_run_that_patience_ended_says_so_when_it_is_given_again(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop._Loop, "_evaluation", lambda self: 5.0)  # never better than the first
    patient = replace(
        config, training=replace(config.training, patience=1), evaluation=replace(config.evaluation, every=1)
    )
    first, again = Messages(), Messages()
    run(patient, tmp_path / "out", first)
    assert checkpoint(tmp_path / "out")[0] == 2
    assert first.texts[0] == f"reading {patient.paths.train}"
    assert any(text.startswith("scoring all") for text in first.texts)
    run(patient, tmp_path / "out", again)
    assert again.texts == ["finished before: training.patience would make it longer"]
    run(replace(patient, training=replace(patient.training, patience=2)), tmp_path / "out", again)
    assert checkpoint(tmp_path / "out")[0] == 3


# Warnings


LONG = "a" + "é" * 24 + " "


@pytest.fixture
def long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run without warnings: 10 ** 7 tokens are 1,953 updates of 256 * 20 tokens. Its biLM reads 48 bytes of a word.

    In the working directory are its texts a.txt and b.txt, and a folder with a link to the first.
    """
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    Path("a.txt").write_text("a " * 98 + "é" * 24 + " é\n", encoding="utf8")
    Path("b.txt").write_text("a " * 99 + "b\n", encoding="utf8")
    Path("texts", "c.txt").write_text("c\n", encoding="utf8")
    Path("texts", "d.txt").symlink_to(Path("..", "a.txt"))
    train, heldout = prepare("a.txt", "train"), prepare("b.txt", "heldout")
    config = PretrainConfig(PathSettings("a.txt", "b.txt"), config_of("a.txt").bilm)
    config = replace(config, bilm=replace(config.bilm, max_characters=50))
    return Run(config, train, heldout, vocabulary(0.9), "", False, None, total_tokens=10**7)


def vocabulary(coverage: float | None) -> Vocabulary:
    """One with the word a, and counts of this coverage."""
    known = None if coverage is None else round(10_000 * coverage)
    words = ["<S>", "</S>", "<UNK>", "a"]
    return Vocabulary(words, None if known is None else np.array([1, 1, 10_000 - known, known]))


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"coverage": 0.4999}, "the vocabulary has 49.99% of the training text's tokens"),
        ({"coverage": 0.5}, None),
        ({"coverage": None}, None),
        ({"coverage": 1.0, "heldout": "a " * 98 + "b b"}, "<UNK> is never learned, but 2.0% of the held-out words are"),
        ({"coverage": 1.0, "heldout": "a " * 98 + "b <UNK>"}, "but 2.0% of the held-out words are"),
        ({"coverage": 1.0, "heldout": "a " * 99 + "b"}, None),
        ({"coverage": 0.9999, "heldout": "a b"}, None),
        ({"coverage": 1.0, "heldout": "a b", "init": "en_core"}, None),  # it knows <UNK>
        ({"coverage": 1.0, "heldout": "a b", "init": "en_core", "frozen_tokens": 10}, "<UNK> is never learned, but 50"),
        ({"train": "a " * 98 + LONG * 2}, "2.0% of .* have more than 48 bytes.* reads the first 48:"),
        ({"train": "a " * 98 + LONG * 2}, "max_characters_per_token, which is 50"),
        ({"train": "a " * 98 + LONG * 2, "init": "en_core"}, r"separate the words first\.$"),  # its sizes stay
        ({"train": "a " * 99 + LONG}, None),
        ({"heldout_path": None}, None),
        ({"heldout_path": "gone.txt"}, None),
        ({"heldout_path": "./*.txt"}, "a.txt is in both the training text and the held-out text"),
        ({"heldout_path": "texts"}, "a.txt is in both the training text and the held-out text"),
        (
            {"heldout": "a\n" * 20, "repeated": 1},
            "^1 of the 20 held-out sentences are in the training text too, word for",
        ),
        ({"heldout": "a\n" * 21, "repeated": 1}, None),
        ({"heldout_path": "./*.txt", "repeated": 1}, "a.txt is in both the training text and the held-out text"),
        ({"init": "en_core", "frozen_tokens": 10**7 - 1}, None),
        ({"init": "en_core", "frozen_tokens": 10**7}, "the run has 10,000,000 tokens: the biLM will not change"),
        ({"updates": 83, "warmup": 83}, r"83 updates, fewer than 200.*training\.epochs, which is 5\.0\.$"),
        ({"updates": 83, "warmup": 83}, r"warmup_steps is 83, and the run has 83 updates\. Set it to 8, a tenth"),
        ({"updates": 199, "warmup": 198}, "warmup_steps is 198, and the run has 199 updates"),
        ({"updates": 200, "warmup": 200}, "warmup_steps is 200, and the run has 200 updates"),
        ({"updates": 200, "warmup": 199}, None),
        ({"updates": 1, "warmup": 0, "total_tokens": 80}, r"raise training\.total_tokens, which is 80\.$"),
        ({"updates": 1, "warmup": 0, "resumed": True}, r"learn little\. Raise training\.epochs, which is 5\.0\.$"),
    ],
)
def test_warnings(long_run: Run, changes: dict[str, Any], warning: str | None) -> None:
    """An update of 8 streams of 5 steps, twice, reads 80 tokens."""
    run, config = long_run, long_run.config
    for name in ("train", "heldout"):
        if name in changes:
            Path("new.txt").write_text(changes[name] + "\n", encoding="utf8")
            run = replace(run, **{name: prepare("new.txt", f"new_{name}")})
    if "coverage" in changes:
        run = replace(run, vocabulary=vocabulary(changes["coverage"]))
    paths = replace(config.paths, init=changes.get("init"), heldout=changes.get("heldout_path", "b.txt"))
    training = {name: changes[name] for name in ("frozen_tokens", "total_tokens") if name in changes}
    run = replace(run, repeated=changes.get("repeated"), resumed=changes.get("resumed", False))
    if "updates" in changes:
        run = replace(run, total_tokens=80 * changes["updates"])
        training |= {"streams": 8, "steps": 5, "accumulate": 2}
        training["schedule"] = ScheduleSettings(warmup_steps=changes["warmup"])
    config = replace(config, paths=paths, training=replace(config.training, **training))
    told = start_warnings(replace(run, config=config))
    assert bool(told) == (warning is not None)
    assert warning is None or any(re.search(warning, text) for text in told)


@pytest.mark.slow
def test_sentences_that_are_repeated_are_told_again_when_the_run_goes_on(tmp_path: Path) -> None:
    text, told = write_text(tmp_path / "text.txt"), []
    lines = text.read_text(encoding="utf8").splitlines()
    text.write_text("\n".join([*lines[:54], lines[3], "new words", lines[7], "new words", "others", lines[3]]) + "\n")

    class Told(Reporter):
        def start(self, run: Run, warnings: Sequence[str]) -> None:
            told.append([warning for warning in warnings if "word for word" in warning])

    for updates in (4, 6):
        run(longer(config_of(text), updates), tmp_path / "out", Told())
        text.unlink(missing_ok=True)
        assert len(told[-1]) == 1
        assert told[-1][0].startswith("3 of the 6 held-out sentences are in the training text too")
        for name in ("model-best", "model-last"):
            assert "Of all 6 held-out sentences, 3 (50.00%)" in (tmp_path / "out" / name / "README.md").read_text()


def test_the_line_of_compatible_programs() -> None:
    options = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 50, 20, 6, 2, 3.0, 3.0, True)
    assert readers_told(options) == "this package, AllenNLP, bilm-tf"
    told = readers_told(replace(options, dim=6, use_skip_connections=False))
    assert told.startswith("this package, bilm-tf; not AllenNLP: no projection in the LSTMs")
    assert told.endswith(", no skip connections (lstm.use_skip_connections)")
