"""The folder of a pretraining run: what it was begun with, and what it holds."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import CorpusError, Errors, SettingsError
from ...formats.atomic import replacing
from ..settings.config import PretrainConfig
from ..settings.config_file import write_config
from ..text.prepared import PreparedCorpus
from ..text.preparing import prepare
from ..text.sources import find_files
from ..text.vocabulary import Vocabulary
from .starting import check_start, find_vocabulary
from .texts import check_digests, digests

CONFIG, RUN, WORDS, CHECKPOINTS = "config.cfg", "run.json", "vocabulary.txt", "checkpoints"
# may change between a stop and going on; all else would make the checkpoint another run's
CHANGEABLE = (
    "paths.",
    "training.epochs",
    "training.total_tokens",
    "training.workers",
    "training.device",
    "training.patience",
    "training.schedule.",
    "evaluation.every",
    "evaluation.checkpoint_every",
)


class Run(NamedTuple):
    """What a run reads. identity: SHA-256 of its settings and texts; checkpoints of others are not its own.

    begun: whether it was begun before, so that its weights are those of a checkpoint.
    """

    train: PreparedCorpus
    heldout: PreparedCorpus
    vocabulary: Vocabulary
    identity: str
    begun: bool


def is_begun(output: Path) -> bool:
    """Whether a folder has a checkpoint: without one nothing was trained, and settings may still be put right."""
    return any((output / CHECKPOINTS).glob("*.h5"))


def begin(config: PretrainConfig, output: Path) -> Run:
    """Make the folder, or go on in one that was begun with the same network, settings and texts.

    Raises SettingsError, before a checkpoint is touched, where they differ from those that the run was begun with.
    """
    path = output / RUN
    begun = _read(path) if is_begun(output) else None
    if begun is not None:
        _compare(path, begun["settings"], _settings(config))
        train, heldout = _kept(config, output)
        _compare(path, begun["texts"], _texts(train, heldout))
        vocabulary = Vocabulary.read(output / WORDS)
        check_digests(path, begun["texts"], config.paths, vocabulary.words, output / WORDS)
    else:
        train, heldout = _corpora(config, output)
        check_start(config.bilm, config.paths, config.training, config.vocabulary.size)  # before words are counted
        vocabulary = find_vocabulary(config.paths, config.vocabulary, train)
        vocabulary.write(output / WORDS)
        texts = _texts(train, heldout) | digests(config.paths, vocabulary.words)
        with replacing(path, SettingsError) as temporary:
            temporary.write_text(json.dumps({"settings": _settings(config), "texts": texts}, indent=2), encoding="utf8")
    write_config(config, output / CONFIG)
    return Run(train, heldout, vocabulary, _identity(path), begun is not None)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        begun = json.loads(path.read_text(encoding="utf8"))
        if not all(isinstance(begun[part], dict) for part in ("settings", "texts")):
            raise ValueError("settings and texts are no objects")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingsError(Errors.RUN_UNREADABLE.format(path=path, reason=repr(error))) from error
    known: dict[str, dict[str, Any]] = begun
    return known


def _identity(path: Path) -> str:
    return hashlib.sha256(json.dumps(_read(path), sort_keys=True).encode()).hexdigest()


def reopen(config: PretrainConfig, output: Path) -> Run:
    """What begin has made, in another process of the run."""
    train, heldout = _cut(config, PreparedCorpus.open(output / "corpus"), output)
    return Run(train, heldout, Vocabulary.read(output / WORDS), _identity(output / RUN), is_begun(output))


def _corpora(config: PretrainConfig, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    train = prepare(config.paths.train, output / "corpus", config.corpus.language, output)
    if config.paths.heldout is not None:
        prepare(config.paths.heldout, output / "heldout", config.corpus.language, output)
    return _cut(config, train, output)


def _kept(config: PretrainConfig, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    """The texts as they were prepared, whole; the sources may be gone, but may not have other sizes by now."""
    named = [(config.paths.train, "corpus")]
    if config.paths.heldout is not None:
        named.append((config.paths.heldout, "heldout"))
    for source, name in named:
        kept = PreparedCorpus.open(output / name)
        kept.verify()
        old = sorted(file.bytes for file in kept.meta.sources)
        try:
            new = sorted(file.stat().st_size for file in find_files(source, output))
        except (CorpusError, OSError):  # gone
            continue
        if old != new:
            raise SettingsError(Errors.RUN_TEXT.format(source=source, old=_told(old), new=_told(new)))
    return _cut(config, PreparedCorpus.open(output / "corpus"), output)


def _told(sizes: list[int]) -> str:
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


def _compare(path: Path, begun: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in now.items():
        if key in begun and begun[key] != value:  # a later version may know more settings
            raise SettingsError(Errors.RUN_DIFFERS.format(path=path, key=key, old=begun[key], new=value))
