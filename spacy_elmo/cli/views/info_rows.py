"""The rows that `elmo info` prints for a file, each with a name and a value."""

from collections.abc import Iterator
from pathlib import Path

import h5py

from ...errors import Errors, VectorsError, WeightsError
from ...formats.hdf5_checks import check_dataset, exists, find_dataset, list_names, open_hdf5, root_names
from ...formats.hdf5_vectors import INDEX_NAME, keyed_datasets, read_vectors
from ...formats.official import find_official
from ...formats.options import BiLMOptions
from ...formats.options_checks import MAX_FILTERS, MAX_HIGHWAY, MAX_LAYERS
from ...formats.weights.hdf5 import TYPES, read_weights
from ...modules.loading import EMBEDDED, embedded_files
from ..shared.checksums import sha256_of

Rows = list[tuple[str, str]]
SHA256 = "SHA-256"
_EMBEDDED = f"{EMBEDDED}, the embedded one"


def file_rows(path: Path) -> Rows:
    """Return size and SHA-256 of a file. Raises OSError if it can't be read."""
    return [("size", f"{path.stat().st_size:,} bytes"), (SHA256, sha256_of(path))]


def option_rows(options: BiLMOptions, sha256: str | None, embedded: bool = False) -> Rows:
    """Return the sizes and settings of a biLM.

    options: the sizes and settings.
    sha256: of its options.json; None if there is no such file.
    embedded: whether its weights are known to be those of the embedded biLM.
    """
    model = _EMBEDDED if embedded else _embedded("options.json", sha256) or _by_sizes(options)
    clips = [f"{value:g}" if value else "none" for value in (options.cell_clip, options.proj_clip)]
    return [
        ("character vectors", f"{options.char_dim}"),
        ("filters", ", ".join(f"{n:,} of width {width}" for width, n in options.filters)),
        ("filters together", f"{options.n_filters:,}, {options.activation}"),
        ("characters a token", f"{options.max_characters}"),
        ("highway layers", f"{options.n_highway}"),
        ("LSTM dim", f"{options.dim:,}"),
        ("LSTM projection dim", f"{options.projection_dim:,}"),
        ("LSTM layers", f"{options.n_layers} in each direction"),
        ("clips", f"cell {clips[0]}, projection {clips[1]}"),
        ("skip connections", "yes" if options.use_skip_connections else "no"),
        ("vectors", f"{options.layers} layers of {options.width:,}"),
        ("parameters", f"{options.n_parameters:,}"),
        ("model", model),
    ]


def weight_rows(path: Path, options: BiLMOptions, sha256: str | None) -> Rows:
    """Return what a weight file holds, after reading all of it. Raises WeightsError if it does not fit the options."""
    # row 0 of the embedding is not in the file
    n_parameters = sum(array.size for array in read_weights(path, options).values()) - options.char_dim
    return [
        ("weights", "all there, with the sizes of the options"),
        ("parameters", f"{n_parameters:,}"),
        ("model", _model(options, sha256)),
    ]


def lone_weight_rows(path: Path, sha256: str | None) -> Rows:
    """Return the datasets of a weight file whose options are unknown. Raises WeightsError if it is not a biLM's."""
    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        shapes = list(_shapes(file))
        if not shapes:
            message = Errors.WEIGHTS_MISSING
            raise WeightsError(message.format(path=path, missing="char_embed", found=root_names(file)))
    return [*shapes, ("model", _model(None, sha256))]


def vector_rows(path: Path) -> Rows:
    """Return what a file of embedded sentences holds, after reading all of it. Raises VectorsError."""
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed = bool(keyed_datasets(file))
    if keyed:
        shapes = [array.shape for _, array in read_vectors(path)]
        return [("embedded sentences", f"{len(shapes):,}, each named by its text"), ("first", f"{shapes[0]}")]
    count, first = 0, "none"
    for _, array in read_vectors(path):
        first = first if count else f"{array.shape}, " + ("(layers, tokens, width)", "(tokens, width)")[array.ndim == 2]
        count += 1
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        index = "yes" if exists(file, INDEX_NAME, VectorsError) else "no: the sentences' texts are not in the file"
    return [("embedded sentences", f"{count:,}"), ("first sentence", first), (INDEX_NAME, index)]


def holds_vectors(path: Path) -> bool:
    """Return whether an HDF5 file has datasets named by numbers, an index of sentences, or only sentences.

    Raises VectorsError if it can't be read.
    """
    with open_hdf5(path, "weights of a biLM or embedded sentences", VectorsError) as file:
        names = list_names(file, VectorsError)
        return any(name == INDEX_NAME or name.isdecimal() for name in names) or bool(keyed_datasets(file))


def _shapes(file: h5py.File) -> Iterator[tuple[str, str]]:
    groups = [["char_embed", "CNN_proj/W_proj"], [f"CNN/W_cnn_{i}" for i in range(MAX_FILTERS)]]
    groups.append([f"CNN_high_{k}/W_carry" for k in range(MAX_HIGHWAY)])
    for direction in range(2):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{{}}/LSTMCell"
        groups += [[f"{cell.format(k)}/{name}" for k in range(MAX_LAYERS)] for name in ("W_0", "W_P_0")]
    for name in (name for group in groups for name in group):
        dataset = find_dataset(file, name, WeightsError)
        if dataset is not None:
            check_dataset(dataset, name, WeightsError, TYPES)
            yield name, " x ".join(f"{size:,}" for size in dataset.shape)


def _model(options: BiLMOptions | None, sha256: str | None) -> str:
    """Return the name of the published model with this SHA-256, or else with these sizes."""
    if embedded := _embedded("weights.hdf5", sha256):
        return embedded
    published = find_official(options, sha256)
    if published and published[1]:
        return f"the official {published[0].name} model, by the SHA-256 that is quoted for it"
    if options is None:
        return "not known by its SHA-256"
    return _by_sizes(options) + ("; the SHA-256 is not one that this version knows" if published else "")


def _embedded(name: str, sha256: str | None) -> str:
    own = next(Path(file) for file in embedded_files() if Path(file).name == name)
    return _EMBEDDED if sha256 == sha256_of(own) else ""


def _by_sizes(options: BiLMOptions) -> str:
    published = find_official(options)
    return (
        f"the sizes of the official {published[0].name} model"
        if published
        else "a biLM of your own, not an official model"
    )
