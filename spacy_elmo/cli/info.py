"""`elmo info`: the contents of files, and what is wrong with them."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from spacy.cli._util import import_code
from spacy.tokens import Doc

from ..errors import CommandError, ElmoError, WeightsError
from ..formats.contents import OUTPUT, VECTORS_FILE, WEIGHTS, ask_output_layer, ask_shapes, ask_vectors, is_hdf5
from ..formats.contents import ask_kind as ask_kind
from ..formats.docbin import docs_in
from ..formats.names import find_official, folder_named, folders_of_packages, is_named
from ..formats.options import BiLMOptions, read_contents, read_options
from ..formats.paths import refuse_address, sha256_of
from ..formats.vectors import INDEX_NAME
from ..formats.weights import read_weights, readers_of
from ..modules.loading import EMBEDDED, best_of_run, embedded_files
from ..pipeline.attributes import LAYERS, TOKENS, VECTORS, key
from ..pipeline.saved import is_pipeline, pipeline_bilms
from ..pretraining.language_model import BEST, RUN, SOFTMAX, WORDS, softmax_folder
from ..pretraining.vocabulary import read_words
from .console import escaped, msg
from .shared import Code

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
    rows = [(name, " x ".join(f"{size:,}" for size in shape)) for name, shape in ask_shapes(path)]
    return [*rows, ("model", _model(None, sha256()))]


def vector_rows(path: Path) -> Rows:
    """Return what a file of embedded sentences holds, after reading all of it. Raises VectorsError."""
    facts = ask_vectors(path)
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


def docbin_rows(path: Path) -> Rows:
    """Return the numbers of docs and tokens of a .spacy file, and what ELMo vectors its docs have.

    path: the file. All of it is in memory at once.

    Raises CorpusError if it is damaged.
    """
    docs = tokens = embedded = 0
    kinds: dict[str, None] = {}  # in order, each once
    for doc in docs_in(path):
        found = _vectors_on(doc)
        docs, tokens, embedded = docs + 1, tokens + len(doc), embedded + bool(found)
        kinds |= dict.fromkeys(found)
    told = "; ".join(kinds) or "none"
    some = f", on {embedded:,} of the docs" if 0 < embedded < docs else ""
    return [("docs", f"{docs:,}"), ("tokens", f"{tokens:,}"), ("ELMo vectors", told + some)]


def _vectors_on(doc: Doc) -> list[str]:
    """Return what a doc has under each attr, with the sizes of the array."""
    names = [name for name in map(_name, doc.user_data) if name is not None and name.endswith(TOKENS)]
    told = []
    for attr in (name.removesuffix(TOKENS) for name in names):
        for suffix, dimensions in ((LAYERS, 3), (VECTORS, 2)):
            array: object = doc.user_data.get(key(attr, suffix))
            if isinstance(array, np.ndarray) and array.ndim == dimensions:  # the file may be damaged
                layers = f"{array.shape[0]:,} layers of " if dimensions == 3 else "width "
                told.append(f"doc._.{attr}{suffix}, {layers}{array.shape[-1]:,}, {array.dtype}")
    return told


def _name(found: object) -> str | None:
    """Return the name in spaCy's key of an extension value; None for other keys."""
    if isinstance(found, tuple) and len(found) == 4 and found[0] == "._." and isinstance(found[1], str):
        return found[1]
    return None


def softmax_rows(path: Path, options: BiLMOptions | None) -> Rows:
    """Return the sizes of a softmax, after reading all of it, and of the vocabulary in the same folder.

    path: softmax.hdf5.
    options: of its biLM; None if they are unknown.

    Raises ElmoError if the softmax does not fit the options or the vocabulary.
    """
    cutoffs, arrays = ask_output_layer(path)
    n_words, width = arrays["weight"].shape
    if cutoffs is not None:
        n_words = cutoffs[-1] + len(arrays[f"words.{len(cutoffs) - 1}"])
    if options is not None and width != options.projection_dim:
        expected = options.projection_dim
        raise WeightsError(
            f"{path}: the softmax has rows of {width} values, but the biLM's projection_dim is {expected}. "
            "Expected the same number: use softmax.hdf5 and options.json of the same model."
        )
    kind = "one vector for each word"
    if cutoffs is not None:
        kind = "adaptive, clusters from word " + " and ".join(f"{cutoff:,}" for cutoff in cutoffs)
    rows = [
        ("softmax", kind),
        ("words", f"{n_words:,}"),
        ("vectors", f"{width:,}"),
        ("parameters", f"{sum(values.size for values in arrays.values()):,}"),
    ]
    words = path.with_name(WORDS)
    if not words.exists():
        return [*rows, (WORDS, "not there: the softmax can't be used without its words")]
    found = len(read_words(words))
    if found != n_words:
        raise WeightsError(
            f"{path.parent}: the vocabulary has {found:,} words, but the softmax {n_words:,} rows. Expected a row "
            "for each word: use vocabulary.txt and softmax.hdf5 of the same model."
        )
    return [*rows, (WORDS, f"{found:,} words")]


