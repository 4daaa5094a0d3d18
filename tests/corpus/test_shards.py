"""One shard: its vectors are those of the biLM, its counts those of its lines; and a signal ends the reading."""

import io
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo.corpus import embed, shards
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.shards import Shard, ShardSettings, ShardWriter
from spacy_elmo.corpus.writing import Selection
from spacy_elmo.text.stream import Item

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")
LONG = "x" * 60  # this biLM reads 48 bytes of a word
LINES = [b"the cat sat", b"", f"a {LONG} {LONG}".encode(), b"", f"{LONG} is long".encode(), b"\0"]


@pytest.fixture
def writer() -> ShardWriter:
    selection = Selection("mean", sentence=True)
    return ShardWriter(ShardSettings(BiLMChoice(BILM), "npy", selection, lang=None, tokenized=True, docs=False))


def items_of(lines: list[bytes]) -> list[Item]:
    return [Item("a.txt", number, "text", line) for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize(
    ("window_tokens", "read_bytes", "windows"),
    [(1, 1, [3, 3, 3, 0]), (4, 1, [6, 3]), (7, 1, [9, 0]), (1, 1000, [9, 0]), (10, 1000, [9])],
)
def test_counts(
    writer: ShardWriter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    window_tokens: int,
    read_bytes: int,
    windows: list[int],
) -> None:
    """Of all lines, in their order. A window ends as soon as a part of the text has given it enough tokens."""
    monkeypatch.setattr(shards, "WINDOW_TOKENS", window_tokens)
    monkeypatch.setattr(shards, "_READ_BYTES", read_bytes)
    told: list[tuple[int, int]] = []
    shard = Shard(0, items_of(LINES))
    facts = writer.write_shard(shard, tmp_path, lambda *done: told.append(done))
    assert (facts.documents, facts.sentences, facts.tokens) == (3, 3, 9)
    assert (facts.cut_words, facts.blank) == (3, 2)
    assert [(source, line) for source, line, _ in facts.skipped] == [("a.txt", 6)]
    assert facts.size == (tmp_path / facts.file).stat().st_size
    layers = writer.bilm.run([line.decode().split() for line in LINES if len(line) > 1])
    np.testing.assert_allclose(np.load(tmp_path / facts.file), [each.mean((0, 1)) for each in layers], atol=1e-5)
    assert [tokens for tokens, _ in told] == windows
    assert sum(size for _, size in told) == shard.bytes


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system sends a thread no signal")
def test_a_signal_ends_the_wait_for_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe stays open. If the wait does not end, the pipe is closed after some seconds, so that this is seen."""
    read_end, write_end = os.pipe()
    asked, ended, too_late = threading.Event(), threading.Event(), threading.Event()

    class Pipe(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            asked.set()
            return len(os.read(read_end, len(buffer)))

    def stop(caller: int) -> None:
        asked.wait(60)
        time.sleep(0.2)  # until it waits
        signal.pthread_kill(caller, signal.SIGINT)
        if not ended.wait(5):
            too_late.set()
        os.close(write_end)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe())))
    stopper = threading.Thread(target=stop, args=(threading.get_ident(),))
    stopper.start()
    with pytest.raises(KeyboardInterrupt):
        embed("-", tmp_path / "a.npy", sentence=True, tokenized=True, bilm=BILM)
    ended.set()
    stopper.join()
    os.close(read_end)
    assert not too_late.is_set()
    assert not [*tmp_path.iterdir()]
