"""What a run starts from: a model of random weights, or one that is to be tuned to another text."""

from pathlib import Path

import numpy as np
import torch

from ..errors import Errors, SettingsError
from ..formats.hdf5_weights import read_weights
from ..formats.options import read_options
from ..modules import BiLM
from ..modules.adaptive_softmax import AdaptiveSoftmax, check_cutoffs
from ..modules.output_layer import OutputLayer
from ..modules.softmax import Softmax
from .config import PretrainConfig
from .language_model import OPTIONS, SOFTMAX, WEIGHTS, WORDS, LanguageModel
from .prepared import PreparedCorpus
from .vocabulary import Vocabulary, count_words
from .vocabulary_file import SPECIAL, UNKNOWN


def find_vocabulary(config: PretrainConfig, corpus: PreparedCorpus) -> Vocabulary:
    """The words to predict: those of paths.vocabulary; else of paths.init, if it has a softmax; else of the corpus.

    Counts are those of the corpus. Raises ElmoError, also for what check_start refuses: a run that can't start is
    found before its words are counted and kept.
    """
    check_start(config)
    given = config.paths.vocabulary
    if given is None and config.paths.init is not None and (Path(config.paths.init) / SOFTMAX).exists():
        given = str(Path(config.paths.init) / WORDS)
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
    if config.paths.init is None:
        return
    folder = Path(config.paths.init)
    if read_options(folder / OPTIONS).to_dict() != config.bilm.to_dict():
        raise SettingsError(Errors.TUNE_OPTIONS.format(path=folder / OPTIONS))
    if not config.training.frozen_tokens and not (folder / SOFTMAX).exists():
        raise SettingsError(Errors.TUNE_NO_SOFTMAX.format(folder=folder))


def starting_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """The model of the first step. Raises ElmoError."""
    check_start(config)
    generator = torch.Generator().manual_seed(config.training.seed)
    softmax: OutputLayer
    if config.training.softmax.kind == "adaptive":
        softmax = AdaptiveSoftmax(len(vocabulary), config.bilm.projection_dim, config.training.softmax.cutoffs)
    else:
        softmax = Softmax(len(vocabulary), config.bilm.projection_dim)
    if config.paths.init is None:
        bilm = BiLM(config.bilm)
        bilm.reset_parameters(generator)
        _reset(softmax, vocabulary, generator)
        return LanguageModel(bilm, softmax, vocabulary)
    folder = Path(config.paths.init)
    _reset(softmax, vocabulary, generator)
    if (folder / SOFTMAX).exists():
        before = LanguageModel.load(folder)
        _keep_rows(softmax, vocabulary, before)
        return LanguageModel(before.bilm, softmax, vocabulary)
    bilm = BiLM.from_arrays(config.bilm, read_weights(folder / WEIGHTS, config.bilm))
    return LanguageModel(bilm, softmax, vocabulary)


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