OPTIONS, DOCS = "options", "docs"
_OTHER_VECTORS = (".parquet", ".safetensors", ".npy")  # what embed writes beside HDF5 and docs


def kind_of(path: Path) -> tuple[str, str]:
    """Return the kind of a file, and what is wrong with it or "".

    HDF5, by content or name, is a softmax, vectors or weights. A file whose name ends in .spacy is docs, and any other
    file is options.
    """
    if path.suffix not in (".hdf5", ".h5") and not is_hdf5(path):
        return DOCS if path.suffix == ".spacy" else OPTIONS, ""
    try:
        return ask_kind(path), ""
    except ElmoError as error:
        return WEIGHTS, str(error)


def models_in(paths: list[str]) -> tuple[list[list[Path]], list[str]]:
    """Return the files that belong together, and problems.

    paths: files, folders, or names of biLMs. The files of a folder belong together, and so do all single files.

    Returns lists of files, and a message for each path that can't be used.
    """
    models: list[list[Path]] = []
    problems: list[str] = []
    lone: list[Path] = []
    for name in paths:
        path = Path(name)
        try:
            refuse_address(name, CommandError)
        except CommandError as error:
            problems.append(str(error))
            continue
        if name == EMBEDDED and not path.exists():
            models.append([*map(Path, embedded_files()), *softmax_of(name, problems)])
            continue
        if is_named(name):
            try:
                path = folder_named(name)
            except ElmoError as error:
                problems.append(str(error))
                continue
        if is_pipeline(name):
            problems += show_pipeline(name)
            continue
        if not path.exists():
            problems.append(
                f"{path}: no such file or folder. Expected the options.json, weights.hdf5 or softmax.hdf5 of a "
                "biLM, a file that spacy elmo embed wrote, the folder of a biLM, of a pretraining run or of a "
                f"saved pipeline, or the name of an installed pipeline or of a biLM, such as {EMBEDDED}."
            )
            continue
        if path.is_file() and path.suffix in _OTHER_VECTORS and not is_hdf5(path):
            problems.append(
                f"{path}: not a file that info reads. Of files that spacy elmo embed wrote it reads HDF5 and "
                ".spacy. Expected one of these, or the options.json of a biLM."
            )
            continue
        if not path.is_dir():
            lone.append(path)
            continue
        if (path / RUN).is_file():
            path = path / BEST
            if not path.is_dir():
                problems.append(
                    f"{path.parent}: the folder of a pretraining run that has not written all of model-best yet. "
                    "Expected one that has been evaluated once: wait, resume the run if it has ended, or lower "
                    "evaluation.every."
                )
                continue
        elif (path / "config.cfg").is_file():
            problems += show_pipeline(name)
            continue
        path = best_of_run(path)
        files = [path / "options.json", path / "weights.hdf5"]
        if any(file.exists() for file in files):
            models.append([*files, *softmax_of(str(path), problems)])
        else:
            problems.append(
                f"{path}: a folder without options.json and weights.hdf5, and without config.cfg. Expected the "
                "folder of a biLM, of a pretraining run or of a saved pipeline."
            )
    return ([lone] if lone else []) + models, problems


def softmax_of(model: str, problems: list[str]) -> list[Path]:
    """Return the softmax of a model, or nothing. Problems of en_mini's package are appended to `problems`."""
    try:
        folder = softmax_folder(model)
    except ElmoError as error:
        problems.append(str(error))
        return []
    return [folder / SOFTMAX] if folder is not None and (folder / SOFTMAX).exists() else []


