"""Warnings at the start of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.pretraining.config import PathSettings, ScheduleSettings, TrainingSettings
from spacy_elmo.pretraining.metrics import RunFacts, TextFacts
from spacy_elmo.pretraining.run import start_warnings

FACTS = RunFacts(TextFacts("a.txt", 9, 90, "a1"), TextFacts("b.txt", 9, 90, "b2"), 50, 0.9, 1_000, 10**7)
LONG = TrainingSettings()  # 10 ** 7 tokens are 1,953 updates of 256 * 20 tokens


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory: a text, another one, and a folder with a link to the first."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in ("a.txt", "b.txt", "texts/c.txt"):
        Path(name).write_text(f"{name}\n", encoding="utf8")
    Path("texts", "d.txt").symlink_to(Path("..", "a.txt"))


def warned(heldout: str | None, facts: RunFacts = FACTS, training: TrainingSettings = LONG) -> str:
    return "\n".join(start_warnings(PathSettings("a.txt", heldout), training, facts))


@pytest.mark.parametrize(("coverage", "warns"), [(0.499, True), (0.5, False), (None, False)])
def test_a_vocabulary_of_other_texts(coverage: float | None, warns: bool) -> None:
    told = warned("b.txt", FACTS._replace(coverage=coverage))
    assert bool(told) == warns
    assert not warns or "the vocabulary has 49.90% of the training text's tokens" in told


@pytest.mark.parametrize(
    ("coverage", "unknown", "warns"),
    [(1.0, 0.0123, True), (1.0, 0.01, False), (1.0, 0.0, False), (0.9999, 0.5, False), (None, 0.5, False)],
)
def test_a_vocabulary_of_all_words(coverage: float | None, unknown: float, warns: bool) -> None:
    told = warned("b.txt", FACTS._replace(coverage=coverage, heldout_unknown=unknown))
    assert bool(told) == warns
    assert not warns or "<UNK> is never learned, but 1.2% of the held-out words are <UNK>" in told
    assert not warns or "vocabulary.min_count to 2" in told
    tuned = PathSettings("a.txt", "b.txt", init="en_mini")  # it knows <UNK>
    facts = FACTS._replace(coverage=coverage, heldout_unknown=unknown)
    assert not start_warnings(tuned, LONG, facts)
    assert bool(start_warnings(tuned, replace(LONG, frozen_tokens=10), facts)) == warns


@pytest.mark.parametrize(("share", "warns"), [(0.0, False), (0.01, False), (0.0123, True)])
def test_words_that_are_too_long(share: float, warns: bool) -> None:
    told = warned(None, FACTS._replace(cut_share=share, max_characters=62))
    assert bool(told) == warns
    assert not warns or "1.2% of the training text's words have more than 60 bytes" in told
    assert ("max_characters_per_token, which is 62" in told) == warns


def test_words_that_are_too_long_for_a_biLM_that_is_tuned() -> None:
    told = start_warnings(PathSettings("a.txt", None, init="en_mini"), LONG, FACTS._replace(cut_share=0.3))
    assert "have more than 48 bytes" in told[0]
    assert "max_characters_per_token" not in told[0]


@pytest.mark.parametrize(
    ("heldout", "warns"),
    [(None, False), ("b.txt", False), ("gone.txt", False), ("a.txt", True), ("./*.txt", True), ("texts", True)],
)
def test_heldout_text_that_is_trained_on(heldout: str | None, warns: bool) -> None:
    assert ("a.txt is in both the training text and the held-out text" in warned(heldout)) == warns


def test_a_copy_of_the_training_text() -> None:
    facts = FACTS._replace(heldout=replace(FACTS.heldout, sha256="a1"))
    assert "the text of a.txt is in both" in warned("b.txt", facts)
    assert not warned(None, facts._replace(heldout=facts.train))


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
def test_a_run_that_is_too_short(updates: int, warmup: int, few: bool, late: bool) -> None:
    """An update of 8 streams of 5 steps, twice, reads 80 tokens."""
    training = TrainingSettings(streams=8, steps=5, accumulate=2, schedule=ScheduleSettings(warmup_steps=warmup))
    told = warned(None, FACTS._replace(total_tokens=80 * updates), training)
    assert (f"the run has {updates} updates, fewer than 200" in told) == few
    assert (f"Set training.schedule.warmup_steps, which is {warmup}" in told) == (few and 0 < warmup < updates)
    assert (f"warmup_steps is {warmup}, and the run has {updates} updates" in told) == late
    assert (f"Set warmup_steps to {updates // 10}, a tenth of" in told) == late
    for name in ("training.streams", "training.epochs") if few or late else ():
        assert name in told
    tokens = replace(training, total_tokens=80 * updates)
    assert ("training.total_tokens" in warned(None, FACTS._replace(total_tokens=80 * updates), tokens)) == bool(told)


@pytest.mark.parametrize(("frozen", "warns"), [(0, False), (10**7 - 1, False), (10**7, True), (2 * 10**7, True)])
def test_a_biLM_that_stays_frozen(frozen: int, warns: bool) -> None:
    told = warned("b.txt", training=replace(LONG, frozen_tokens=frozen))
    assert bool(told) == warns
    assert not warns or "the run has 10,000,000 tokens: the biLM will not change" in told
