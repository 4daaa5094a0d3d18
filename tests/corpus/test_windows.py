"""Windows of documents: what is in them, which thread reads and which one parses, and how far they read ahead."""

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

import pytest

from spacy_elmo.corpus import embed
from spacy_elmo.corpus import shards as windows
from spacy_elmo.corpus.reading import Document, Item, Sentence
from spacy_elmo.corpus.shards import Windows

BILM = str(Path(__file__).parents[1] / "golden" / "random_a")


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
