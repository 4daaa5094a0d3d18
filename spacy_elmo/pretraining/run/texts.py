"""SHA-256 of the words and weights that a run started with, to recognise them when it is resumed."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Errors, SettingsError
from ...formats.checksums import sha256_of
from ..model.files import WEIGHTS, bilm_folder
from ..settings.sections import PathSettings
from ..text.vocabulary_file import read_words

RUN_WORDS, VOCABULARY, INIT = "vocabulary", "paths.vocabulary", "paths.init"


def digests(paths: PathSettings, words: Sequence[str]) -> dict[str, str | None]:
    """Return what run.json stores about the words and the weights that a run starts with.

    paths: files of the run.
    words: of its vocabulary.

    Returns the SHA-256 of the words, of the words of paths.vocabulary, and of the weights of paths.init; None for
    settings that are not set.
    Raises SettingsError if the weights can't be read.
    """
    of_words = _of_words(words)
    of_file = None if paths.vocabulary is None else of_words
    return {RUN_WORDS: of_words, VOCABULARY: of_file, INIT: None if paths.init is None else _of_weights(paths.init)}


def check_digests(
    run: Path, recorded: Mapping[str, Any], paths: PathSettings, words: Sequence[str], vocabulary: Path
) -> None:
    """Check that a run is resumed with the words and the weights that it started with.

    Digests that are not recorded are not compared, and neither are files that no longer exist.

    run: the path of run.json, for messages.
    recorded: its part "texts".
    paths: files of the run, as they are set now.
    words: of the file `vocabulary`.
    vocabulary: the run's copy of its words.

    Raises SettingsError if they differ, and CorpusError if paths.vocabulary is not a vocabulary.
    """
    if RUN_WORDS in recorded and recorded[RUN_WORDS] != _of_words(words):
        raise SettingsError(Errors.RUN_CONTENTS.format(path=vocabulary, run=run))
    for key, setting in ((VOCABULARY, paths.vocabulary), (INIT, paths.init)):
        if key not in recorded:
            continue
        old = recorded[key]
        if (old is None) != (setting is None):
            was, now = "null" if old is None else f"a file of SHA-256 {old}", setting or "null"
            raise SettingsError(Errors.RUN_DIFFERS.format(path=run, key=key, old=was, new=now))
        digest = None if setting is None else _digest_now(key, setting)
        if digest not in (None, old):
            raise SettingsError(Errors.RUN_CONTENTS.format(path=f"{key}: {setting}", run=run))


def _digest_now(key: str, setting: str) -> str | None:
    """Return the digest of the file that a setting names; None if it no longer exists."""
    if key == VOCABULARY:
        return _of_words(read_words(Path(setting))) if Path(setting).is_file() else None
    try:
        folder = bilm_folder(setting)
    except SettingsError:  # a biLM whose download or package was removed after the run began
        return None
    return _of_weights(setting) if (folder / WEIGHTS).is_file() else None


def _of_words(words: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()


def _of_weights(init: str) -> str:
    path = bilm_folder(init) / WEIGHTS
    try:
        return sha256_of(path)
    except OSError as error:
        expected = "the weights of paths.init"
        raise SettingsError(Errors.FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
