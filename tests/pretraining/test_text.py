"""How a text is counted."""

from pathlib import Path

import pytest

from spacy_elmo.pretraining import text as counting
from spacy_elmo.pretraining.text import TextSize, count_text


def test_a_tokenizer_is_asked_of_the_first_sentences_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "don't go!" is four tokens of English: do n't go !"""
    monkeypatch.setattr(counting, "_SAMPLED", 10)
    (tmp_path / "a.txt").write_text("don't go!\n" * 50 + "go\n" * 50, encoding="utf8")
    # 150 words, two tokens each
    assert count_text(str(tmp_path / "a.txt"), "en", 10**6) == TextSize(100, 300, words=3, repeated=3)
    assert count_text(str(tmp_path / "a.txt"), None, 10**6) == TextSize(100, 150, words=3, repeated=3)
    assert count_text(str(tmp_path / "a.txt"), "en", 100) == TextSize(25, 100, complete=False, words=2, repeated=2)


def test_distinct_words_are_counted_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_WORDS", 50)
    (tmp_path / "a.txt").write_text("".join(f"word{i} word{i + 1}\n" for i in range(70)), encoding="utf8")
    assert count_text(str(tmp_path / "a.txt"), None, 10**6) == TextSize(70, 140, words=50, repeated=48)


def test_words_without_blanks_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    """Each character is a word of spaCy's Chinese tokenizer."""
    characters = [chr(0x4E00 + i) for i in range(300)]
    lines = ["".join(characters[(7 * i + k) % 300] for k in range(12)) for i in range(2_000)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf8")
    assert count_text(str(tmp_path / "a.txt"), "zh", 10**6) == TextSize(2_000, 24_000, words=300, repeated=300)
