"""What a run starts from, by its whole config."""

from pathlib import Path

from spacy_elmo.pretraining import starting
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.trainer import Trainer
from spacy_elmo.pretraining.vocabulary import Vocabulary


def find_vocabulary(config: PretrainConfig, corpus: PreparedCorpus) -> Vocabulary:
    """The words to predict."""
    return starting.find_vocabulary(config.paths, config.vocabulary, corpus)


def check_start(config: PretrainConfig) -> None:
    """Refuse what a run can't start with."""
    starting.check_start(config.bilm, config.paths, config.training, config.vocabulary.size)


def check_new_run(config: PretrainConfig, output: Path) -> None:
    """Refuse both."""
    starting.check_new_run(config.bilm, config.paths, config.vocabulary, config.training, output)


def check_paths(config: PretrainConfig, output: Path) -> None:
    """Refuse files that are not there."""
    starting.check_paths(config.paths, output)


def starting_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """The model of the first step."""
    return starting.starting_model(config.bilm, config.paths, config.training, vocabulary)


def empty_model(config: PretrainConfig, vocabulary: Vocabulary) -> LanguageModel:
    """A model to be filled from a checkpoint."""
    return starting.empty_model(config.bilm, config.training.softmax, vocabulary)


def trainer_of(config: PretrainConfig, model: LanguageModel, corpus: PreparedCorpus) -> Trainer:
    """A trainer in a single process."""
    return Trainer(config.training, model, corpus, config.corpus.shuffle_block)
