"""Checks of the lines of a text, and of the words in them."""

from __future__ import annotations

import glob
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]
from spacy.tokens import Doc

from ..errors import SOURCE_DAMAGED, CorpusError, shown
from .unpacking import LONGEST_LINE, PACKED


class Unusable(Exception):
    """Raised for a line that can't be used, with the reason."""


class BadLine(NamedTuple):
    """A line that was left out.

    file: its path.
    line: its number, from 1; in a .spacy file the number of the doc.
    reason: why it can't be used.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.reason}"


def decode_line(line: bytes | None, number: int) -> str:
    """Return the text of a line, without a byte order mark.

    line: its bytes; None if it was too long to be read (see `lines_of`).
    number: of the line, from 1.

    Raises Unusable if the line is too long, is not UTF-8, or has a NUL character.
    """
    if line is None:
        raise Unusable(f"more than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 ({error.reason} at byte {error.start:,})") from error
    return _usable(text.removeprefix("\ufeff") if number == 1 else text)


def json_record(line: str) -> dict[str, Any]:
    """Return the object of a line of JSON. Raises Unusable if it has neither "text" nor "tokens", or is no object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({error})") from error
    if not isinstance(record, dict) or not ("tokens" in record or "text" in record):
        raise Unusable('no JSON object with "text" or "tokens"')
    return record


