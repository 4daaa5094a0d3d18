"""What a run starts from: a model of random weights, or one that is to be tuned to another text."""

from pathlib import Path

import numpy as np
import torch

from ...errors import CorpusError, Errors, SettingsError
from ...formats.options import read_options
from ...formats.weights.hdf5 import read_weights
from ...modules import BiLM
from ...modules.softmax.adaptive import AdaptiveSoftmax, check_cutoffs
from ...modules.softmax.full import Softmax
from ...modules.softmax.output_layer import OutputLayer
from ..model.files import OPTIONS, WEIGHTS, WORDS, bilm_folder, has_softmax, is_embedded, no_package, softmax_folder
from ..model.language_model import LanguageModel
from ..settings.checks import refuse
from ..settings.config import PretrainConfig
from ..text.prepared import PreparedCorpus
from ..text.sources import find_files
from ..text.vocabulary import Vocabulary, count_words
from ..text.vocabulary_file import SPECIAL, UNKNOWN


def find_vocabulary(config: PretrainConfig, corpus: PreparedCorpus) -> Vocabulary:
    """The words to predict: those of paths.vocabulary; else of paths.init, if it has a softmax; else of the corpus.

    Counts are those of the corpus. Raises ElmoError, also for what check_start refuses: a run that can't start is
    found before its words are counted and kept.
    """
    check_start(config)
    given, init = config.paths.vocabulary, config.paths.init
    if given is None and init is not None and has_softmax(init) and (folder := softmax_folder(init)) is not None:
        given = str(folder / WORDS)
    counted = count_words(corpus)
    if given is None:
        return Vocabulary.from_counts(counted, config.vocabulary.size, config.vocabulary.min_count)
    words = Vocabulary.read(given).words
    counts = np.array([counted.words[word] for word in words], np.int64)
    counts[: len(SPECIAL)] = counted.n_sentences
    counts[UNKNOWN] = counted.words.total() - counts[len(SPECIAL) :].sum()
    return Vocabulary(words, counts)


def check_start(config: PretrainConfig) -> None:
    """Refuse what no text is needed for to see that a run can't start with it. Raises ElmoError."""
    softmax = config.training.softmax
    if softmax.kind == "adaptive":
        check_cutoffs(config.vocabulary.size, config.bilm.projection_dim, softmax.cutoffs)
    init = config.paths.init
    if init is None:
        return
    options = bilm_folder(init) / OPTIONS
    if read_options(options).to_dict() != config.bilm.to_dict():
        raise SettingsError(Errors.TUNE_OPTIONS.format(path=options))
    if not config.training.frozen_tokens and not has_softmax(init):
        raise no_package(init) if is_embedded(init) else SettingsError(Errors.TUNE_NO_SOFTMAX.format(folder=init))


def check_paths(config: PretrainConfig, output: Path) -> None:
    """Refuse a run to be begun in `output` whose files are not there. Raises CorpusError, SettingsError.

    Relative paths are relative to the working directory, as in spaCy's configs. No text is read.
    """
    paths = config.paths
    for name, source in (("train", paths.train), ("heldout", paths.heldout)):
        try:
            if source is not None:
                find_files(source, output)
        except CorpusError as error:
            raise CorpusError(Errors.CONFIG_SOURCE.format(name=name, error=error)) from error
    if paths.vocabulary is not None and not Path(paths.vocabulary).is_file():
        refuse("paths.vocabulary", paths.vocabulary, "a file that is there, with one word a line")
    if paths.init is not None and not Path(paths.init).is_dir() and not is_embedded(paths.init):
        refuse("paths.init", paths.init, "a folder that is there, with options.json and weights.hdf5, or en_mini")


def empty_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """A model of the run's sizes, to be filled from a checkpoint: paths.init may be gone. Raises ElmoError."""
    return LanguageModel(BiLM(config.bilm), _output_layer(config, vocabulary), vocabulary)


def starting_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """The model of the first step. Raises ElmoError."""
    check_start(config)
    generator = torch.Generator().manual_seed(config.training.seed)
    softmax = _output_layer(config, vocabulary)
    if config.paths.init is None:
        bilm = BiLM(config.bilm)
        bilm.reset_parameters(generator)
        _reset(softmax, vocabulary, generator)
        return LanguageModel(bilm, softmax, vocabulary)
    _reset(softmax, vocabulary, generator)
    if has_softmax(config.paths.init):
        before = LanguageModel.load(config.paths.init)
        _keep_rows(softmax, vocabulary, before)
        return LanguageModel(before.bilm, softmax, vocabulary)
    weights = read_weights(bilm_folder(config.paths.init) / WEIGHTS, config.bilm)
    bilm = BiLM.from_arrays(config.bilm, weights)
    return LanguageModel(bilm, softmax, vocabulary)


def _output_layer(config: PretrainConfig, vocabulary: Vocabulary) -> OutputLayer:
    if config.training.softmax.kind == "adaptive":
        return AdaptiveSoftmax(len(vocabulary), config.bilm.projection_dim, config.training.softmax.cutoffs)
    return Softmax(len(vocabulary), config.bilm.projection_dim)


def _reset(softmax: OutputLayer, vocabulary: Vocabulary, generator: torch.Generator) -> None:
    unigram = vocabulary.log_unigram()
    softmax.reset_parameters(None if unigram is None else torch.from_numpy(unigram), generator)


@torch.no_grad()
def _keep_rows(softmax: OutputLayer, vocabulary: Vocabulary, before: LanguageModel) -> None:
    """Words that both know keep their rows; an adaptive softmax is kept as a whole, and only with its own words."""
    if isinstance(softmax, AdaptiveSoftmax) or isinstance(before.softmax, AdaptiveSoftmax):
        alike = isinstance(softmax, AdaptiveSoftmax) and isinstance(before.softmax, AdaptiveSoftmax)
        if not alike or vocabulary.words != before.words or softmax.cutoffs != before.softmax.cutoffs:
            raise SettingsError(Errors.TUNE_ADAPTIVE)
        softmax.load_state_dict(before.softmax.state_dict())
        return
    rows = {word: row for row, word in enumerate(before.words)}
    shared = [(row, rows[word]) for row, word in enumerate(vocabulary.words) if word in rows]
    new, old = (torch.tensor(column) for column in zip(*shared))
    softmax.weight[new] = before.softmax.weight[old]
    softmax.bias[new] = before.softmax.bias[old]
