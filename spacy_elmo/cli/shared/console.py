"""Standard output that can't show all, or is lost."""

import io
import os
import sys

from wasabi.util import NO_UTF8


def show_all() -> None:
    """Show what standard output can't encode, as some file names, by escapes like \\udce9 in place of an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def escaped(text: str) -> str:
    """The same for a text that wasabi is to print, which would put question marks in their place.

    It can print UTF-8 and ASCII alone: in other encodings all that is no ASCII is escaped.
    """
    encoding = "ascii" if NO_UTF8 else "utf8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def give_up() -> None:
    """Send standard output, which is lost, nowhere: what is written later, or kept in its buffer, fails no more."""
    try:
        lost = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or no file
        sys.stdout = io.StringIO()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, lost)
    os.close(nowhere)
