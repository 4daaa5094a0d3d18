"""The folder of a pretraining run: what it was begun with, and what it holds."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..errors import Errors, SettingsError
from ..formats.atomic import replacing
from ..formats.options import BiLMOptions, read_options, write_options
from ..modules import BiLM
from ..modules.softmax import Softmax
from .checkpoint import read_checkpoint
from .config import PretrainConfig
from .corpus import Corpus, encode_corpus, load_corpus, save_corpus

# may change between a stop and going on; all else would make the checkpoint another run's
CHANGEABLE = ("total_tokens", "decay_share", "evaluate_every", "checkpoint_every", "evaluation_sentences")


def begin(options: BiLMOptions, config: PretrainConfig, train: Path, heldout: Path, output: Path) -> Corpus:
    """Make the folder, or go on in one that was begun with the same network, settings and texts.

    Raises SettingsError, before anything is written, where they differ from those that the run was begun with.
    """
    training = {name: value for name, value in asdict(config).items() if name not in CHANGEABLE}
    texts = {"train_bytes": train.stat().st_size, "heldout_bytes": heldout.stat().st_size}
    settings: dict[str, Any] = {"bilm": options.to_dict(), "training": training, "paths": texts}
    path = output / "run.json"
    if path.exists():
        begun = dict(_flat(json.loads(path.read_text(encoding="utf8"))))
        for key, value in _flat(settings):
            if begun.get(key) != value:
                raise SettingsError(Errors.RUN_DIFFERS.format(path=path, key=key, old=begun.get(key), new=value))
    corpus = load_corpus(output / "corpus") if path.exists() else None
    kept = corpus is not None
    if corpus is None:
        corpus = encode_corpus(train, heldout)
    output.mkdir(parents=True, exist_ok=True)
    for left in output.glob(".*.tmp"):  # of a run that was killed while it wrote
        left.unlink()
    with replacing(path, SettingsError) as temporary:
        temporary.write_text(json.dumps(settings, indent=2), encoding="utf8")
    if not kept:
        save_corpus(output / "corpus", corpus)
    write_options(output / "options.json", options)
    (output / "vocabulary.txt").write_text("\n".join(corpus.words[: config.n_words]) + "\n", encoding="utf8")
    return corpus


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.loads(json.dumps(value))


def load_run(folder: Path) -> tuple[BiLM, Softmax, Corpus]:
    """The network, its softmax and the corpus of a run, as of its last checkpoint. Raises ElmoError."""
    corpus = load_corpus(folder / "corpus")
    if corpus is None:
        raise SettingsError(Errors.RUN_MISSING.format(path=folder))
    options = read_options(folder / "options.json")
    arrays = read_checkpoint(folder / "checkpoint.h5")
    weights = {name.removeprefix("bilm/"): array for name, array in arrays.items() if name.startswith("bilm/")}
    softmax = Softmax(*arrays["softmax/weight"].shape)
    softmax.load_state_dict({name: torch.from_numpy(arrays[f"softmax/{name}"]) for name in ("weight", "bias")})
    return BiLM.from_arrays(options, weights), softmax, corpus
