"""The files that spacy-elmo reads and writes, as numpy arrays and dataclasses. Nothing here needs torch."""

from .characters import batch_to_ids_array, boundary_ids, count_truncated, words_to_ids
from .options import BiLMOptions, read_options, write_options
from .vectors import VectorsWriter, read_vectors
from .weights import expected_parameters, read_weights, write_weights

__all__ = [
    "BiLMOptions",
    "VectorsWriter",
    "batch_to_ids_array",
    "boundary_ids",
    "count_truncated",
    "expected_parameters",
    "read_options",
    "read_vectors",
    "read_weights",
    "words_to_ids",
    "write_options",
    "write_weights",
]