def rows_of(path: Path, kind: str, options: BiLMOptions | None, contents: Contents, sha256: Callable[[], str]) -> Rows:
    """Return what a file holds. Raises ElmoError if it can't be used.

    path: the file.
    kind: as `kind_of` returns it.
    options: of the biLM; None: they are not known.
    contents: of its options.json.
    sha256: computes the file's SHA-256. It is called after the checks, since that takes long for a large file.
    """
    if kind == DOCS:
        return docbin_rows(path)
    if kind == VECTORS_FILE:
        return vector_rows(path)
    if kind == OUTPUT:
        return softmax_rows(path, options)
    if options is None:
        return lone_weight_rows(path, sha256)
    return option_rows(options, sha256()) if kind == OPTIONS else weight_rows(path, options, contents, sha256)


def show_model(paths: list[Path]) -> list[str]:
    """Print the contents of files that belong together. Returns the problems, which are printed as well."""
    found = {path: kind_of(path) for path in paths}
    kinds = {path: kind for path, (kind, _) in found.items()}
    option_files = [str(path) for path, kind in kinds.items() if kind == OPTIONS]
    if len(option_files) > 1 and WEIGHTS in kinds.values():
        return fail(
            f"{len(option_files)} options files were given with weights: {', '.join(option_files)}. Expected one "
            "options file, and the weight files that belong to it; give several models as their folders."
        )
    problems: list[str] = []
    options: BiLMOptions | None = None
    contents: Contents = {}
    for path in sorted(
        kinds, key=lambda path: kinds[path] != OPTIONS
    ):  # options first, since weights are checked by them
        msg.divider(escaped(str(path)))
        rows: Rows = []
        if path.is_file():  # otherwise its reader raises an error
            with suppress(OSError):
                rows.append(("size", f"{path.stat().st_size:,} bytes"))
        problem = found[path][1]
        sha256 = cache(partial(sha256_of, path))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                if problem:
                    pass
                elif kinds[path] == WEIGHTS and option_files and options is None:
                    problem = (
                        f"{path}: not compared with its options, because they can't be read. Give a valid "
                        "options.json with it."
                    )
                else:
                    if kinds[path] == OPTIONS:
                        contents = read_contents(path)
                        options = BiLMOptions.from_dict(contents, source=str(path))
                    found_rows = rows_of(path, kinds[path], options, contents, sha256)
                    if kinds[path] == OPTIONS and options is not None and WEIGHTS not in kinds.values():
                        found_rows += reader_rows(options, contents, None)
                    rows += [("SHA-256", sha256()), *found_rows]
            except (ElmoError, OSError) as error:
                problem = str(error)
        if rows:
            msg.table(rows, max_col=100)
        for warning in told:
            msg.warn(escaped(str(warning.message)))
        if problem:
            problems += fail(problem)
        elif kinds[path] == WEIGHTS and options is None:
            msg.info("not checked: give the options.json of these weights as well to check them")
    return problems


def show_pipeline(pipeline: str) -> list[str]:
    """Print the sizes of the biLMs in a saved pipeline. Returns the problems.

    pipeline: its folder, or the name of its package.
    """
    try:
        for name, options, bilm in pipeline_bilms(pipeline):
            msg.divider(escaped(f"{pipeline}, pipe {name}"))
            msg.table(option_rows(options, None, bilm), max_col=100)
    except ElmoError as error:
        return [str(error)]
    return []


def fail(problem: str) -> list[str]:
    """Print a problem, and return it in a list."""
    msg.fail(escaped(problem))
    return [problem]


def info(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="options.json, weights.hdf5, embedded sentences (HDF5 or .spacy), folders, or names of biLMs or "
            "pipelines",
        ),
    ],
    code: Code = None,
) -> None:
    """Show what files hold, or what is wrong with them.

    Sizes, SHA-256, whether weights fit their options, and which model it is. Folders: of a biLM (options.json and
    weights.hdf5, and its softmax if it is there), of a pretraining run (its model-best), or of a saved pipeline. Names:
    en_mini, those of published biLMs that were downloaded, and of installed biLMs and pipelines.
    """
    import_code(code)
    models, problems = models_in(files)
    for problem in problems:
        msg.fail(escaped(problem))
    for paths in models:
        problems += show_model(paths)
    if problems:
        raise typer.Exit(1)
