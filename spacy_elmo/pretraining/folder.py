"""The folder of a run: what a new run is refused for, the texts and words that it reads, and its first model."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import CorpusError, ElmoError, SettingsError
from ..formats.atomic import replacing, writing
from ..formats.options import read_options
from ..formats.outputs import check_output
from ..formats.paths import find_files, sha256_of
from ..formats.weights import read_weights
from ..modules import BiLM
from ..modules.loading import card_language, find_bilm
from . import language_model as files
from .checkpoint import CHECKPOINTS, checkpoints_in
from .config import PathSettings, PretrainConfig, flat, refuse, write_config
from .language_model import LanguageModel, no_softmax, softmax_folder
from .prepared import META, PreparedCorpus, prepare
from .softmax import Softmax
from .trainer import enough_memory
from .vocabulary import SPECIAL, UNKNOWN, Vocabulary, count_words, least_count, read_words

CONFIG, METRICS, CURVE = "config.cfg", "metrics.jsonl", "curve.png"
TRAIN_TEXT, HELDOUT_TEXT = "corpus", "heldout"
WRITTEN = (CONFIG, *files.FILES, files.COUNTS, METRICS, CURVE, files.BEST, files.LAST)
_MARKS = (files.RUN, f"{TRAIN_TEXT}/{META}", CHECKPOINTS)  # it may have been stopped while its text was prepared

# What a new run is refused for, before anything is written or moved


def has_checkpoint(output: Path) -> bool:
    """Return whether there is a checkpoint. Without one all settings may still change."""
    return bool(checkpoints_in(output / CHECKPOINTS))


def check_new_run(config: PretrainConfig, output: Path, beside: bool | None) -> None:
    """Refuse a new run by all that can be checked without reading a text. Raises ElmoError.

    beside: whether the folder may have files that are not of a run; None: it will be renamed.
    """
    paths = config.paths
    texts = {name: source for name in ("train", "heldout") if (source := getattr(paths, name)) is not None}
    for name, source in texts.items():
        try:
            find_files(source, output)
        except CorpusError as error:
            raise CorpusError(f"paths.{name}: {error}") from error
    settings: dict[str, Any] = {"names": WRITTEN, "marks": _MARKS, "beside": beside, "left_out": True}
    check_output(output, SettingsError, texts.values(), **settings)
    if paths.vocabulary is not None and not Path(paths.vocabulary).is_file():
        refuse("paths.vocabulary", paths.vocabulary, "a file that is there, with one word a line")
    if (words := _words_file(paths)) is not None:
        read_words(words)
    if paths.init is not None:
        with enough_memory(config.training):
            _trained(config, paths.init)  # read again after the text was prepared, which may take hours


def _words_file(paths: PathSettings) -> Path | None:
    if paths.vocabulary is not None:
        return Path(paths.vocabulary)
    folder = None if paths.init is None else softmax_folder(paths.init)
    return None if folder is None else folder / files.WORDS


# What a run reads


@dataclass(frozen=True)
class Run:
    """What a run knows of itself.

    identity: SHA-256 of run.json, which has the settings and texts; each checkpoint holds it.
    init_sha256: of the weights of paths.init; None if it is not set, or an earlier version has not written it down.
    total_tokens: of one direction, `</S>` counted. compatible_with: which programs can read the biLM, as a line.
    repeated: how many held-out sentences the training text has too; None in all processes but the first.
    """

    config: PretrainConfig
    train: PreparedCorpus
    heldout: PreparedCorpus
    vocabulary: Vocabulary
    identity: str
    resumed: bool
    init_sha256: str | None
    total_tokens: int = 0
    processes: int = 1
    compatible_with: str = ""
    repeated: int | None = None

    @property
    def texts(self) -> list[tuple[str, str, PreparedCorpus]]:
        """What each text is called, where it is from (as in the settings), and its sentences."""
        paths = self.config.paths
        heldout = paths.heldout or paths.train
        return [("training text", paths.train, self.train), ("held-out text", heldout, self.heldout)]

    @cached_property
    def init_language(self) -> str | None:
        """The language that the model card of paths.init names."""
        if self.config.paths.init is None:
            return None
        try:
            return card_language(str(find_bilm(self.config.paths.init) / files.OPTIONS))
        except ElmoError:  # a biLM whose files were removed after the run began
            return None


def open_run(config: PretrainConfig, output: Path, first: bool = True) -> Run:
    """Prepare the texts and the vocabulary of a run, or open those of a run that is resumed.

    first: whether this process writes and checks; the others open what it has prepared.

    Raises SettingsError if a run is resumed with other settings or texts.
    """
    path, paths, resumed = output / files.RUN, config.paths, has_checkpoint(output)
    record = _read(path) if resumed or not first else {"settings": _fixed_settings(config)}
    corpora = []
    if first and resumed:
        _compare(path, record["settings"], _fixed_settings(config))
    for source, name in ((paths.train, TRAIN_TEXT), (paths.heldout, HELDOUT_TEXT)):
        if source is not None:
            if first and not resumed:
                how = config.corpus
                prepare(source, output / name, how.language, output, how.text_column, how.text_field)
            corpora.append(PreparedCorpus(output / name))
            if first and resumed:
                _check_text(source, corpora[-1], output)
    train, heldout = corpora if len(corpora) == 2 else corpora[0].cut(config.corpus.heldout_share)
    if first:
        texts = {"train": train.meta.sha256, "heldout": heldout.meta.sha256, "sentences": [len(train), len(heldout)]}
        if resumed:
            _compare(path, record["texts"], texts | _digests(paths, output))
        else:
            find_vocabulary(config, train).write(output / files.WORDS)
            record["texts"] = texts | _digests(paths, output)
            with replacing(path, SettingsError) as temporary, writing(path, SettingsError):
                temporary.write_text(json.dumps(record, indent=2), encoding="utf8")
        write_config(config, output / CONFIG)
    identity = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    init_sha256 = record["texts"].get("paths.init")  # runs of earlier versions do not have it
    vocabulary, repeated = Vocabulary.read(output / files.WORDS), heldout.count_repeated(train) if first else None
    return Run(config, train, heldout, vocabulary, identity, resumed, init_sha256, repeated=repeated)


def find_vocabulary(config: PretrainConfig, corpus: PreparedCorpus) -> Vocabulary:
    """Return the words to predict, with their counts in the training text.

    They are those of paths.vocabulary, or else of the softmax of paths.init, or else the text's most frequent words.
    """
    settings, source = config.vocabulary, _words_file(config.paths)
    counted = count_words(corpus)
    if source is None:
        least = least_count(counted, settings.size) if settings.min_count is None else settings.min_count
        return Vocabulary.from_counts(counted, settings.size, least)
    words = Vocabulary.read(source).words
    counts = np.array([counted.words[word] for word in words], np.int64)
    counts[: len(SPECIAL)] = counted.n_sentences
    counts[UNKNOWN] = counted.words.total() - counts[len(SPECIAL) :].sum()
    return Vocabulary(words, counts)


# What a resumed run is compared with

_NEW = (
    "To start a new run, give another output folder, or add --restart, which keeps the earlier run under another name."
)
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


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        record: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
        if not all(isinstance(record[part], dict) for part in ("settings", "texts")):
            raise ValueError("settings and texts are no objects")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path}: can't be read ({error!r}). It says what this run was started with: put the complete file there. "
            f"{_NEW}"
        ) from error
    return record


def _fixed_settings(config: PretrainConfig) -> dict[str, Any]:
    sections = asdict(config) | {"bilm": config.bilm.to_dict()}
    named = flat(json.loads(json.dumps(sections)))
    return {key: value for key, value in named if not key.startswith(CHANGEABLE)}


def _compare(path: Path, recorded: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in now.items():
        if key in recorded and recorded[key] != value:  # a later version may have more settings
            todo = "Set it back"
            named = {"vocabulary": f"the {files.WORDS} of the run", "paths.vocabulary": "the file"}
            named["paths.init"] = f"its {files.WEIGHTS}"
            if key in named:
                todo += f", or put {named[key]} with the first SHA-256 back,"
            raise SettingsError(
                f"{path}: this run was started with {key} = {recorded[key]}, but now it is {value}. {todo} to go on. "
                f"{_NEW}"
            )


def _check_text(source: str, corpus: PreparedCorpus, output: Path) -> None:
    corpus.verify()
    old = sorted(size for _, size, _ in corpus.meta.sources)
    try:
        new = sorted(file.stat().st_size for file in find_files(source, output))
    except (CorpusError, OSError):  # it may be gone
        return
    if old != new:
        had, has = (f"{sum(n):,} bytes in files: {len(n):,}, the largest {n[-1]:,}" for n in (old, new))
        raise SettingsError(
            f"{source}: the text has changed since this run was started: it had {had}; now {has}. Put the earlier text "
            f"back to go on. {_NEW}"
        )


def _digests(paths: PathSettings, output: Path) -> dict[str, str | None]:
    """Return the SHA-256 of words and weights, None for what is not set. Files that are gone are left out."""
    found: dict[str, Path | None] = {"vocabulary": output / files.WORDS}
    found["paths.vocabulary"] = None if paths.vocabulary is None else Path(paths.vocabulary)
    with suppress(SettingsError):  # a biLM whose download or package was removed after the run began
        found["paths.init"] = None if paths.init is None else find_bilm(paths.init) / files.WEIGHTS
    return {
        key: None if file is None else sha256_of(file) if key == "paths.init" else _sha256_of_words(file)
        for key, file in found.items()
        if file is None or file.is_file()
    }


def _sha256_of_words(file: Path) -> str:
    return hashlib.sha256("".join(f"{word}\n" for word in read_words(file)).encode()).hexdigest()


# The model before the first update


def starting_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """Return the model before the first update, with random weights or those of paths.init."""
    generator, model, unigram = torch.Generator(), empty_model(config, vocabulary), vocabulary.log_unigram()
    generator.manual_seed(config.training.seed)
    if config.paths.init is None:
        model.bilm.reset_parameters(generator)
    model.softmax.reset_parameters(None if unigram is None else torch.from_numpy(unigram), generator)
    if config.paths.init is not None:
        trained = _trained(config, config.paths.init)
        if isinstance(trained, LanguageModel):
            _copy_rows(model.softmax, vocabulary, trained)
        model.bilm = trained if isinstance(trained, BiLM) else trained.bilm
    return model


def empty_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """Return a model to be restored from a checkpoint. It needs no paths.init."""
    return LanguageModel(BiLM(config.bilm), Softmax(len(vocabulary), config.bilm.projection_dim), vocabulary)


def _trained(config: PretrainConfig, name: str) -> BiLM | LanguageModel:
    output, folder = softmax_folder(name), find_bilm(name)
    path = folder / files.OPTIONS
    if read_options(path) != config.bilm:
        raise SettingsError(
            f"[bilm] has other sizes than {path}. Expected the same: the run starts from paths.init. Leave [bilm] "
            "and its subsections out of the config, and the sizes of paths.init are used."
        )
    if output is not None:
        return LanguageModel.load(name)
    if not config.training.frozen_tokens:
        raise no_softmax(name)
    weights = read_weights(folder / files.WEIGHTS, config.bilm)
    return BiLM.from_arrays(config.bilm, weights)


@torch.no_grad()
def _copy_rows(softmax: Softmax, vocabulary: Vocabulary, before: LanguageModel) -> None:
    """Copy the rows of words that both vocabularies have."""
    rows = {word: row for row, word in enumerate(before.words)}
    shared = [(row, rows[word]) for row, word in enumerate(vocabulary.words) if word in rows]
    new, old = (torch.tensor(column) for column in zip(*shared))
    softmax.weight[new] = before.softmax.weight[old]
    softmax.bias[new] = before.softmax.bias[old]
