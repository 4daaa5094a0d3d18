"""A bar that counts sentences, for a terminal or for a log file."""

import sys
from typing import Literal, TextIO

from tqdm import tqdm

# True: a bar, if stderr is a terminal; "lines": each state of the bar is a line, for a log file
BarSetting = bool | Literal["lines"]
SECONDS = 10.0  # from one line to the next, as in AllenNLP's Tqdm.set_slower_interval


class Lines:
    """Writes each state of a bar as a line, which tqdm would write over the one before.

    file: where the lines go.
    """

    def __init__(self, file: TextIO) -> None:
        self.file, self._last = file, ""

    def write(self, text: str) -> None:
        """Write a text without carriage returns, and nothing if no more than blanks remain, or it was the last one."""
        text = text.replace("\r", "").rstrip()
        if text and text != self._last:
            self.file.write(text + "\n")
            self._last = text

    def flush(self) -> None:
        """Flush the file."""
        self.file.flush()


def bar_of(sentences: int, progress: BarSetting) -> "tqdm[None]":
    """Return a bar on stderr.

    sentences: number of sentences to count.
    progress: how the bar is shown.
    """
    if progress == "lines" and sys.stderr:
        return tqdm(total=sentences, unit=" sentences", file=Lines(sys.stderr), mininterval=SECONDS)
    # None: shown on a terminal only, since in a file each of its states would stay. Without stderr it is None
    return tqdm(total=sentences, unit=" sentences", disable=None if progress and sys.stderr else True)
