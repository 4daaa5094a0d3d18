"""A run as a whole: how it begins, is stopped, killed and resumed to the same bits, diverges, and what it warns of."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_run import STEPS, STREAMS, config_of, run, write_text

from spacy_elmo.errors import CheckpointError, SettingsError, WeightsError
from spacy_elmo.formats.atomic import folder_lock
from spacy_elmo.pretraining import evaluating
from spacy_elmo.pretraining.checkpoint import Checkpoints
from spacy_elmo.pretraining.config import (
    EvaluationSettings,
    PathSettings,
    PretrainConfig,
    ScheduleSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.folder import Run
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.run import start_warnings
from spacy_elmo.pretraining.scoring import Score
from spacy_elmo.pretraining.trainer import Trainer
from spacy_elmo.pretraining.vocabulary import Vocabulary


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(tmp_path: Path) -> PretrainConfig:
    return config_of(write_text(tmp_path / "text.txt"))


def checkpoint(output: Path) -> tuple[int, dict[str, Any]]:
    found = Checkpoints(output / "checkpoints").latest(pytest.fail)
    assert found is not None
    return found


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


# How it begins


def test_files_that_are_no_checkpoints_do_not_make_it_resumed(ended: Path, tmp_path: Path) -> None:
    """The weights would be what is in the memory."""
    (tmp_path / "out" / "checkpoints").mkdir(parents=True)
    for file in (ended / "checkpoints").iterdir():
        shutil.copy(file, tmp_path / "out" / "checkpoints" / f"kept-{file.name}")
    run(config_of(ended.parent / "text.txt"), tmp_path / "out")
    assert model_files(tmp_path / "out") == model_files(ended)


def test_a_rank_without_torchrun_does_not_open_the_lock(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    (tmp_path / "out").mkdir()
    with (
        folder_lock(tmp_path / "out", CheckpointError),
        pytest.raises(CheckpointError, match="another run writes there"),
    ):
        run(config, tmp_path / "out")


def test_more_memory_than_there_is(config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Trainer) -> float:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(Trainer, "step", full)
    message = r"there is not enough memory \(Unable to allocate 9 TiB\)\. Lower training\.streams, which is 4"
    with pytest.raises(SettingsError, match=message):
        run(config, tmp_path / "out")


@pytest.mark.parametrize(("min_count", "warns"), [(1, True), (None, False)])
def test_unknown_words_of_the_heldout_text_are_told(tmp_path: Path, min_count: int | None, warns: bool) -> None:
    """One of four held-out words is not in the training text. With null, a word that occurs once is left out of it."""
    (tmp_path / "text.txt").write_text("it rains in town\nit snows in town\n" * 20 + "it thaws\n", encoding="utf8")
    (tmp_path / "heldout.txt").write_text("it hails in town\n", encoding="utf8")
    told: list[str] = []

    class Start(Reporter):
        def start(self, run: Run, warnings: Sequence[str]) -> None:
            told.extend(warnings)

    config = config_of(tmp_path / "text.txt", paths={"heldout": tmp_path / "heldout.txt"})
    run(replace(config, vocabulary=VocabularySettings(30, min_count)), tmp_path / "out", Start())
    assert any("<UNK> is never learned, but 25.0% of the held-out words are <UNK>" in text for text in told) == warns


# How it goes on


@pytest.mark.slow
@pytest.mark.parametrize("with_vocabulary", [False, True])
def test_it_goes_on_without_its_text_and_init(config: PretrainConfig, tmp_path: Path, with_vocabulary: bool) -> None:
    """And ends in the same bits as one that has them."""
    run(config, tmp_path / "before")
    shutil.copytree(tmp_path / "before" / "model-last", tmp_path / "init")
    paths = {"init": str(tmp_path / "init")}
    if with_vocabulary:
        shutil.copy(tmp_path / "init" / "vocabulary.txt", tmp_path / "words.txt")
        paths["vocabulary"] = str(tmp_path / "words.txt")
    tuning = longer(replace(config, paths=replace(config.paths, **paths)), 2)
    run(tuning, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    run(longer(tuning, 6), tmp_path / "copy")
    for gone in ("text.txt", "words.txt"):
        (tmp_path / gone).unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "init")
    run(longer(tuning, 6), tmp_path / "out")
    assert checkpoint(tmp_path / "out")[0] == 6
    assert model_files(tmp_path / "out") == model_files(tmp_path / "copy")


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
@pytest.mark.parametrize("kind", ["infinite", "nan", "refused"])
def test_a_perplexity_that_is_not_finite(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Models and checkpoints of before stay as they are: exp overflows beyond 709."""
    run(longer(config, 2), tmp_path / "out")
    before, metrics = model_files(tmp_path / "out"), (tmp_path / "out" / "metrics.jsonl").read_bytes()
    assert json.loads(metrics)["step"] == 2

    def refuse(model: object, sentences: object, **_: object) -> Score:
        raise WeightsError("the loss of a sentence is not finite")

    bad = {"infinite": scores(710.0), "nan": scores(float("nan")), "refused": refuse}[kind]
    monkeypatch.setattr(evaluating, "score_text", bad)
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


