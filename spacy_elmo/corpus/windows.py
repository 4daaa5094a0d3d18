"""Divides items into windows: the documents that are sorted by length and embedded together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from .documents import Document, Item, size_of

_READ_BYTES = 1 << 16  # of items that are read at once while a window is waited for
_MOST_BYTES = 1 << 22  # of items that are read ahead; more than a window of 32,768 tokens needs


class Window(NamedTuple):
    """What is embedded together.

    documents: in their order.
    bytes: of the items that were read for them, those that were left out included.
    """

    documents: list[Document]
    bytes: int


class Windows:
    """Makes windows of items.

    The items are read in the thread that iterates: a thread that waits for standard input can't be stopped. An executor
    makes documents of them. What the next window probably needs is read before a window is yielded, so that the
    executor makes its documents while the caller embeds.

    items: in their order.
    parse: makes the document of an item; None: the item has none. It may raise.
    tokens: that a window has before it ends, after a whole document.
    beside: an executor with one thread.
    """

    def __init__(
        self, items: Iterable[Item], parse: Callable[[Item], Document | None], tokens: int, beside: Executor
    ) -> None:
        self._items, self._parse, self._tokens, self._beside = iter(items), parse, tokens, beside
        self._waiting: deque[Item] = deque()  # that were read, and have no documents yet
        self._ended = False
        self._begin()

    def __iter__(self) -> Iterator[Window]:
        """Yield the windows. The last one, which may be empty, has the bytes of all items after the last document."""
        complete = self._read(_READ_BYTES)
        while True:
            while not complete.result() and not self._ended:
                complete = self._read(_READ_BYTES)
            window = Window(self._documents, self._size)
            if not complete.result():
                yield window
                return
            self._begin()
            complete = self._read(min(_MOST_BYTES, window.bytes + window.bytes // 8))
            yield window

    def _begin(self) -> None:
        self._documents: list[Document] = []
        self._n_tokens = self._size = 0

    def _read(self, n_bytes: int) -> Future[bool]:
        """Have that many bytes of items wait, and begin to make documents of them. No window needs more items."""
        size = sum(map(size_of, self._waiting))
        while size < n_bytes and len(self._waiting) < self._tokens:
            try:
                item = next(self._items, None)
            except Exception:
                self._beside.submit(self._make_documents).result()  # the error of an earlier item comes first
                raise
            if item is None:
                self._ended = True
                break
            self._waiting.append(item)
            size += size_of(item)
        return self._beside.submit(self._make_documents)

    def _make_documents(self) -> bool:
        """Make documents of the items that wait, and return whether the window is complete."""
        while self._waiting and self._n_tokens < self._tokens:
            item = self._waiting.popleft()
            self._size += size_of(item)
            document = self._parse(item)
            if document is not None:
                self._documents.append(document)
                self._n_tokens += document.tokens
        return self._n_tokens >= self._tokens
