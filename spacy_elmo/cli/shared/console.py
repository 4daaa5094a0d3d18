"""Standard output that can't encode some characters, or that is closed."""

import errno
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from unicodedata import category

from wasabi.util import NO_UTF8

_LOST = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def show_all() -> None:
    """Make standard output print characters that it can't encode as escapes like \\udce9, instead of an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def escaped(text: str) -> str:
    """Return a text with escapes for characters that wasabi can't print, and for those that control a terminal.

    wasabi prints UTF-8 or ASCII only, and question marks for the rest. With any other encoding all characters outside
    ASCII are escaped. New lines stay.
    """
    encoding = "ascii" if NO_UTF8 else "utf8"
    printable = "".join(c if category(c) != "Cc" or c == "\n" else ascii(c)[1:-1] for c in text)
    return printable.encode(encoding, "backslashreplace").decode(encoding)


def print_utf8(text: str) -> None:
    """Print a text in UTF-8, as it would be in a file, whatever the encoding of standard output."""
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
    else:  # a program has put a StringIO there
        sys.stdout.write(text)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII if standard output is not UTF-8, as in a pipe on Windows."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    print(json.dumps(value, indent=2, ensure_ascii=not encoding.lower().startswith("utf")))


def quoted(path: Path) -> str:
    """Return a path as a command that is shown must have it: in quotes if it has blanks or other special signs."""
    if os.name == "nt":
        return subprocess.list2cmdline([str(path)])
    return shlex.quote(str(path))


def is_of_output(error: BaseException) -> bool:
    """Whether an error says that standard output can't be written: its disk is full, or its reader has ended.

    Errors of other files are ElmoErrors, or name the file.
    """
    return isinstance(error, OSError) and error.filename is None and error.errno in _LOST


def give_up() -> None:
    """Redirect a closed standard output to nowhere, so that later writes and its buffer raise no errors."""
    try:
        lost = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or no file
        sys.stdout = io.StringIO()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, lost)
    os.close(nowhere)