@pytest.mark.parametrize(("times", "told"), [(1.9, 0), (2.1, 1)])
def test_a_perplexity_far_above_the_number_of_words_is_told_once(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: float, told: int
) -> None:
    """The run goes on: both of its evaluations after an update have that perplexity."""
    words = 0

    def score(model: LanguageModel, sentences: object, **_: object) -> Score:
        nonlocal words
        words = len(model.words)
        return scores(math.log(times * words))(model, sentences)

    monkeypatch.setattr(evaluating, "score_text", score)
    reporter = Messages()
    assert run(config, tmp_path / "out", reporter).best == pytest.approx(times * words)
    found = [text for text in reporter.texts if "equal probabilities" in text]
    assert len(found) == told
    if told:
        assert f"after step 2 is {times * words:,.0f}, worse than the {words:,} of" in found[0]


# Checkpoints whose SHA-256 is right, and whose contents are not


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step", np.array(-4), r"\(step is -4\)"),
        ("step", np.array(3), r"the file is of step 4, its contents of 3"),
        ("step", np.array(4.0), r"step is float64 of shape \(\), expected int64"),
        ("step", np.array([4]), r"step is int64 of shape \(1,\)"),
        ("streams/position", np.full(STREAMS, 10**6), "the stream 0 at epoch 0, sentence 1000000"),
        ("streams/epoch", np.array([0, 0, -1, 0]), "the stream 2 at epoch -1"),
        ("state/h", None, r"state/h is complex64"),
        ("run", np.array([255, 254], np.uint8), "it is of another run"),
        ("run", np.array(3.0), "it is of another run"),
        ("progress/more", np.array(1.0), "progress/more is unexpected"),
        ("optimizer/0/exp_avg", np.zeros((2, 2), np.float32), r"optimizer/0/exp_avg is float32 of shape \(2, 2\)"),
        ("optimizer/99/exp_avg", np.zeros(2, np.float32), "optimizer/99/exp_avg is unexpected"),
        ("optimizer/x/y/z", np.zeros(2, np.float32), "optimizer/x/y/z is unexpected"),
    ],
)
def test_contents_that_can_not_be(
    ended: Path, tmp_path: Path, name: str, value: np.ndarray | None, message: str
) -> None:
    shutil.copytree(ended, tmp_path / "out")
    step, arrays = checkpoint(tmp_path / "out")
    assert step == 4
    arrays[name] = arrays[name].astype(np.complex64) if value is None else value
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    Checkpoints(tmp_path / "out" / "checkpoints").write(step, arrays)
    with pytest.raises(CheckpointError, match=message):
        run(config_of(ended.parent / "text.txt", 6), tmp_path / "out")


def test_parts_that_are_missing(ended: Path, tmp_path: Path) -> None:
    shutil.copytree(ended, tmp_path / "out")
    step, arrays = checkpoint(tmp_path / "out")
    for name in ("run", "step", "progress/best", "streams/offset", "optimizer/0/exp_avg"):
        shutil.rmtree(tmp_path / "out" / "checkpoints")
        kept = {each: array for each, array in arrays.items() if each != name}
        Checkpoints(tmp_path / "out" / "checkpoints").write(step, kept)
        with pytest.raises(CheckpointError, match="not a checkpoint of this run"):
            run(config_of(ended.parent / "text.txt", 6), tmp_path / "out")


def test_a_finished_run_says_so_when_it_is_given_again(config: PretrainConfig, tmp_path: Path) -> None:
    first, again = Messages(), Messages()
    run(config, tmp_path / "out", first)
    assert any(text.startswith("scoring all") for text in first.texts)
    assert not any("finished before" in text for text in first.texts)
    run(config, tmp_path / "out", again)
    assert again.texts == ["finished before: training.epochs or training.total_tokens would make it longer"]


def test_a_run_that_patience_ended_says_so_when_it_is_given_again(
    config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating.Evaluator, "evaluate", lambda *arguments: 5.0)  # never better than the first
    patient = replace(
        config, training=replace(config.training, patience=1), evaluation=replace(config.evaluation, every=1)
    )
    first, again = Messages(), Messages()
    run(patient, tmp_path / "out", first)
    assert checkpoint(tmp_path / "out")[0] == 2
    assert any(text.startswith("scoring all") for text in first.texts)
    run(patient, tmp_path / "out", again)
    assert again.texts == ["finished before: training.patience would make it longer"]
    more = replace(patient, training=replace(patient.training, patience=2))
    run(more, tmp_path / "out", again)
    assert checkpoint(tmp_path / "out")[0] == 3
    enough = replace(patient, training=replace(patient.training, patience=3))
    run(enough, tmp_path / "both")
    run(enough, tmp_path / "both", again)
    assert checkpoint(tmp_path / "both")[0] == 4
    assert again.texts[-1] == "finished before: training.epochs or training.total_tokens would make it longer"