def record_tokens(record: dict[str, Any]) -> list[str]:
    """Return the "tokens" of an object. Raises Unusable if they are no words."""
    words = record["tokens"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Unusable('"tokens" is no list of strings')
    return checked_words(words)


def record_text(record: dict[str, Any]) -> str:
    """Return the "text" of an object. Raises Unusable if it is no text that can be encoded."""
    text = record["text"]
    if not isinstance(text, str):
        raise Unusable('"text" is no string')
    return encodable(_usable(text))


def checked_words(words: list[str]) -> list[str]:
    """Return words that a file itself lists. Raises Unusable if one is empty, or has characters that no word has."""
    for word in words:
        if word.split() != [word]:
            raise Unusable("an empty token, or one with blanks")
    encodable(_usable(" ".join(words)))
    return words


def _usable(text: str) -> str:
    if "\0" in text:
        raise Unusable("a NUL character")
    return text


def encodable(text: str) -> str:
    """Return a text. Raises Unusable if it can't be written as UTF-8."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise Unusable("half a surrogate pair, which is no character") from error
    return text


Rule = Callable[[str], Any]

# A unit is about 0.4 microseconds: reading a character of a word by a rule for prefixes or suffixes (measured).
_FREE, _FOR_EACH = 2_000_000, 20  # units: less than a second, and 5 s more for a million characters
_URL_COLON = 10  # the rule for URLs reads so many characters for each colon in a unit
_DOTS = 50  # the suffix "..." reads a run of dots for each of them, so many in a unit
# languages whose suffixes and infixes read a run of letters and digits for each of them, so many in a unit
_SQUARED = {"el": (8.0, 4.0), "pt": (math.inf, 60.0)}
_LONG_WORD = re.compile(r"\S{100}")  # shorter ones take at most 0.03 ms for each character (measured)
_SHORT_TEXT = 300  # characters: of those languages, too
_DOT_RUN, _LETTER_RUN = re.compile(r"\.{2,}"), re.compile(r"[\w.-]{2,}")


def may_be_slow(text: str, language: str) -> bool:
    """Whether a tokenizer needs a TokenizerLimit for a text. language: spaCy's code of it."""
    return bool(_LONG_WORD.search(text)) or (language in _SQUARED and len(text) > _SHORT_TEXT)


class TokenizerLimit:
    """Counts the characters that a tokenizer's rules read, and refuses a text for which they read too many.

    spaCy reads a word again for each mark that it cuts off the beginning or the end. What the tokenizer returns is not
    changed.

    tokenizer: its rules are replaced by those that count.
    language: spaCy's code of its language.
    """

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        self._left: float = math.inf  # spaCy calls the rules for its special cases as soon as one is replaced
        suffix, infix = _SQUARED.get(language, (math.inf, math.inf))
        costs: dict[str, Callable[[str], float]] = {
            "prefix_search": len,
            "suffix_search": lambda w: len(w) + _squares(_DOT_RUN, w) / _DOTS + _squares(_LETTER_RUN, w) / suffix,
            "infix_finditer": lambda w: len(w) + _squares(_LETTER_RUN, w) / infix,
            "url_match": lambda w: len(w) * (1 + w.count(":")) / _URL_COLON,
        }
        for name, cost in costs.items():
            rule = getattr(tokenizer, name)
            if rule is not None:
                setattr(tokenizer, name, self._counted(rule, cost))

    def allow(self, text: str | None) -> None:
        """Let the rules read what a text may take, from now on.

        text: one for which `may_be_slow` is true; None: another one, for which nothing is limited.
        """
        self._left = math.inf if text is None else _FREE + _FOR_EACH * len(text)

    def _counted(self, rule: Rule, cost: Callable[[str], float]) -> Rule:
        def counted(word: str) -> Any:
            self._left -= cost(word)
            if self._left < 0:
                raise Unusable("words too long or with too many punctuation marks to be tokenised in reasonable time")
            return rule(word)

        return counted


def _squares(runs: re.Pattern[str], word: str) -> int:
    return sum(len(run) ** 2 for run in runs.findall(word))


Splitter = Callable[[str], list[str]]
Offsets = list[tuple[int, int]]

RENEWED_AFTER = 20_000_000  # characters after which the tokenizer is replaced by a new one
# what spacy.blank raises if it can't make a pipeline; AttributeError: a module of spacy.lang that is not a language
LANGUAGE_ERRORS = (ImportError, ValueError, AttributeError)
_WORD = re.compile(r"\S+")
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


class Tokenize:
    """Splits text with a spaCy tokenizer. Whitespace tokens are left out.

    spaCy's tokenizer stores every word it has seen. It is therefore replaced by a new one from time to time, so that
    memory does not grow with the text.

    load: returns a new pipeline, whose tokenizer is used. Its errors are raised here.
    """

    def __init__(self, load: Callable[[], Language]) -> None:
        self._load = load
        self._nlp, self._read = load(), 0
        self._limit: TokenizerLimit | None = None

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text. Raises Unusable if it can't be tokenised, or not in reasonable time."""
        return [word for token in self._tokens(text) for word in token.text.split()]

    def words_and_offsets(self, text: str) -> tuple[list[str], Offsets]:
        """Return the words of a text, and the places of each in it: of its first character, and after its last one.

        Raises Unusable if it can't be tokenised, or not in reasonable time.
        """
        words, offsets = [], []
        for token in self._tokens(text):
            for match in _WORD.finditer(token.text):
                words.append(match[0])
                offsets.append((token.idx + match.start(), token.idx + match.end()))
        return words, offsets

    def _tokens(self, text: str) -> Doc:
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read, self._limit = self._load(), len(text), None
        self._bound_time_of(text)
        try:
            return self._nlp.tokenizer(str(text))  # spaCy refuses subclasses of str, such as those that numpy has
        except UnicodeEncodeError as error:
            raise Unusable("half of a surrogate pair, which UTF-8 can't represent") from error

    def _bound_time_of(self, text: str) -> None:
        """Set what the tokenizer may read. It depends on the text alone, not on what was read before."""
        tokenizer, language = self._nlp.tokenizer, str(self._nlp.lang)
        slow = isinstance(tokenizer, spacy.tokenizer.Tokenizer) and may_be_slow(text, language)
        if slow and self._limit is None:
            self._limit = TokenizerLimit(tokenizer, language)  # takes half a second, and most texts don't need it
        if self._limit is not None:
            self._limit.allow(text if slow else None)


def splitter(language: str | None) -> Splitter:
    """Return a function that splits a text into words.

    language: of the spaCy tokenizer; None: str.split.

    Raises CorpusError if spaCy does not know the language.
    """
    return str.split if language is None else Tokenize(partial(blank, language))


def words_at_blanks(text: str) -> tuple[list[str], Offsets]:
    """Return the words of a text whose words are separated by blanks, and their places, as `words_and_offsets` does."""
    words = text.split()
    offsets, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        offsets.append((start, end))
    return words, offsets


def blank(language: str) -> Language:
    """Return an empty pipeline of a language. Raises CorpusError if spaCy does not know it, or its tokenizer fails."""
    try:
        return spacy.blank(language)
    except LANGUAGE_ERRORS as error:
        template = (
            (
                "spaCy's tokenizer for the language {got} needs a package that is not installed ({reason}). Install "
                "it, or split the text with a program of your own: with words separated by blanks, no language is "
                "needed."
            )
            if lacks_package(error)
            else (
                "the language is {got}, which can't be used ({reason}). Expected the code of a language that spaCy "
                "knows, like en, or xx, which splits at blanks and punctuation; or none if the words are separated "
                "by blanks already."
            )
        )
        raise CorpusError(template.format(got=shown(language), reason=error)) from error


def lacks_package(error: Exception) -> bool:
    """Whether spaCy knows a language, but its tokenizer needs a package that is not installed.

    error: one of LANGUAGE_ERRORS, raised by `spacy.blank`.
    """
    return isinstance(error, ImportError) and "E048" not in str(error)  # E048: no such language


EXPECTED = "text, one sentence a line (plain, .gz, .xz or .zst), .jsonl or .spacy files: one, a folder or a pattern"


def find_files(
    source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, expected: str = EXPECTED
) -> list[Path]:
    """Return the files of a source, sorted.

    In folders and for patterns, names that begin with a dot are left out, and symbolic links to folders are not
    followed.

    source: a file, a folder (all files in it and in its folders), or a pattern such as texts/*.txt. If a file or folder
        has exactly this name, it is not used as a pattern.
    output: a folder whose files are left out of folders and patterns.
    expected: what messages say that a source is.

    Raises CorpusError if there is no file.
    """
    path = Path(source)
    if not os.fspath(source):  # Path("") is the current folder
        raise CorpusError(
            "{source}: no such file or folder, and no pattern that matches a file. Expected {expected}.".format(
                source='""', expected=expected
            )
        )
    with _usable_path(source):
        return _find_files(path, output, expected)


def _find_files(path: Path, output: str | os.PathLike[str] | None, expected: str) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        walk = os.walk(path, onerror=_raise)
        files = [Path(folder, name) for folder, _, names in walk for name in names]
    elif path.exists():
        raise CorpusError(f"{path}: neither a file nor a folder. Expected {expected}.")
    else:
        files = _matching(path, expected)
    hidden = _n_hidden(path)  # dots that the user wrote
    visible = sorted(file for file in files if _n_hidden(file) == hidden and file.is_file())
    if output is not None:
        excluded = Path(output).resolve()
        visible = [file for file in visible if not file.resolve().is_relative_to(excluded)]
    if not visible:
        message = (
            "{source}: a folder without files that can be read. Expected {expected}."
            if path.is_dir()
            else "{source}: no such file or folder, and no pattern that matches a file. Expected {expected}."
        )
        raise CorpusError(message.format(source=path, expected=expected))
    return visible


def kind_of(path: Path) -> str:
    """Return the end of a file's name that tells its format, after .gz, .xz or .zst is removed: ".jsonl", for example.

    path: the file. A name without a dot gives "".
    """
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def name_of(source: str) -> str:
    """Return the last part of a path, which tells nothing about the machine."""
    return Path(source).name or Path(source).resolve().name


def refuse_inside(
    source: str | os.PathLike[str], target: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> None:
    """Raise CorpusError if what is to be written would belong to the source.

    source: a file, a folder or a pattern.
    target: the file or folder to be written.
    output: a folder whose files do not belong to a pattern; see `find_files`.
    """
    with _usable_path(source):
        root, resolved = (Path(os.path.realpath(path)) for path in (source, target))  # resolve() fails if links loop
        inside = resolved.is_relative_to(root)
        if not inside and glob.has_magic(str(source)):
            inside = any(file.resolve().is_relative_to(resolved) for file in find_files(source, output))
        if inside:
            raise CorpusError(
                f"{target}: the output is inside {source}, which is the input. Expected a place outside: give "
                "another path. Otherwise the output would be read as text the next time."
            )


@contextmanager
def _usable_path(source: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of paths that can't be used into CorpusError: too long, with NUL, or with half a surrogate pair."""
    try:
        yield
    except CorpusError:
        raise
    except (OSError, ValueError) as error:
        raise CorpusError(SOURCE_DAMAGED.format(path=shown(os.fspath(source)), reason=error)) from error


def _matching(path: Path, expected: str) -> list[Path]:
    """Return what matches a pattern. Path.glob is used because glob.glob follows links to folders, even in circles."""
    if not glob.has_magic(str(path)):
        return []
    try:
        return list(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    except ValueError as error:  # such as a**
        raise CorpusError(f"{path}: not a pattern of file names ({error}). Expected {expected}.") from error


def _raise(error: OSError) -> None:
    raise CorpusError(SOURCE_DAMAGED.format(path=error.filename, reason=error)) from error


def _n_hidden(path: Path) -> int:
    return sum(part.startswith(".") for part in path.parts)
