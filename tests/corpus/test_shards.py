"""One shard: its vectors are those of the biLM, its counts those of its lines, whatever was embedded before."""

import io
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo.corpus import embed, shards
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.shards import Shard, ShardSettings, ShardWriter, windows
from spacy_elmo.corpus.writing import Selection
from spacy_elmo.text.stream import Document, Item

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")
LONG = "x" * 60  # this biLM reads 48 bytes of a word
LINES = [b"the cat sat", b"", f"a {LONG} {LONG}".encode(), b"", f"{LONG} is long".encode(), b"\0"]


@pytest.fixture
def writer() -> ShardWriter:
    selection = Selection("mean", sentence=True)
    return ShardWriter(ShardSettings(BiLMChoice(BILM), "npy", selection, lang=None, tokenized=True, docs=False))


def items_of(lines: list[bytes]) -> list[Item]:
    return [Item("a.txt", number, "text", line) for number, line in enumerate(lines, 1)]


def test_counts(writer: ShardWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "WINDOW_TOKENS", 1)  # each line is embedded alone
    monkeypatch.setattr(shards, "_READ_BYTES", 1)
    told: list[tuple[int, int]] = []
    shard = Shard(0, items_of(LINES))
    facts = writer.write_shard(shard, tmp_path, lambda *done: told.append(done))
    assert (facts.documents, facts.sentences, facts.tokens) == (3, 3, 9)
    assert (facts.cut_words, facts.blank) == (3, 2)
    assert [(source, line) for source, line, _ in facts.skipped] == [("a.txt", 6)]
    assert facts.size == (tmp_path / facts.file).stat().st_size
    assert np.load(tmp_path / facts.file).shape == (3, writer.bilm.options.width)
    assert [tokens for tokens, _ in told] == [3, 3, 3, 0]
    assert sum(size for _, size in told) == shard.bytes


def parse(item: Item) -> Document | None:
    words = (item.data or b"").decode().split()
    return Document(item.source, item.line, [words]) if words else None


@pytest.mark.parametrize("tokens", [1, 7, 1000])
@pytest.mark.parametrize("read_bytes", [1, 50, 1 << 16])
def test_windows(read_bytes: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All documents come once and in order, and each window ends as soon as a part has given it enough tokens."""
    monkeypatch.setattr(shards, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(shards, "WINDOW_TOKENS", tokens)
    rng = random.Random(tokens)
    lines = [b"a bc " * rng.choice([0, 0, 1, 2, 9]) + b"\n" for _ in range(300)]
    for some in (lines, lines[:1], [], [b"\n"] * 40, [*lines, b"a b c d e f g"]):
        with ThreadPoolExecutor(1) as beside:
            found = list(windows(items_of(some), parse, beside))
        assert [document.line for documents, _ in found for document in documents] == [
            number for number, line in enumerate(some, 1) if line.split()
        ]
        assert sum(size for _, size in found) == sum(map(len, some))
        counts = [[document.tokens for document in documents] for documents, _ in found]
        assert all(sum(each) >= tokens for each in counts[:-1])
        if read_bytes == 1:  # a part is a line
            assert all(sum(each[:-1]) < tokens for each in counts)


@pytest.mark.parametrize("where", ["reading", "parsing"])
def test_errors_of_both_threads_are_raised(where: str) -> None:
    def broken() -> Iterator[Item]:
        yield from items_of([b"a"] * 3)
        raise ValueError("reading")

    def refuse(item: Item) -> Document | None:
        raise ValueError("parsing")

    made = {"reading": (broken(), parse), "parsing": (items_of([b"a"]), refuse)}
    with ThreadPoolExecutor(1) as beside, pytest.raises(ValueError, match=where):
        list(windows(*made[where], beside))


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
