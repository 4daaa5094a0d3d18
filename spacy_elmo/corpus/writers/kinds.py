"""The formats by their names."""

from .docbin import DocBinFile
from .hdf5 import Hdf5File
from .npy import NpyFile
from .parquet import ParquetFile
from .safetensors import SafetensorsFile
from .writer import VectorFile

WRITERS: dict[str, type[VectorFile]] = {
    "parquet": ParquetFile,
    "hdf5": Hdf5File,
    "spacy": DocBinFile,
    "safetensors": SafetensorsFile,
    "npy": NpyFile,
}
# the ends of names that say the format, and of those the one that a shard's name has
SUFFIXES = {".parquet": "parquet", ".hdf5": "hdf5", ".h5": "hdf5", ".spacy": "spacy", ".safetensors": "safetensors"}
SUFFIXES |= {".npy": "npy"}
WITHOUT_SENTENCE_VECTORS = ("hdf5", "spacy")
