"""Command lines: help with defaults, and values that are checked before anything is measured."""

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from spacy_elmo.modules.loading import Precision

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
SIZES = ("original", "small", "midi", "mini")  # of networks, see model_sizes.options_of


class _Help(argparse.RawDescriptionHelpFormatter):
    """The description as it is written, and after each argument's help its default."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        default = action.default
        if default is None or isinstance(default, bool) or default in ([], argparse.SUPPRESS):
            return action.help
        separator = "," if action.nargs is None else " "
        text = separator.join(map(str, default)) if isinstance(default, list) else str(default)
        return f"{action.help} (default: {text})"


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Make a parser whose --help prints the text as it is, and the defaults.

    description: the docstring of the script.
    """
    return argparse.ArgumentParser(description=description, formatter_class=_Help)


def add_common(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that several scripts have, with the same help and default everywhere.

    parser: to add to. names: some of "size", "precisions" and "threads".
    """
    if "size" in names:
        parser.add_argument("--size", choices=SIZES, default="original", help="of the network")
    if "precisions" in names:
        text = "of the matrix multiplications"
        parser.add_argument(
            "--precisions", type=some_of(PRECISIONS), default=list(PRECISIONS), metavar="A,B", help=text
        )
    if "threads" in names:
        parser.add_argument("--threads", type=count, default=2, help="of torch")


def count(text: str) -> int:
    """Read a whole number of 1 or more.

    text: what was given. Raises ArgumentTypeError for anything else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def counts(text: str) -> list[int]:
    """Read whole numbers of 1 or more, separated by commas.

    text: what was given. Raises ArgumentTypeError for anything else.
    """
    return [count(part) for part in text.split(",")]


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Make a function that reads some of these names, separated by commas.

    names: those that are known. The function raises ArgumentTypeError for others.
    """
    known = list(names)

    def parse(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))!r}; known: {', '.join(known)}")
        return text.split(",")

    return parse


def output(suffix: str) -> Callable[[str], Path]:
    """Make a function that reads the name of a file to write, and makes its folder if it is missing.

    suffix: which the name must have. The function raises ArgumentTypeError if the file can't be written.
    """

    def parse(text: str) -> Path:
        path = Path(text)
        if path.suffix != suffix or path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} is no name of a {suffix} file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise argparse.ArgumentTypeError(f"{text!r} can't be written")
        return path

    return parse


def text_file(text: str) -> Path:
    """Read the name of a file of UTF-8 text.

    text: what was given. Raises ArgumentTypeError if the file can't be read.
    """
    try:
        with Path(text).open(encoding="utf-8") as file:
            file.read(4096)
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} can't be read as UTF-8 text: {error}") from error
    return Path(text)
