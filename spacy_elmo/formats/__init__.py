"""Files and bytes: options, character ids, weights and embedded sentences, in numpy."""

from .characters import batch_to_ids_array, boundary_ids, count_truncated, words_to_ids
from .hdf5_vectors import VectorsWriter, read_vectors
from .options import BiLMOptions, read_options, write_options
from .weights.hdf5 import read_weights, write_weights
from .weights.table import expected_parameters, parameter_problems

__all__ = [
    "BiLMOptions",
    "VectorsWriter",
    "batch_to_ids_array",
    "boundary_ids",
    "count_truncated",
    "expected_parameters",
    "parameter_problems",
    "read_options",
    "read_vectors",
    "read_weights",
    "words_to_ids",
    "write_options",
    "write_weights",
]