# Warnings


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


def changed(run: Run, paths: dict[str, Any] | None = None, **training: Any) -> Run:
    """The same run with other settings."""
    config = run.config
    settings = replace(config.training, **training)
    return replace(run, config=replace(config, paths=replace(config.paths, **paths or {}), training=settings))


@pytest.mark.parametrize(("coverage", "warns"), [(0.4999, True), (0.5, False), (None, False)])
def test_a_vocabulary_of_other_texts(long_run: Run, coverage: float | None, warns: bool) -> None:
    told = start_warnings(replace(long_run, vocabulary=vocabulary(coverage)))
    assert len(told) == warns
    assert not warns or "the vocabulary has 49.99% of the training text's tokens" in told[0]


@pytest.mark.parametrize(
    ("coverage", "unknown", "warns"),
    [(1.0, 2, True), (1.0, 1, False), (0.9999, 50, False), (None, 50, False)],
)
def test_a_vocabulary_of_all_words(long_run: Run, coverage: float | None, unknown: int, warns: bool) -> None:
    Path("c.txt").write_text("a " * (100 - unknown) + "b " * unknown + "\n", encoding="utf8")
    run = replace(long_run, heldout=prepare("c.txt", "c"), vocabulary=vocabulary(coverage))
    told = start_warnings(run)
    assert len(told) == warns
    assert not warns or "<UNK> is never learned, but 2.0% of the held-out words are <UNK>" in told[0]
    assert not warns or "vocabulary.min_count to 2" in told[0]
    tuned = changed(run, {"init": "en_mini"})  # it knows <UNK>
    assert not start_warnings(tuned)
    assert len(start_warnings(changed(tuned, frozen_tokens=10))) == warns


@pytest.mark.parametrize(("too_long", "warns"), [(0, False), (1, False), (2, True)])
def test_words_that_are_too_long(long_run: Run, too_long: int, warns: bool) -> None:
    Path("c.txt").write_text("é" * 24 + " a" * (99 - too_long) + (" a" + "é" * 24) * too_long + "\n", encoding="utf8")
    run = replace(long_run, train=prepare("c.txt", "c"))
    for init in (None, "en_mini"):  # a biLM that is tuned keeps its sizes
        told = start_warnings(changed(run, {"init": init}))
        assert len(told) == warns
        assert not warns or "2.0% of the training text's words have more than 48 bytes" in told[0]
        assert any("max_characters_per_token, which is 50" in text for text in told) == (warns and init is None)


@pytest.mark.parametrize(
    ("heldout", "warns"),
    [(None, False), ("b.txt", False), ("gone.txt", False), ("a.txt", True), ("./*.txt", True), ("texts", True)],
)
def test_heldout_text_that_is_trained_on(long_run: Run, heldout: str | None, warns: bool) -> None:
    told = "\n".join(start_warnings(changed(long_run, {"heldout": heldout})))
    assert ("a.txt is in both the training text and the held-out text" in told) == warns


def test_a_copy_of_the_training_text(long_run: Run) -> None:
    same = replace(long_run, heldout=long_run.train)
    assert "the text of a.txt is in both" in "\n".join(start_warnings(same))
    assert not start_warnings(changed(same, {"heldout": None}))


@pytest.mark.parametrize(
    ("updates", "warmup", "few", "late"),
    [
        (83, 100, True, True),
        (199, 198, True, False),
        (200, 200, False, True),
        (200, 199, False, False),
        (1, 0, True, False),
    ],
)
def test_a_run_that_is_too_short(long_run: Run, updates: int, warmup: int, few: bool, late: bool) -> None:
    """An update of 8 streams of 5 steps, twice, reads 80 tokens."""
    schedule = ScheduleSettings(warmup_steps=warmup)
    run = replace(long_run, total_tokens=80 * updates)
    run = changed(run, streams=8, steps=5, accumulate=2, schedule=schedule)
    told = "\n".join(start_warnings(run))
    assert (f"the run has {updates} updates, fewer than 200" in told) == few
    assert (f"Set training.schedule.warmup_steps, which is {warmup}" in told) == (few and 0 < warmup < updates)
    assert (f"warmup_steps is {warmup}, and the run has {updates} updates" in told) == late
    assert (f"Set warmup_steps to {updates // 10}, a tenth of" in told) == late
    for name in ("training.streams", "training.epochs") if few or late else ():
        assert name in told
    told = "\n".join(start_warnings(changed(run, total_tokens=80 * updates)))
    assert ("training.total_tokens" in told) == bool(told)


@pytest.mark.parametrize(("frozen", "warns"), [(0, False), (10**7 - 1, False), (10**7, True), (2 * 10**7, True)])
def test_a_biLM_that_stays_frozen(long_run: Run, frozen: int, warns: bool) -> None:
    told = start_warnings(changed(long_run, {"init": "en_mini"}, frozen_tokens=frozen))
    assert len(told) == warns
    assert not warns or "the run has 10,000,000 tokens: the biLM will not change" in told[0]
