"""Words that are longer than a biLM reads, and words that it does not know."""

from pathlib import Path

import pytest

from spacy_elmo.pretraining import vocabulary as word_shares
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.vocabulary import SPECIAL, Vocabulary, cut_share, unknown_share

DEVANAGARI, UMLAUT, EMOJI = "\N{DEVANAGARI LETTER KA}", "\N{LATIN SMALL LETTER A WITH DIAERESIS}", "\N{GRINNING FACE}"
AT_THE_LIMIT = [DEVANAGARI * 16, UMLAUT * 24, EMOJI * 12, "a" * 48]  # 48 bytes each
CUT = [DEVANAGARI * 16 + "a", UMLAUT * 25, EMOJI * 13]


def test_the_bytes_of_a_word_count(tmp_path: Path) -> None:
    """Three of eight words are cut at 48 bytes, and all but one at 46."""
    (tmp_path / "a.txt").write_text("\n".join([*AT_THE_LIMIT, " ".join(CUT), "word"]), encoding="utf8")
    corpus = prepare(tmp_path / "a.txt", tmp_path / "corpus")
    assert cut_share(corpus, 50) == 3 / 8
    assert cut_share(corpus, 48) == 7 / 8
    assert cut_share(corpus, 60) == 0.0


def test_a_large_text_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten sentences the first, the fifth and the ninth are looked at: four apart are at most three sentences."""
    monkeypatch.setattr(word_shares, "SENTENCES", 3)
    lines = ["word"] * 10
    lines[4] = lines[5] = "a" * 49
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf8")
    assert cut_share(prepare(tmp_path / "a.txt", tmp_path / "corpus"), 50) == 1 / 3


def test_unknown_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("it rains\nit snows again\n<UNK> it\n", encoding="utf8")
    vocabulary = Vocabulary([*SPECIAL, "it", "rains", "again"])
    assert unknown_share(prepare(tmp_path / "a.txt", tmp_path / "corpus"), vocabulary) == pytest.approx(2 / 7)
