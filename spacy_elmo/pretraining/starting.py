"""The model that a run starts from: random weights, or a trained biLM that is tuned to another text."""

from pathlib import Path

import numpy as np
import torch

from ..errors import CorpusError, SettingsError
from ..formats.names import is_hidden, is_named
from ..formats.options import BiLMOptions, read_options
from ..formats.text import find_files, refuse_inside
from ..formats.weights import read_weights
from ..modules import BiLM
from ..modules.loading import find_bilm, is_embedded, no_bilm
from ..modules.softmax import AdaptiveSoftmax, OutputLayer, Softmax, check_cutoffs
from .checkpoint import CHECKPOINTS
from .config import PathSettings, SoftmaxSettings, TrainingSettings, VocabularySettings, refuse
from .language_model import (
    BEST,
    COUNTS,
    FILES,
    LAST,
    OPTIONS,
    RUN,
    WEIGHTS,
    WORDS,
    LanguageModel,
    has_softmax,
    no_softmax,
    refuse_new_run,
    softmax_folder,
)
from .metrics import CURVE, METRICS
from .prepared import META, PreparedCorpus
from .trainer import enough_memory
from .vocabulary import SPECIAL, UNKNOWN, Vocabulary, count_words, least_count, read_words

CONFIG, TRAIN_TEXT = "config.cfg", "corpus"
WRITTEN = (CONFIG, *FILES, COUNTS, METRICS, CURVE, BEST, LAST)


def is_run(output: Path) -> bool:
    """Return whether a folder is that of a run, which may have been stopped while its text was prepared."""
    own = (output / RUN, output / TRAIN_TEXT / META, output / CHECKPOINTS)
    return any(path.exists() for path in own)


def refuse_foreign(output: Path) -> None:
    """Raise SettingsError if a folder is not that of a run, and has files of the names that a run or a biLM has.

    output: folder of the run.
    """
    if not is_run(output):
        foreign = [name for name in WRITTEN if (output / name).exists()]
        if foreign:
            raise SettingsError(
                f"{output}: holds {', '.join(foreign[:3])}, but no run.json, so it is not the folder of a run, "
                "which would replace these files or be mixed up with them. Expected a new folder, or that of a "
                "run: give another one."
            )


def refuse_other_folder(output: Path) -> None:
    """Raise SettingsError if a folder has files, and is not that of a run: it would be renamed by a restart.

    Hidden files do not count: an attempt that failed early leaves them.

    output: folder of the run.
    """
    if output.is_dir() and not is_run(output) and any(not path.name.startswith(".") for path in output.iterdir()):
        raise SettingsError(
            f"{output}: holds files, but no run.json, so it is not the folder of a run. Expected one for "
            "--restart, which renames it: leave the option out, or give another folder."
        )


def find_vocabulary(paths: PathSettings, settings: VocabularySettings, corpus: PreparedCorpus) -> Vocabulary:
    """Return the words to predict, with their counts in the corpus.

    They are the words of paths.vocabulary; if it is not set, those of paths.init, if it has a softmax; otherwise the
    most frequent words of the corpus.

    paths: files of the run.
    settings: size of a vocabulary that is built from the corpus.
    corpus: the training text.

    Raises ElmoError if a file can't be used.
    """
    source = _words_file(paths)
    counted = count_words(corpus)
    if source is None:
        least = least_count(counted, settings.size) if settings.min_count is None else settings.min_count
        return Vocabulary.from_counts(counted, settings.size, least)
    words = Vocabulary.read(source).words
    counts = np.array([counted.words[word] for word in words], np.int64)
    counts[: len(SPECIAL)] = counted.n_sentences
    counts[UNKNOWN] = counted.words.total() - counts[len(SPECIAL) :].sum()
    return Vocabulary(words, counts)


def most_words(paths: PathSettings, settings: VocabularySettings) -> int:
    """Return how many words a run predicts at most: those of a file, or `settings.size` if they come from its text.

    paths: files of the run.
    settings: size of a vocabulary that is built.

    Raises ElmoError if the file can't be used.
    """
    source = _words_file(paths)
    return settings.size if source is None else len(read_words(Path(source)))


def _words_file(paths: PathSettings) -> str | None:
    """Return the file of the words to predict; None if they are built from the text."""
    source, init = paths.vocabulary, paths.init
    if source is None and init is not None and has_softmax(init) and (folder := softmax_folder(init)) is not None:
        return str(folder / WORDS)
    return source


def check_new_run(
    options: BiLMOptions, paths: PathSettings, vocabulary: VocabularySettings, training: TrainingSettings, output: Path
) -> None:
    """Refuse a new run by all that can be checked without reading a text, so that nothing is written or moved for it.

    options: sizes of the network.
    paths: files of the run.
    vocabulary: settings of the words.
    training: settings of the softmax and of frozen_tokens.
    output: folder of the run.

    Raises ElmoError as `refuse_foreign`, `check_paths` and `check_start` do, or if the file of the words or those of
        paths.init can't be used.
    """
    refuse_foreign(output)
    check_paths(paths, output)
    check_start(options, paths, training, most_words(paths, vocabulary))
    if paths.init is not None:
        with enough_memory(training):
            _trained(paths.init, options)  # read again after the text was prepared, which may take hours


