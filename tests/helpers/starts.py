"""What a run starts from, by its whole config."""

from spacy_elmo.pretraining import folder
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.trainer import Trainer
from spacy_elmo.pretraining.vocabulary import Vocabulary


def find_vocabulary(config: PretrainConfig, corpus: PreparedCorpus) -> Vocabulary:
    """The words to predict."""
    init = None if config.paths.init is None else folder.find_init(config.paths.init)
    return folder.find_vocabulary(config, corpus, init)


def trainer_of(config: PretrainConfig, model: LanguageModel, corpus: PreparedCorpus) -> Trainer:
    """A trainer in a single process."""
    return Trainer(config.training, model, corpus, config.corpus.shuffle_block)
