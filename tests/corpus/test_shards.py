"""One shard: its vectors are those of the biLM, its counts those of its lines, whatever was embedded before."""

import io
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import embed, shards
from spacy_elmo.corpus import shards as windows
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.reading import Document, Item, Sentence, Shard
from spacy_elmo.corpus.shards import ShardSettings, ShardWriter, Windows
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


def items_of(lines: list[bytes]) -> list[Item]:
    return [Item("a.txt", number, "text", line) for number, line in enumerate(lines, 1)]


def parse(item: Item) -> Document | None:
    words = (item.data or b"").decode().split()
    return Document(item.source, item.line, [Sentence(words)]) if words else None


def windows_of(lines: list[bytes], tokens: int) -> list[tuple[list[int], int]]:
    """Numbers of the lines in each window, and its bytes, found in one simple loop."""
    found: list[tuple[list[int], int]] = [([], 0)]
    n_tokens = 0
    for number, line in enumerate(lines, 1):
        numbers, size = found[-1]
        found[-1] = ([*numbers, number] if line.split() else numbers, size + len(line))
        n_tokens += len(line.split())
        if n_tokens >= tokens:
            found.append(([], 0))
            n_tokens = 0
    return found


@pytest.mark.parametrize("read_bytes", [1, 50, 1 << 16])
@pytest.mark.parametrize("most_bytes", [1, 1 << 22])
@pytest.mark.parametrize("tokens", [1, 7, 1000])
def test_windows(read_bytes: int, most_bytes: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(windows, "_MOST_BYTES", most_bytes)
    rng = random.Random(tokens)
    lines = [b"a bc " * rng.choice([0, 0, 1, 2, 9]) + b"\n" for _ in range(300)]
    for some in (lines, lines[:1], [], [b"\n"] * 40, [*lines, b"a b c d e f g"]):
        with ThreadPoolExecutor(1) as beside:
            found = list(Windows(items_of(some), parse, tokens, beside))
        assert [([document.line for document in documents], size) for documents, size in found] == windows_of(
            some, tokens
        )


def test_the_caller_reads_and_the_executor_parses() -> None:
    """The documents of the next window are made while the caller has this one, and no window after it is read."""
    read: list[int] = []
    parsed: list[int] = []

    def items() -> Iterator[Item]:
        for item in items_of([b"a b c d\n"] * 1000):
            assert threading.current_thread() is caller
            read.append(item.line)
            yield item

    def parse_beside(item: Item) -> Document | None:
        assert threading.current_thread() is not caller
        parsed.append(item.line)
        return parse(item)

    caller = threading.current_thread()
    with ThreadPoolExecutor(1) as beside:
        for number, window in enumerate(Windows(items(), parse_beside, 400, beside), 1):
            beside.submit(int).result()  # until it has done all that it has to do
            assert len(window.documents) == (100 if number <= 10 else 0)
            assert parsed == list(range(1, min(1000, 100 * (number + 1)) + 1))
            assert len(read) <= max(400, 100 * (number + 1) + 13)  # as many as tokens at first, then an eighth more


def test_few_items_are_read_ahead_if_most_are_blank() -> None:
    """A window has the bytes of all blank lines before its end, which are too many to keep."""
    read: list[int] = []

    def items() -> Iterator[Item]:
        for item in items_of([b"\n"] * 5000 + [b"a b c\n"] + [b"\n"] * 5000):
            read.append(item.line)
            yield item

    with ThreadPoolExecutor(1) as beside:
        assert len(next(iter(Windows(items(), parse, 3, beside))).documents) == 1
    assert len(read) <= 5001 + 2 * 3


def test_errors_of_both_threads_are_raised() -> None:
    def broken() -> Iterator[Item]:
        yield from items_of([b"a"] * 3)
        raise ValueError("reading")

    def refuse(item: Item) -> Document | None:
        raise ValueError("parsing")

    makers: list[tuple[str, Callable[[ThreadPoolExecutor], Windows]]] = [
        ("reading", lambda beside: Windows(broken(), parse, 10, beside)),
        ("parsing", lambda beside: Windows(items_of([b"a"]), refuse, 10, beside)),
    ]
    makers.append(("parsing", lambda beside: Windows(broken(), refuse, 10, beside)))  # the error of the earlier item
    for message, make in makers:
        with ThreadPoolExecutor(1) as beside, pytest.raises(ValueError, match=message):
            list(make(beside))


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
