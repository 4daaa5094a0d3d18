"""Saved pipelines: their elmo pipes, and the biLMs in these."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import spacy
from spacy import util
from spacy.language import Language
from spacy.util import is_package

from ..errors import CommandError, ElmoError, SettingsError
from ..formats.names import folders_of_packages, is_named
from ..formats.options import BiLMOptions
from ..formats.paths import expanded
from ..inference.embedder import fingerprint_of
from ..models.shim import BiLMShim
from ..modules import Arrays
from ..modules.loading import EMBEDDED, OPTIONS, WEIGHTS
from .elmo import ElmoPipe, chosen_pipe, elmo_pipes


def is_pipeline(model: str) -> bool:
    """Whether what the user typed is a saved pipeline: a folder with a config.cfg and a meta.json, or a package."""
    folder = expanded(model)
    if folder.exists():
        return (folder / "config.cfg").is_file() and (folder / "meta.json").is_file()
    if model == EMBEDDED or is_named(model):
        return False
    try:
        return is_package(model) and (util.get_package_path(model) / "meta.json").is_file()
    except ImportError:  # the distribution of this name has a module of another one
        return False


def _not_loaded(pipeline: str, error: Exception) -> CommandError:
    """Return the error that says why what the user typed can't be loaded. error: what spaCy raised."""
    best = Path(pipeline) / "model-best"
    if (best / "config.cfg").is_file():
        return CommandError(
            f"{pipeline}: the folder that spacy train wrote pipelines to. Expected one of them: give {best}."
        )
    if not Path(pipeline).exists() and (pipeline == EMBEDDED or is_named(pipeline)):
        return CommandError(
            f"{pipeline}: the name of a biLM. Expected a saved pipeline, such as the model-best that spacy train "
            "writes: give its folder or package."
        )
    return CommandError(
        f"{pipeline}: can't be loaded ({str(error) or type(error).__name__}). Expected the folder of a saved "
        "spaCy pipeline, or the name of an installed one."
    )


def load_pipeline(pipeline: str) -> Language:
    """Return a saved pipeline. Raises CommandError if it can't be loaded."""
    try:
        return spacy.load(pipeline)
    except Exception as error:  # a damaged folder fails anywhere in spaCy
        raise _not_loaded(pipeline, error) from error


def pipeline_folder(pipeline: str) -> Path:
    """Return the folder of a saved pipeline, which may be that of a package."""
    return util.get_package_path(pipeline) if is_package(pipeline) else expanded(pipeline)


def load_tokenizer(pipeline: str) -> Language:
    """Return a saved pipeline without its pipes, for its tokenizer. Raises CommandError if it can't be loaded."""
    try:
        folder = pipeline_folder(pipeline)
        meta = util.get_model_meta(folder)
        return spacy.load(folder, exclude=[*meta["pipeline"], *meta.get("disabled", [])])
    except Exception as error:  # a damaged folder fails anywhere in spaCy
        raise _not_loaded(pipeline, error) from error


def load_pipe(pipeline: str, name: str | None = None) -> tuple[Language, ElmoPipe]:
    """Return a saved pipeline and its elmo pipe of this name; None: it must have only one."""
    nlp = load_pipeline(pipeline)
    with _naming(pipeline):
        pipes = elmo_pipes(nlp.components)
        return nlp, pipes[chosen_pipe(pipes, name, "--pipe")]


@contextmanager
def _naming(pipeline: str) -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise CommandError(f"{pipeline}: {error}") from error


def pipeline_weights(pipeline: str, name: str | None = None) -> tuple[BiLMOptions, Arrays]:
    """Return the sizes and the weights of a saved pipeline's biLM. Raises CommandError if it has no such pipe."""
    shim = _shim_of(pipeline, load_pipe(pipeline, name)[1])
    return shim.options, shim.to_arrays()


def pipeline_bilms(pipeline: str) -> list[tuple[str, BiLMOptions, str | None]]:
    """Return the name of each elmo pipe of a saved pipeline, its sizes, and the name of the known biLM it has."""
    nlp = load_pipeline(pipeline)
    with _naming(pipeline):
        shims = {name: _shim_of(pipeline, pipe) for name, pipe in elmo_pipes(nlp.components).items()}
    return [(name, shim.options, known_bilm(shim.options, shim.to_arrays())) for name, shim in shims.items()]


def known_bilm(options: BiLMOptions, arrays: Arrays) -> str | None:
    """Return the name of the embedded or installed biLM that has these weights; None if there is none."""
    # packages by their files, because a folder may have the name of a biLM
    known = {
        name: BiLMShim(str(folder / OPTIONS), str(folder / WEIGHTS)) for name, folder in folders_of_packages().items()
    }
    known[EMBEDDED] = BiLMShim(None, None)  # a package can't take its name
    for name, shim in known.items():
        with suppress(ElmoError):  # a package may be damaged
            if shim.options == options and shim.compute_fingerprint() == fingerprint_of(options, arrays):
                return name
    return None


def _shim_of(pipeline: str, pipe: ElmoPipe) -> BiLMShim:
    if pipe.upstream.shim is not None:
        return pipe.upstream.shim
    raise CommandError(
        f"{pipeline}: the model of the pipe {pipe.name!r} holds no biLM. Expected one made by spacy-elmo.BiLM.v1: "
        "give another pipeline or pipe."
    )
