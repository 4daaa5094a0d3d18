"""What a run starts from: a model of random weights, or one that is to be tuned to another text."""

from pathlib import Path

import numpy as np
import torch

from ...errors import CorpusError, Errors, SettingsError
from ...formats.options import BiLMOptions, read_options
from ...formats.weights.hdf5 import read_weights
from ...modules import BiLM
from ...modules.softmax.adaptive import AdaptiveSoftmax, check_cutoffs
from ...modules.softmax.full import Softmax
from ...modules.softmax.output_layer import OutputLayer
from ..model.files import OPTIONS, WEIGHTS, WORDS, bilm_folder, has_softmax, is_embedded, no_package, softmax_folder
from ..model.language_model import LanguageModel
from ..settings.checks import refuse
from ..settings.sections import PathSettings, SoftmaxSettings, TrainingSettings, VocabularySettings
from ..text.prepared import PreparedCorpus
from ..text.sources import find_files
from ..text.vocabulary import Vocabulary, count_words
from ..text.vocabulary_file import SPECIAL, UNKNOWN


def find_vocabulary(paths: PathSettings, settings: VocabularySettings, corpus: PreparedCorpus) -> Vocabulary:
    """The words to predict: those of paths.vocabulary; else of paths.init, if it has a softmax; else of the corpus.

    Their counts are those of the corpus. Raises ElmoError.
    """
    given, init = paths.vocabulary, paths.init
    if given is None and init is not None and has_softmax(init) and (folder := softmax_folder(init)) is not None:
        given = str(folder / WORDS)
    counted = count_words(corpus)
    if given is None:
        return Vocabulary.from_counts(counted, settings.size, settings.min_count)
    words = Vocabulary.read(given).words
    counts = np.array([counted.words[word] for word in words], np.int64)
    counts[: len(SPECIAL)] = counted.n_sentences
    counts[UNKNOWN] = counted.words.total() - counts[len(SPECIAL) :].sum()
    return Vocabulary(words, counts)


def check_start(options: BiLMOptions, paths: PathSettings, training: TrainingSettings, n_words: int) -> None:
    """Refuse what a run can't start with, as far as no text is needed to see it. Raises ElmoError.

    options: sizes of the network; n_words: of the vocabulary.
    """
    if training.softmax.kind == "adaptive":
        check_cutoffs(n_words, options.projection_dim, training.softmax.cutoffs)
    init = paths.init
    if init is None:
        return
    path = bilm_folder(init) / OPTIONS
    if read_options(path).to_dict() != options.to_dict():
        raise SettingsError(Errors.TUNE_OPTIONS.format(path=path))
    if not training.frozen_tokens and not has_softmax(init):
        raise no_package(init) if is_embedded(init) else SettingsError(Errors.TUNE_NO_SOFTMAX.format(folder=init))


def check_paths(paths: PathSettings, output: Path) -> None:
    """Refuse a run to be begun in `output` whose files are not there. Raises CorpusError, SettingsError.

    Relative paths are relative to the working directory, as in spaCy's configs. No text is read.
    """
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


def empty_model(options: BiLMOptions, softmax: SoftmaxSettings, vocabulary: Vocabulary) -> LanguageModel:
    """A model of the run's sizes, to be filled from a checkpoint: paths.init may be gone. Raises ElmoError."""
    return LanguageModel(BiLM(options), _output_layer(options, softmax, vocabulary), vocabulary)


def starting_model(
    options: BiLMOptions, paths: PathSettings, training: TrainingSettings, vocabulary: Vocabulary
) -> LanguageModel:
    """The model of the first step: random weights, or those of paths.init. Raises ElmoError."""
    check_start(options, paths, training, len(vocabulary))
    generator = torch.Generator().manual_seed(training.seed)
    softmax = _output_layer(options, training.softmax, vocabulary)
    if paths.init is None:
        bilm = BiLM(options)
        bilm.reset_parameters(generator)
        _reset(softmax, vocabulary, generator)
        return LanguageModel(bilm, softmax, vocabulary)
    _reset(softmax, vocabulary, generator)
    if has_softmax(paths.init):
        before = LanguageModel.load(paths.init)
        _keep_rows(softmax, vocabulary, before)
        return LanguageModel(before.bilm, softmax, vocabulary)
    weights = read_weights(bilm_folder(paths.init) / WEIGHTS, options)
    return LanguageModel(BiLM.from_arrays(options, weights), softmax, vocabulary)


def _output_layer(options: BiLMOptions, softmax: SoftmaxSettings, vocabulary: Vocabulary) -> OutputLayer:
    if softmax.kind == "adaptive":
        return AdaptiveSoftmax(len(vocabulary), options.projection_dim, softmax.cutoffs)
    return Softmax(len(vocabulary), options.projection_dim)


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
