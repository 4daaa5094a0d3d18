"""`elmo info`: the contents of files, and what is wrong with them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import typer
from spacy.cli._util import Arg, import_code

from ..errors import CommandError, ElmoError, WeightsError
from ..formats.contents import OUTPUT, VECTORS_FILE, WEIGHTS, is_hdf5, kind_of, matrices_in, vectors_in
from ..formats.hdf5 import MAX_BYTES, allowed_bytes
from ..formats.names import find_official, folders_of_packages, is_named
from ..formats.options import BiLMOptions, read_contents, read_options, warn_of_keys
from ..formats.paths import refuse_address, sha256_of
from ..formats.softmax import read_softmax
from ..formats.vectors import INDEX_NAME
from ..formats.weights import read_weights, readers_of
from ..models.doc_layers import LAYERS, TOKENS, VECTORS, key
from ..modules.loading import (
    CARD,
    EMBEDDED,
    embedded_files,
    find_bilm,
    is_embedded,
    refuse_other_names,
    told_by_card,
    warn_of_other_options,
)
from ..modules.loading import OPTIONS as OPTIONS_FILE
from ..modules.loading import WEIGHTS as WEIGHTS_FILE
from ..pipeline.saved import is_pipeline, known_bilm, pipeline_bilms, pipeline_folder
from ..pretraining.language_model import SOFTMAX, WORDS, refuse_new_run, softmax_folder
from ..pretraining.vocabulary import read_words
from ..text.stream import docs_in
from . import shared
from .console import msg

Rows = list[tuple[str, str]]
_TOO_MUCH = (
    "{path}: reading this takes far more memory than its values need. It is damaged or made to do harm: get it again "
    "from a place that you trust, and compare its SHA-256."
)
OPTIONS, DOCS = "options", "docs"  # kinds of files, beside those of formats/contents.py
# what a file may cost beside its values, and what machines that are slow decompress and check in a second
_MORE_BYTES, _SECONDS, _BYTES_A_SECOND = 2**28, 30, 2**24


def info(
    files: list[str] = Arg(
        ...,
        metavar="FILES",
        help="options.json, weights.hdf5, embedded sentences (HDF5 or .spacy), folders, or names of biLMs or pipelines",
    ),
    code: shared.Code = None,
) -> None:
    """Sizes, SHA-256, whether weights fit their options, and which model it is. Folders: of a biLM (options.json and
    weights.hdf5, and its softmax if it has one), of a pretraining run, or of a saved pipeline. Names: en_core, and
    those of published biLMs that were downloaded, and of installed biLMs and pipelines.
    """
    import_code(code)
    lone: list[Path] = []  # single files belong together, and so do those of a folder
    models = [lone]
    usable = True
    for name in files:
        try:
            found = _find(name)
            if found is None:
                with _limits([pipeline_folder(name)]):
                    bilms = pipeline_bilms(name)
                for pipe, options, bilm in bilms:
                    msg.divider(f"{name}, pipe {pipe}")
                    model = _named(bilm) if bilm else _model_of(options)
                    msg.table([*_option_rows(options), ("model", model)])
            elif found.is_dir():
                _show_package(name, found)
                folder = softmax_folder(name)
                softmax = [] if folder is None else [folder / SOFTMAX]
                models.append([found / OPTIONS_FILE, found / WEIGHTS_FILE, *softmax])
            else:
                lone.append(found)
        except (ElmoError, MemoryError) as error:
            is_too_much = isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError)
            msg.fail(_TOO_MUCH.format(path=name) if is_too_much else error)
            usable = False
    for paths in filter(None, models):
        with _limits(paths):
            usable &= _show_files(paths)
    if not usable:
        raise typer.Exit(1)


@contextmanager
def _limits(paths: list[Path]) -> Iterator[None]:
    """Limit what reading files, or a pipeline's folder, may take: memory, where Linux tells what is used, and time.

    HDF5 may take gigabytes, or come to no end, on a file that is made to do harm. The system ends a process that has
    used up its time, also inside of HDF5.
    """
    if sys.platform == "win32":
        yield
        return
    import resource

    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)}
    # values are in memory at most twice, the second time dataset by dataset; then come chunks and checks of values
    sizes = [sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file()) for path in paths]
    values = [max(allowed_bytes(path, MAX_BYTES), 4 * size) for path, size in zip(paths, sizes)]
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + _SECONDS + sum(sizes) // _BYTES_A_SECOND}
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limits[resource.RLIMIT_AS] = _MORE_BYTES + 3 * sum(values) + pages * os.sysconf("SC_PAGE_SIZE")
    try:
        for kind, limit in limits.items():
            hard = before[kind][1]
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
        yield
    finally:
        for kind, both in before.items():
            resource.setrlimit(kind, both)


def _find(name: str) -> Path | None:
    """Return the file or the folder of a biLM that a name stands for; None if it is a saved pipeline."""
    refuse_address(name, CommandError)
    path = Path(name)
    if is_pipeline(name):
        return None
    if not path.is_dir() and (path.exists() or path.suffix in (".json", ".hdf5", ".h5", ".spacy")):
        return path  # if it is missing, its reader says so
    folder = find_bilm(name)
    if any((folder / file).exists() for file in (OPTIONS_FILE, WEIGHTS_FILE)):
        return folder
    refuse_new_run(folder)
    if (path / "config.cfg").is_file():
        return None
    refuse_other_names(folder)
    raise CommandError(
        f"{folder}: a folder without options.json and weights.hdf5, and without config.cfg. Expected the "
        "folder of a biLM, of a pretraining run or of a saved pipeline."
    )


def _show_package(name: str, folder: Path) -> None:
    """Print where a biLM that was installed or is embedded comes from: its distribution, licence and model card."""
    rows: Rows = [*shared.origin_of(name).items()] if is_embedded(name) or is_named(name) else []
    if rows:
        rows.append(("language", told_by_card("language", folder / OPTIONS_FILE) or "not told"))
        if (folder / CARD).is_file():
            rows.append(("model card", str(folder / CARD)))
        msg.divider(f"{name}, package")
        msg.table(rows)


def _show_files(paths: list[Path]) -> bool:
    """Print the contents of files that belong together. Returns whether they can be used."""
    kinds: dict[Path, str | Exception] = {}
    for path in paths:
        try:
            other = DOCS if path.suffix == ".spacy" else OPTIONS
            kinds[path] = kind_of(path) if path.suffix in (".hdf5", ".h5") or is_hdf5(path) else other
        except (ElmoError, MemoryError) as error:  # HDF5 that can't be read
            kinds[path] = error
    option_files = [str(path) for path, kind in kinds.items() if kind == OPTIONS]
    has_weights = any(kind == WEIGHTS or isinstance(kind, Exception) for kind in kinds.values())
    if len(option_files) > 1 and has_weights:
        msg.fail(
            f"{len(option_files)} options files were given with weights: {', '.join(option_files)}. Expected one "
            "options file, and the weight files that belong to it; give several models as their folders."
        )
        return False
    usable = True
    options: BiLMOptions | None = None
    contents: Mapping[str, Any] = {}
    # options first, since weights are checked by them
    for path, kind in sorted(kinds.items(), key=lambda item: item[1] != OPTIONS):
        msg.divider(str(path))
        rows: Rows = [("size", f"{path.stat().st_size:,} bytes")] if path.is_file() else []
        problem: Exception | None = None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                if isinstance(kind, Exception):
                    raise kind
                if kind == OPTIONS:
                    contents = read_contents(path)
                    options = BiLMOptions.from_dict(contents, source=str(path))
                    warn_of_keys(contents, str(path))
                    found = _option_rows(options)
                elif kind == WEIGHTS and option_files and options is None:
                    raise CommandError(
                        f"{path}: not compared with its options, because they can't be read. Give a valid options.json "
                        "with it."
                    )
                else:
                    found = _rows(path, kind, options, contents)
                sha256 = sha256_of(path)  # after the checks, since it takes long for a large file
                if kind == OPTIONS and options is not None and not has_weights:  # which tell the model
                    found += [("model", _model_of(options)), *_reader_rows(options, contents, None)]
                elif kind == WEIGHTS:
                    if "model" not in dict(found):
                        found.append(("model", _model_of(options, sha256)))
                    if options is not None:
                        warn_of_other_options(options, path)
                rows += [("SHA-256", sha256), *found]
            except (ElmoError, OSError) as error:
                problem = error
            except MemoryError:
                problem = CommandError(_TOO_MUCH.format(path=path))
        if rows:
            msg.table(rows)
        for warning in told:
            msg.warn(warning.message)
        if problem is not None:
            msg.fail(problem)
            usable = False
        elif kind == WEIGHTS and options is None:
            msg.info("not checked: give the options.json of these weights as well to check them")
    return usable


def _option_rows(options: BiLMOptions) -> Rows:
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
    ]


def _reader_rows(options: BiLMOptions, contents: Mapping[str, Any], parameters: Iterable[str] | None) -> Rows:
    """Return which programs can read a biLM. parameters: their names; None: those that the sizes require."""
    readers = readers_of(options, parameters, contents)
    rows = [("read by", ", ".join(name for name, problems in readers.items() if not problems))]
    return rows + [(f"not by {name}", problem) for name, problems in readers.items() for problem in problems]


def _rows(path: Path, kind: str, options: BiLMOptions | None, contents: Mapping[str, Any]) -> Rows:
    """Return what a file holds that is no options.json, after reading all of it."""
    if kind == DOCS:
        return _docbin_rows(path)
    if kind == OUTPUT:
        return _softmax_rows(path, options)
    if kind == VECTORS_FILE:
        n_sentences, first, keyed, has_index = vectors_in(path)
        if keyed:
            return [("embedded sentences", f"{n_sentences:,}, each named by its text"), ("first", f"{first}")]
        index = "yes" if has_index else "no: the sentences' texts are not in the file"
        return [("embedded sentences", f"{n_sentences:,}"), ("shape of the first", f"{first}"), (INDEX_NAME, index)]
    if options is None:
        return [(name, " x ".join(f"{size:,}" for size in shape)) for name, shape in matrices_in(path)]
    arrays = read_weights(path, options)
    n_parameters = sum(array.size for array in arrays.values()) - options.char_dim  # row 0 is not in the file
    bilm = known_bilm(options, arrays)
    return [
        ("weights", "all there, with the sizes of the options"),
        ("parameters", f"{n_parameters:,}"),
        *_reader_rows(options, contents, arrays),
        *([("model", _named(bilm))] if bilm else []),
    ]


def _model_of(options: BiLMOptions | None, sha256: str | None = None) -> str:
    """Return the biLM whose weights have this SHA-256, or else one with these sizes: an official one, or one here."""
    embedded = {EMBEDDED: Path(embedded_files()[0]).parent}
    folders = embedded | folders_of_packages() | embedded  # it comes first, and a package can't take its name
    for bilm, folder in folders.items():
        with suppress(OSError):
            if sha256 is not None and sha256_of(folder / WEIGHTS_FILE) == sha256:
                return _named(bilm)
    official, by_hash = find_official(options, sha256) or (None, False)
    if official and by_hash:
        return f"the official {official.name} model, by the SHA-256 that is quoted for it"
    if options is None:
        return "not known by its SHA-256"
    if official:
        other = "" if sha256 is None else "; the SHA-256 is not one that this version knows"
        return f"the sizes of the official {official.name} model{other}"
    for bilm, folder in folders.items():
        with suppress(ElmoError):
            if read_options(folder / OPTIONS_FILE) == options:
                return f"the sizes of {bilm}, and of others"
    return "a biLM of your own, not an official model"


def _named(bilm: str) -> str:
    return f"{EMBEDDED}, the embedded one" if bilm == EMBEDDED else f"{bilm}, of an installed package"


def _docbin_rows(path: Path) -> Rows:
    """Return the numbers of docs and tokens of a .spacy file, and what ELMo vectors its docs have."""
    docs = tokens = embedded = 0
    kinds: dict[str, None] = {}  # in order, each once
    for doc in docs_in(path):
        found = []
        # spaCy's key of an extension value is ("._.", name, start, end)
        for name in [str(k[1]) for k in list[Any](doc.user_data) if isinstance(k, tuple) and k[:1] == ("._.",)]:
            attr = name.removesuffix(TOKENS)
            for suffix, dimensions in ((LAYERS, 3), (VECTORS, 2)) if attr != name else ():
                array: object = doc.user_data.get(key(attr, suffix))
                if isinstance(array, np.ndarray) and array.ndim == dimensions:  # the file may be damaged
                    layers = f"{array.shape[0]:,} layers of " if dimensions == 3 else "width "
                    found.append(f"doc._.{attr}{suffix}, {layers}{array.shape[-1]:,}, {array.dtype}")
        docs, tokens, embedded = docs + 1, tokens + len(doc), embedded + bool(found)
        kinds |= dict.fromkeys(found)
    some = f", on {embedded:,} of the docs" if 0 < embedded < docs else ""
    return [("docs", f"{docs:,}"), ("tokens", f"{tokens:,}"), ("ELMo vectors", ("; ".join(kinds) or "none") + some)]


def _softmax_rows(path: Path, options: BiLMOptions | None) -> Rows:
    """Return the sizes of a softmax, and of the vocabulary in the same folder. Raises ElmoError if they do not fit."""
    arrays = read_softmax(path)
    n_words, width = arrays["weight"].shape
    words, told = path.with_name(WORDS), "not there: the softmax can't be used without its words"
    expected = n_words, width if options is None else options.projection_dim
    if words.exists():
        expected = len(read_words(words)), expected[1]
        told = f"{expected[0]:,} words"
    if (n_words, width) != expected:
        raise WeightsError(
            f"{path}: the softmax has {n_words:,} rows of {width} values. Expected a row for each of the vocabulary's "
            f"{expected[0]:,} words, of {expected[1]} values, the biLM's projection_dim: use files of the same model."
        )
    return [
        ("softmax", "one vector for each word"),
        ("words", f"{n_words:,}"),
        ("vectors", f"{width:,}"),
        ("parameters", f"{sum(values.size for values in arrays.values()):,}"),
        (WORDS, told),
    ]
