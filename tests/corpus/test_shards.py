"""One shard: its vectors are those of the biLM, its counts those of its lines, whatever was embedded before."""

from pathlib import Path

import numpy as np
import pytest

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import shards
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.reading import Item, Shard
from spacy_elmo.corpus.shards import ShardSettings, ShardWriter
from spacy_elmo.corpus.writing import Selection

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")
LONG = "x" * 60  # this biLM reads 48 bytes of a word
LINES = ["the cat sat", "", f"a {LONG} {LONG}", "", f"{LONG} is long", "\0"]
SELECTION = Selection("mean", sentence=True)


@pytest.fixture
def writer() -> ShardWriter:
    return ShardWriter(ShardSettings(BiLMChoice(BILM), "npy", SELECTION, lang=None, tokenized=True, docs=False))


def shard_of(lines: list[str]) -> Shard:
    return Shard(0, [Item("a.txt", number, "text", line.encode()) for number, line in enumerate(lines, 1)])


def test_words_of_an_earlier_shard_are_forgotten(writer: ShardWriter, tmp_path: Path) -> None:
    """Else the last bits of vectors would depend on what the cache has. Wrong vectors show that it is not read."""
    sentence = LINES[0].split()
    expected = ElmoEmbedder(BILM).embed_sentence(sentence).mean(0).mean(0)
    list(writer.bilm.embed([sentence]))
    cache = writer.bilm._engine.words
    assert len(cache) == len(sentence)
    cache._table.fill_(7.0)
    facts = writer.write_shard(shard_of(LINES[:1]), tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / facts.file), expected[None], atol=1e-5)


def test_counts(writer: ShardWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "WINDOW_TOKENS", 1)  # each line is embedded alone
    told: list[tuple[int, int]] = []
    shard = shard_of(LINES)
    facts = writer.write_shard(shard, tmp_path, lambda *done: told.append(done))
    assert (facts.documents, facts.sentences, facts.tokens) == (3, 3, 9)
    assert (facts.cut_words, facts.blank) == (3, 2)
    assert [(source, line) for source, line, _ in facts.skipped] == [("a.txt", 6)]
    assert facts.size == (tmp_path / facts.file).stat().st_size
    assert np.load(tmp_path / facts.file).shape == (3, writer.bilm.options.width)
    assert [tokens for tokens, _ in told] == [3, 3, 3, 0]
    assert sum(size for _, size in told) == shard.bytes
