"""The rows that `elmo info` prints for a file, each with a name and a value.

HDF5 files may come from strangers, so another process reads them.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import ElmoError
from ...formats.checksums import sha256_of
from ...formats.contents.untrusted import shapes_in, vectors_in
from ...formats.hdf5_vectors import INDEX_NAME
from ...formats.named.bilms import folders_of_packages
from ...formats.options import BiLMOptions, read_options
from ...formats.published.sizes import find_official
from ...formats.readers import readers_of
from ...formats.weights.hdf5 import read_weights
from ...modules.loading import EMBEDDED, embedded_files

Rows = list[tuple[str, str]]
Contents = Mapping[str, Any]
_EMBEDDED = f"{EMBEDDED}, the embedded one"


def option_rows(options: BiLMOptions, sha256: str | None, bilm: str | None = None) -> Rows:
    """Return the sizes and settings of a biLM.

    options: the sizes and settings.
    sha256: of its options.json; None if there is no such file.
    bilm: the name of the embedded biLM, or of one in a package, if its weights are known to be the same; None: they are
        not.
    """
    model = _named(bilm) if bilm else _embedded("options.json", sha256) or _by_sizes(options)
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


def reader_rows(options: BiLMOptions, contents: Contents, parameters: Iterable[str] | None) -> Rows:
    """Return which programs can read a biLM.

    options: its sizes.
    contents: of its options.json.
    parameters: names of its parameters; None: those that the sizes require.
    """
    readers = readers_of(options, parameters, contents)
    rows = [("read by", ", ".join(reader.name for reader in readers if not reader.problems))]
    return rows + [(f"not by {name}", problem) for name, problems in readers for problem in problems]


def weight_rows(path: Path, options: BiLMOptions, contents: Contents, sha256: Callable[[], str]) -> Rows:
    """Return what a weight file holds, after reading all of it.

    path: the weights.hdf5.
    options: the sizes that it must have.
    contents: of its options.json.
    sha256: computes its SHA-256. It is called after the checks, since that takes long for a large file.

    Raises WeightsError if the file does not fit the options.
    """
    # row 0 of the embedding is not in the file
    arrays = read_weights(path, options, untrusted=True)
    n_parameters = sum(array.size for array in arrays.values()) - options.char_dim
    return [
        ("weights", "all there, with the sizes of the options"),
        ("parameters", f"{n_parameters:,}"),
        *reader_rows(options, contents, arrays),
        ("model", _model(options, sha256())),
    ]


def lone_weight_rows(path: Path, sha256: Callable[[], str]) -> Rows:
    """Return the datasets of a weight file whose options are unknown.

    path, sha256: as for `weight_rows`.

    Raises WeightsError if it is not a biLM's.
    """
    rows = [(name, " x ".join(f"{size:,}" for size in shape)) for name, shape in shapes_in(path)]
    return [*rows, ("model", _model(None, sha256()))]


def vector_rows(path: Path) -> Rows:
    """Return what a file of embedded sentences holds, after reading all of it. Raises VectorsError."""
    facts = vectors_in(path)
    if facts.keyed:
        return [("embedded sentences", f"{facts.n_sentences:,}, each named by its text"), ("first", f"{facts.first}")]
    first = "none"
    if facts.first is not None:
        first = f"{facts.first}, " + ("(layers, tokens, width)", "(tokens, width)")[len(facts.first) == 2]
    index = "yes" if facts.has_index else "no: the sentences' texts are not in the file"
    return [("embedded sentences", f"{facts.n_sentences:,}"), ("first sentence", first), (INDEX_NAME, index)]


def _model(options: BiLMOptions | None, sha256: str | None) -> str:
    """Return the name of the published model with this SHA-256, or else with these sizes."""
    if known := _embedded("weights.hdf5", sha256) or _packaged(sha256):
        return known
    published = find_official(options, sha256)
    if published and published[1]:
        return f"the official {published[0].name} model, by the SHA-256 that is quoted for it"
    if options is None:
        return "not known by its SHA-256"
    return _by_sizes(options) + ("; the SHA-256 is not one that this version knows" if published else "")


def _named(bilm: str) -> str:
    return _EMBEDDED if bilm == EMBEDDED else f"{bilm}, of an installed package"


def _embedded(name: str, sha256: str | None) -> str:
    own = next(Path(file) for file in embedded_files() if Path(file).name == name)
    return _EMBEDDED if sha256 == sha256_of(own) else ""


def _packaged(sha256: str | None) -> str:
    """Return which biLM of an installed package has weights with this SHA-256; "" if none has."""
    for bilm, folder in folders_of_packages().items():
        with suppress(OSError):
            if bilm != EMBEDDED and sha256_of(folder / "weights.hdf5") == sha256:
                return _named(bilm)
    return ""


def _by_sizes(options: BiLMOptions) -> str:
    """Return the biLM with these sizes: an official one, or one of an installed package."""
    if published := find_official(options):
        return f"the sizes of the official {published[0].name} model"
    for bilm, folder in folders_of_packages().items():
        with suppress(ElmoError):
            if read_options(folder / "options.json") == options:
                return f"the sizes of {bilm}"
    return "a biLM of your own, not an official model"
