"""A small biLM for the tests of the engine."""

import dataclasses

from bilm_cases import bilm_of, random_datasets

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM

OPTIONS = BiLMOptions(
    char_dim=4,
    filters=((1, 4), (2, 8), (3, 8)),
    n_highway=1,
    activation="relu",
    max_characters=50,
    dim=24,
    projection_dim=8,
    n_layers=2,
    cell_clip=3.0,
    proj_clip=3.0,
    use_skip_connections=True,
)


def small(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=5))