def check_start(options: BiLMOptions, paths: PathSettings, training: TrainingSettings, n_words: int) -> None:
    """Refuse settings that a run can't start with, as far as they can be checked without its text.

    options: sizes of the network.
    paths: files of the run.
    training: settings of the softmax and of frozen_tokens.
    n_words: size of the vocabulary, or `most_words`.

    Raises ElmoError if the settings do not fit each other or the files.
    """
    if training.softmax.kind == "adaptive":
        check_cutoffs(n_words, options.projection_dim, training.softmax.cutoffs)
    init = paths.init
    if init is None:
        return
    path = find_bilm(init) / OPTIONS
    if read_options(path).to_dict() != options.to_dict():
        raise SettingsError(
            f"[bilm] has other sizes than {path}. Expected the same: the run starts from paths.init. Leave [bilm] "
            "and its subsections out of the config, and the sizes of paths.init are used."
        )
    if not training.frozen_tokens and not has_softmax(init):
        raise no_softmax(init)


def check_paths(paths: PathSettings, output: Path) -> None:
    """Refuse a new run whose files do not exist. No text is read.

    paths: files of the run, relative to the working directory, as in spaCy's configs.
    output: folder of the run, whose files do not belong to the texts.

    Raises CorpusError or SettingsError, which names the setting.
    """
    for name, source in (("train", paths.train), ("heldout", paths.heldout)):
        try:
            if source is not None:
                find_files(source, output)
                refuse_inside(source, output, output)
        except CorpusError as error:
            raise CorpusError(f"paths.{name}: {error}") from error
    if paths.vocabulary is not None and not Path(paths.vocabulary).is_file():
        refuse("paths.vocabulary", paths.vocabulary, "a file that is there, with one word a line")
    if paths.init is not None:
        check_init(paths.init)


def check_init(init: str) -> None:
    """Raise ElmoError if there is no biLM to tune. init: paths.init, a folder or a name."""
    if is_hidden(init) and not Path(init).is_dir():
        raise no_bilm(init)
    refuse_new_run(find_bilm(init))
    if not (Path(init).is_dir() or is_embedded(init) or is_named(init)):
        refuse("paths.init", init, "a folder that is there, of a biLM or of a pretraining run, or a biLM's name")


def empty_model(options: BiLMOptions, softmax: SoftmaxSettings, vocabulary: Vocabulary) -> LanguageModel:
    """Return a model without meaningful weights, to be restored from a checkpoint. It needs no paths.init.

    options: sizes of the network.
    softmax: its settings.
    vocabulary: words of the softmax.

    Raises ElmoError if the cutoffs of an adaptive softmax do not fit the vocabulary.
    """
    return LanguageModel(BiLM(options), _output_layer(options, softmax, vocabulary), vocabulary)


def starting_model(
    options: BiLMOptions, paths: PathSettings, training: TrainingSettings, vocabulary: Vocabulary
) -> LanguageModel:
    """Return the model before the first update, with random weights or those of paths.init.

    options: sizes of the network.
    paths: files of the run.
    training: settings of the softmax, the seed and frozen_tokens.
    vocabulary: words of the softmax.

    Raises ElmoError as `check_start` does, and if the files of paths.init can't be read.
    """
    check_start(options, paths, training, len(vocabulary))
    generator = torch.Generator().manual_seed(training.seed)
    softmax = _output_layer(options, training.softmax, vocabulary)
    if paths.init is None:
        bilm = BiLM(options)
        bilm.reset_parameters(generator)
        _reset(softmax, vocabulary, generator)
        return LanguageModel(bilm, softmax, vocabulary)
    _reset(softmax, vocabulary, generator)
    trained = _trained(paths.init, options)
    if isinstance(trained, BiLM):
        return LanguageModel(trained, softmax, vocabulary)
    _copy_rows(softmax, vocabulary, trained)
    return LanguageModel(trained.bilm, softmax, vocabulary)


def _trained(init: str, options: BiLMOptions) -> BiLM | LanguageModel:
    """Return the biLM of paths.init, with its softmax if it has one. Raises ElmoError if its files can't be used."""
    if has_softmax(init):
        return LanguageModel.load(init, untrusted=True)
    weights = read_weights(find_bilm(init) / WEIGHTS, options, untrusted=not is_embedded(init))
    return BiLM.from_arrays(options, weights)


def _output_layer(options: BiLMOptions, softmax: SoftmaxSettings, vocabulary: Vocabulary) -> OutputLayer:
    if softmax.kind == "adaptive":
        return AdaptiveSoftmax(len(vocabulary), options.projection_dim, softmax.cutoffs)
    return Softmax(len(vocabulary), options.projection_dim)


def _reset(softmax: OutputLayer, vocabulary: Vocabulary, generator: torch.Generator) -> None:
    unigram = vocabulary.log_unigram()
    softmax.reset_parameters(None if unigram is None else torch.from_numpy(unigram), generator)


@torch.no_grad()
def _copy_rows(softmax: OutputLayer, vocabulary: Vocabulary, before: LanguageModel) -> None:
    """Copy the rows of words that both vocabularies have. An adaptive softmax is copied only if all words are equal."""
    if isinstance(softmax, AdaptiveSoftmax) or isinstance(before.softmax, AdaptiveSoftmax):
        alike = isinstance(softmax, AdaptiveSoftmax) and isinstance(before.softmax, AdaptiveSoftmax)
        if not alike or vocabulary.words != before.words or softmax.cutoffs != before.softmax.cutoffs:
            raise SettingsError(
                "paths.init has another softmax than training.softmax asks for. An adaptive softmax can only be "
                "tuned as it is: with the same vocabulary and cutoffs, and not from or to another kind. To fit a "
                "new one, give a folder with only options.json and weights.hdf5, and set training.frozen_tokens."
            )
        softmax.load_state_dict(before.softmax.state_dict())
        return
    rows = {word: row for row, word in enumerate(before.words)}
    shared = [(row, rows[word]) for row, word in enumerate(vocabulary.words) if word in rows]
    new, old = (torch.tensor(column) for column in zip(*shared))
    softmax.weight[new] = before.softmax.weight[old]
    softmax.bias[new] = before.softmax.bias[old]
