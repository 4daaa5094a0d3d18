"""The folder of a pretraining run: what it was begun with, and what it holds."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Errors, SettingsError
from ..formats.atomic import replacing
from .config import PretrainConfig
from .config_file import write_config
from .prepared import PreparedCorpus
from .preparing import prepare
from .starting import find_vocabulary
from .vocabulary import Vocabulary

CONFIG, RUN, WORDS, CHECKPOINTS = "config.cfg", "run.json", "vocabulary.txt", "checkpoints"
BEST, LAST = "model-best", "model-last"
# may change between a stop and going on; all else would make the checkpoint another run's
CHANGEABLE = (
    "paths.",
    "corpus.",
    "training.epochs",
    "training.total_tokens",
    "training.workers",
    "training.device",
    "training.patience",
    "training.schedule.",
    "evaluation.",
)


class Run(NamedTuple):
    """What a run reads. identity: SHA-256 of its settings and texts; checkpoints of others are not its own."""

    train: PreparedCorpus
    heldout: PreparedCorpus
    vocabulary: Vocabulary
    identity: str


def begin(config: PretrainConfig, output: Path) -> Run:
    """Make the folder, or go on in one that was begun with the same network, settings and texts.

    Raises SettingsError, before a checkpoint is touched, where they differ from those that the run was begun with.
    """
    path = output / RUN
    # without a checkpoint nothing was trained: settings may still be put right
    begun = _read(path) if any((output / CHECKPOINTS).glob("*.h5")) else None
    if begun is not None:
        _compare(path, begun["settings"], _settings(config))
    train, heldout = _corpora(config, output)
    texts = {"train": train.meta.sha256, "heldout": heldout.meta.sha256, "sentences": [len(train), len(heldout)]}
    if begun is not None:
        _compare(path, begun["texts"], texts)
        vocabulary = Vocabulary.read(output / WORDS)
    else:
        vocabulary = find_vocabulary(config, train)
        vocabulary.write(output / WORDS)
        with replacing(path, SettingsError) as temporary:
            temporary.write_text(json.dumps({"settings": _settings(config), "texts": texts}, indent=2), encoding="utf8")
    write_config(config, output / CONFIG)
    return Run(train, heldout, vocabulary, _identity(path))


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
    return Run(train, heldout, Vocabulary.read(output / WORDS), _identity(output / RUN))


def _corpora(config: PretrainConfig, output: Path) -> tuple[PreparedCorpus, PreparedCorpus]:
    train = prepare(config.paths.train, output / "corpus", config.corpus.language)
    if config.paths.heldout is not None:
        prepare(config.paths.heldout, output / "heldout", config.corpus.language)
    return _cut(config, train, output)


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
        if begun.get(key) != value:
            raise SettingsError(Errors.RUN_DIFFERS.format(path=path, key=key, old=begun.get(key), new=value))
