"""A small biLM for the tests of the engine."""

import dataclasses

from bilm_cases import bilm_of, random_datasets

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8), (3, 8)), 1, "relu", 50, 24, 8, 2, 3.0, 3.0, True)


def small(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=5))
