"""The folder of a pretraining run: its texts and vocabulary, and the settings that it was started with."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FILE_UNREADABLE, CorpusError, SettingsError
from ..formats.atomic import replacing, writing
from ..formats.paths import sha256_of
from ..formats.strict_json import read_json
from ..formats.text import find_files
from ..modules.loading import find_bilm
from .checkpoint import CHECKPOINTS, Checkpoints
from .config import PathSettings, PretrainConfig
from .config_file import write_config
from .language_model import RUN, WEIGHTS, WORDS
from .prepared import PreparedCorpus, prepare
from .starting import CONFIG, TRAIN_TEXT, find_vocabulary
from .vocabulary import Vocabulary, read_words

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
        raise SettingsError(
            f"{vocabulary}: not with the contents (SHA-256 in {run}) that this run was started with. Put the "
            "right file there to go on. To start a new run, give another output folder, or add --restart, which "
            "keeps the earlier run under another name."
        )
    for key, setting in ((VOCABULARY, paths.vocabulary), (INIT, paths.init)):
        if key not in recorded:
            continue
        old = recorded[key]
        if (old is None) != (setting is None):
            was, now = "null" if old is None else f"a file of SHA-256 {old}", setting or "null"
            raise SettingsError(
                f"{run}: this run was started with {key} = {was}, but now it is {now}. Set it back to go on. To "
                "start a new run, give another output folder, or add --restart, which keeps the earlier run "
                "under another name."
            )
        digest = None if setting is None else _digest_now(key, setting)
        if digest not in (None, old):
            raise SettingsError(
                (
                    "{path}: not with the contents (SHA-256 in {run}) that this run was started with. Put the right "
                    "file there to go on. To start a new run, give another output folder, or add --restart, which "
                    "keeps the earlier run under another name."
                ).format(path=f"{key}: {setting}", run=run)
            )


def _digest_now(key: str, setting: str) -> str | None:
    """Return the digest of the file that a setting names; None if it no longer exists."""
    if key == VOCABULARY:
        return _of_words(read_words(Path(setting))) if Path(setting).is_file() else None
    try:
        folder = find_bilm(setting)
    except SettingsError:  # a biLM whose download or package was removed after the run began
        return None
    return _of_weights(setting) if (folder / WEIGHTS).is_file() else None


def _of_words(words: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\n".encode())
    return digest.hexdigest()


def _of_weights(init: str) -> str:
    path = find_bilm(init) / WEIGHTS
    try:
        return sha256_of(path)
    except OSError as error:
        expected = "the weights of paths.init"
        raise SettingsError(FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error


_MOST_BYTES = 2**24  # of run.json, which has about 2,000
# Settings that may change before a run is resumed. With any other change its checkpoints would not fit.
CHANGEABLE = (
    "paths.",
    "training.epochs",
    "training.total_tokens",
    "training.workers",
    "training.readers",
    "training.device",
    "training.patience",
    "training.average_share",
    "training.schedule.",
    "evaluation.every",
    "evaluation.checkpoint_every",
)


class Run(NamedTuple):
    """What a run reads.

    train: the training text.
    heldout: the held-out text.
    vocabulary: the words to predict.
    identity: SHA-256 of the settings and texts of the run; each of its checkpoints holds it.
    resumed: whether the run has a checkpoint, from which its weights are read.
    init: SHA-256 of the weights of paths.init; None if it is not set.
    """

    train: PreparedCorpus
    heldout: PreparedCorpus
    vocabulary: Vocabulary
    identity: str
    resumed: bool
    init: str | None


def has_checkpoint(output: Path) -> bool:
    """Return whether a folder has a checkpoint. Without one nothing was trained, and all settings may still change."""
    return Checkpoints(output / CHECKPOINTS).exist()


def open_run(config: PretrainConfig, output: Path) -> Run:
    """Prepare the texts and the vocabulary of a run, or open those of a run that is resumed.

    config: all settings.
    output: folder of the run.

    Raises SettingsError if a run is resumed with other settings or texts; then its checkpoints stay. Raises ElmoError
    if a file can't be read or written.
    """
    path = output / RUN
    recorded = _read(path) if has_checkpoint(output) else None
    if recorded is not None:
        _compare(path, recorded["settings"], _settings(config))
        train, heldout = _earlier_texts(config, output)
        _compare(path, recorded["texts"], _texts(train, heldout))
        vocabulary = Vocabulary.read(output / WORDS)
        check_digests(path, recorded["texts"], config.paths, vocabulary.words, output / WORDS)
    else:
        train, heldout = _corpora(config, output)
        vocabulary = find_vocabulary(config.paths, config.vocabulary, train)
        vocabulary.write(output / WORDS)
        texts = _texts(train, heldout) | digests(config.paths, vocabulary.words)
        with replacing(path, SettingsError) as temporary, writing(path, SettingsError):
            temporary.write_text(json.dumps({"settings": _settings(config), "texts": texts}, indent=2), encoding="utf8")
    write_config(config, output / CONFIG)
    return Run(train, heldout, vocabulary, _identity(path), recorded is not None, _init(path))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        record: dict[str, dict[str, Any]] = read_json(path, _MOST_BYTES)
        if not all(isinstance(record[part], dict) for part in ("settings", "texts")):
            raise ValueError("settings and texts are no objects")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path}: can't be read ({error!r}). It says what this run was started with: put the complete "
            "file there. To start a new run, give another output folder, or add --restart, which keeps the "
            "earlier run under another name."
        ) from error
    return record


def _identity(path: Path) -> str:
    return hashlib.sha256(json.dumps(_read(path), sort_keys=True).encode()).hexdigest()


def _init(path: Path) -> str | None:
    digest = _read(path)["texts"].get(INIT)  # runs of earlier versions do not have it
    return None if digest is None else str(digest)


def reopen_run(config: PretrainConfig, output: Path) -> Run:
    """Return what `open_run` returned in the first process of a run, for its other processes.

    config: all settings.
    output: folder of the run.

    Raises ElmoError if a file can't be read.
    """
    train, heldout = _cut(config, PreparedCorpus.open(output / TRAIN_TEXT), output)
    path = output / RUN
    return Run(train, heldout, Vocabulary.read(output / WORDS), _identity(path), has_checkpoint(output), _init(path))


def _corpora(config: PretrainConfig, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    train = prepare(config.paths.train, output / TRAIN_TEXT, config.corpus.language, output)
    if config.paths.heldout is not None:
        prepare(config.paths.heldout, output / "heldout", config.corpus.language, output)
    return _cut(config, train, output)


def _earlier_texts(config: PretrainConfig, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    """Return the texts as they were prepared. Sources may be gone, but if they exist, their sizes must be the same."""
    named = [(config.paths.train, "corpus")]
    if config.paths.heldout is not None:
        named.append((config.paths.heldout, "heldout"))
    for source, name in named:
        corpus = PreparedCorpus.open(output / name)
        corpus.verify()
        old = sorted(file.bytes for file in corpus.meta.sources)
        try:
            new = sorted(file.stat().st_size for file in find_files(source, output))
        except (CorpusError, OSError):  # gone
            continue
        if old != new:
            raise SettingsError(
                f"{source}: the text has changed since this run was started: it had {_described(old)}; now "
                f"{_described(new)}. Put the earlier text back to go on. To start a new run, give another output "
                "folder, or add --restart, which keeps the earlier run under another name."
            )
    return _cut(config, PreparedCorpus.open(output / TRAIN_TEXT), output)


def _described(sizes: list[int]) -> str:
    return f"{sum(sizes):,} bytes in files: {len(sizes):,}, the largest {sizes[-1]:,}"


def _texts(train: PreparedCorpus, heldout: PreparedCorpus) -> dict[str, Any]:
    return {"train": train.meta.sha256, "heldout": heldout.meta.sha256, "sentences": [len(train), len(heldout)]}


def _cut(config: PretrainConfig, train: PreparedCorpus, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    if config.paths.heldout is None:
        return train.cut(config.corpus.heldout_share)
    return train, PreparedCorpus.open(output / "heldout")


def _settings(config: PretrainConfig) -> dict[str, Any]:
    sections = asdict(config) | {"bilm": config.bilm.to_dict()}
    flat = dict(_flat(json.loads(json.dumps(sections))))
    return {key: value for key, value in flat.items() if not key.startswith(CHANGEABLE)}


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _compare(path: Path, recorded: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in now.items():
        if key in recorded and recorded[key] != value:  # a later version may have more settings
            raise SettingsError(
                f"{path}: this run was started with {key} = {recorded[key]}, but now it is {value}. Set it back "
                "to go on. To start a new run, give another output folder, or add --restart, which keeps the "
                "earlier run under another name."
            )
