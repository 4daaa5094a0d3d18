"""The words and the weights that a run was begun with, known again by their SHA-256."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Errors, SettingsError
from ..model.files import WEIGHTS, bilm_folder
from ..settings.sections import PathSettings
from ..text.vocabulary_file import read_words

WORDS, GIVEN, INIT = "vocabulary", "paths.vocabulary", "paths.init"


def digests(paths: PathSettings, words: Sequence[str]) -> dict[str, str | None]:
    """What a run keeps of its words, of the file that they are from, and of the weights it starts from; null: none.

    Raises SettingsError for weights that can't be read.
    """
    of_words = _of_words(words)
    given = None if paths.vocabulary is None else of_words
    return {WORDS: of_words, GIVEN: given, INIT: None if paths.init is None else _of_weights(paths.init)}


def check_digests(run: Path, begun: Mapping[str, Any], paths: PathSettings, words: Sequence[str], kept: Path) -> None:
    """Compare with what a run was begun with; what it did not keep, and files that are gone by now, are passed over.

    run: the file that tells it; words: those of the file `kept`. Raises SettingsError where they differ, and
    CorpusError for a file that is no vocabulary.
    """
    if WORDS in begun and begun[WORDS] != _of_words(words):
        raise SettingsError(Errors.RUN_CONTENTS.format(path=kept, run=run))
    for key, setting in ((GIVEN, paths.vocabulary), (INIT, paths.init)):
        if key not in begun:
            continue
        old = begun[key]
        if (old is None) != (setting is None):
            was, now = "null" if old is None else f"a file of SHA-256 {old}", setting or "null"
            raise SettingsError(Errors.RUN_DIFFERS.format(path=run, key=key, old=was, new=now))
        found = None if setting is None else _found(key, setting)
        if found not in (None, old):
            raise SettingsError(Errors.RUN_CONTENTS.format(path=f"{key}: {setting}", run=run))


def _found(key: str, setting: str) -> str | None:
    """The digest of what a setting names; None where it is gone."""
    if key == GIVEN:
        return _of_words(read_words(Path(setting))) if Path(setting).is_file() else None
    return _of_weights(setting) if (bilm_folder(setting) / WEIGHTS).is_file() else None


def _of_words(words: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()


def _of_weights(init: str) -> str:
    digest, path = hashlib.sha256(), bilm_folder(init) / WEIGHTS
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    except OSError as error:
        expected = "the weights of paths.init"
        raise SettingsError(Errors.FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    return digest.hexdigest()
