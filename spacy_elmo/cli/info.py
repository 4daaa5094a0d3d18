"""`elmo info`: the contents of files, and what is wrong with them."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code

from ..errors import CommandError, ElmoError, Errors
from ..formats.addresses import refuse_address
from ..formats.checksums import sha256_of
from ..formats.contents.files import OUTPUT, VECTORS, WEIGHTS
from ..formats.contents.untrusted import is_hdf5
from ..formats.contents.untrusted import kind_of as hdf5_kind_of
from ..formats.named.bilms import folder_named, is_named
from ..formats.options import BiLMOptions, read_contents
from ..modules.loading import EMBEDDED, best_of_run, embedded_files
from ..pipeline.saved import is_pipeline, pipeline_bilms
from ..pretraining.model.files import BEST, RUN, SOFTMAX, softmax_folder
from .shared.console import escaped
from .shared.options import Code
from .shared.printer import msg
from .views.docbin_rows import docbin_rows
from .views.info_rows import (
    Contents,
    Rows,
    lone_weight_rows,
    option_rows,
    reader_rows,
    vector_rows,
    weight_rows,
)
from .views.softmax_rows import softmax_rows

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
        return hdf5_kind_of(path), ""
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
            problems.append(Errors.INFO_MISSING.format(path=path, embedded=EMBEDDED))
            continue
        if path.is_file() and path.suffix in _OTHER_VECTORS and not is_hdf5(path):
            problems.append(Errors.INFO_VECTORS.format(path=path))
            continue
        if not path.is_dir():
            lone.append(path)
            continue
        if (path / RUN).is_file():
            path = path / BEST
            if not path.is_dir():
                problems.append(Errors.MODEL_OF_NEW_RUN.format(path=path.parent))
                continue
        elif (path / "config.cfg").is_file():
            problems += show_pipeline(name)
            continue
        path = best_of_run(path)
        files = [path / "options.json", path / "weights.hdf5"]
        if any(file.exists() for file in files):
            models.append([*files, *softmax_of(str(path), problems)])
        else:
            problems.append(Errors.INFO_FOLDER.format(path=path))
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
    if kind == VECTORS:
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
        return fail(Errors.INFO_OPTIONS_TWICE.format(got=len(option_files), paths=", ".join(option_files)))
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
                    problem = Errors.INFO_UNCHECKED.format(path=path)
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
