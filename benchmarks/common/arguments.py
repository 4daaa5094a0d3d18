"""Command lines: what can't be used is refused before anything is measured."""

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path

PRECISIONS = ("float32", "bfloat16")


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def counts(text: str) -> list[int]:
    """Such numbers, separated by commas."""
    return [count(part) for part in text.split(",")]


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Some of these names, separated by commas."""
    known = list(names)

    def parse(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))!r}; known: {', '.join(known)}")
        return text.split(",")

    return parse


def output(suffix: str) -> Callable[[str], Path]:
    """A file that can be written, in a folder that is made where it is missing."""

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
    """A file of UTF-8 text."""
    try:
        with Path(text).open(encoding="utf-8") as file:
            file.read(4096)
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} can't be read as UTF-8 text: {error}") from error
    return Path(text)
