"""Warnings at the start of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.pretraining.run.facts import RunFacts, TextFacts
from spacy_elmo.pretraining.run.start_warnings import start_warnings
from spacy_elmo.pretraining.settings.sections import PathSettings

FACTS = RunFacts(TextFacts("a.txt", 9, 90, "a1"), TextFacts("b.txt", 9, 90, "b2"), 50, 0.9, 1_000, 100)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory: a text, another one, and a folder with a link to the first."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in ("a.txt", "b.txt", "texts/c.txt"):
        Path(name).write_text(f"{name}\n", encoding="utf8")
    Path("texts", "d.txt").symlink_to(Path("..", "a.txt"))


def warned(heldout: str | None, facts: RunFacts = FACTS) -> str:
    return "\n".join(start_warnings(PathSettings("a.txt", heldout), facts))


@pytest.mark.parametrize(("coverage", "warns"), [(0.499, True), (0.5, False), (None, False)])
def test_a_vocabulary_of_other_texts(coverage: float | None, warns: bool) -> None:
    told = warned("b.txt", FACTS._replace(coverage=coverage))
    assert bool(told) == warns
    assert not warns or "the vocabulary has 49.90% of the training text's tokens" in told


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
