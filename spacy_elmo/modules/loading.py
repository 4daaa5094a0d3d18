"""Loading a biLM from its files: the options alone, the weights as plain arrays, or the network."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .. import bilms, kernels
from ..errors import ElmoError, OptionsWarning, SettingsError, WeightsError, shown
from ..formats.names import KNOWN, OFFICIAL_MODELS, PUBLISHED, folder_named, folders_of_packages, is_hidden, is_named
from ..formats.options import KEYS, BiLMOptions, read_options
from ..formats.paths import existing_file, expanded, sha256_of
from ..formats.weights import read_weights
from .bilm import BiLM

File = str | os.PathLike[str]
Arrays = dict[str, npt.NDArray[np.float32]]  # weights by parameter name
EMBEDDED = "en_core"
OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
BEST, RUN = "model-best", "run.json"  # in the folder of a pretraining run
_FILES = (OPTIONS, WEIGHTS, "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "README.md")
_PACKED = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".7z")


def is_packed(name: File) -> bool:
    """Return whether a name ends like that of a ZIP file or another packed one."""
    return Path(name).suffix.lower() in _PACKED


def unknown_bilm_error(name: File) -> SettingsError:
    """Return the error for a name that is neither that of a biLM nor a folder."""
    reason = "there is no such folder"
    if is_hidden(name) or os.fspath(name) == EMBEDDED:
        reason = "a file or folder of this name is in the current folder. Rename it, or work in another folder"
    elif is_packed(name) and Path(name).exists():
        reason = "it is a packed file. Unpack it, and give its folder"
    names = list(dict.fromkeys([EMBEDDED, *folders_of_packages(), *KNOWN]))
    near = get_close_matches(os.fspath(name), [*names, *PUBLISHED], 1)  # itself, if a file or folder hides it
    meant = [f" Did you mean {one}?" for one in near if one != os.fspath(name)]
    return SettingsError(
        f"{shown(os.fspath(name))} names no biLM: {reason}.{''.join(meant)} Expected the folder of a biLM or of a "
        f"pretraining run, the name of one in a package ({', '.join(names)}), or of a published one "
        f"({', '.join(PUBLISHED)}). In a component's config this is model.bilm, in that of a pretraining run "
        "paths.init. For two files set options_file and weight_file. Most commands also take a saved pipeline: its "
        "folder, or an installed package."
    )


_OTHERS = {  # files by which the folders of other programs are known
    "*.ckpt*.index": "a checkpoint of TensorFlow. Expected what bilm-tf exports of it: bin/dump_weights.py --save_dir "
    "{folder} --outfile {folder}/weights.hdf5, with the options.json of the checkpoint beside it.",
    "saved_model.pb": "a model of TensorFlow, such as a module of TensorFlow Hub, whose weights are not read. Its ELMo "
    "has the network of original: python -m spacy elmo download original.",
    "*.dic": "a model of ELMoForManyLangs, whose network is another. Expected the folder of a biLM: en_core is one, "
    "and python -m spacy elmo pretrain trains one of your language.",
    "weights.th": "a model of AllenNLP. Expected the biLM that it was trained on: set options_file and weight_file to "
    "the two files that its config.json names.",
    "model*.safetensors": "a model of Hugging Face's transformers, no biLM: spacy-transformers runs it.",
    "pytorch_model*.bin": "a model of Hugging Face's transformers, no biLM: spacy-transformers runs it.",
}


def refuse_other_names(folder: Path) -> None:
    """Raise SettingsError if a biLM's files are missing, and those that are there tell what the folder is."""
    for pattern, told in _OTHERS.items():
        if any(folder.glob(pattern)):
            raise SettingsError(f"{folder}: {told.format(folder=folder)}")
    if not (folder / OPTIONS).exists() and (folder / "config.cfg").is_file() and (folder / "meta.json").is_file():
        raise SettingsError(
            f"{folder}: a saved pipeline. Expected the folder of a biLM: python -m spacy elmo pack {folder} OUT writes "
            "the pipeline's."
        )
    patterns = {folder / OPTIONS: "*options.json", folder / WEIGHTS: "*.hdf5"}
    missing = [file for file in patterns if not file.exists()]
    candidates = [sorted(folder.glob(patterns[file])) for file in missing]
    others = [[file.name for file in files if not file.name.startswith("softmax")] for files in candidates]
    found = [names[0] for names in others if len(names) == 1]
    if found:
        raise SettingsError(
            f"{folder}: no {' and no '.join(file.name for file in missing)}, but it has {' and '.join(found)}. "
            "Expected options.json and weights.hdf5: rename the files, or give both with options_file and "
            "weight_file (in a component's config model.options_file and model.weight_file)."
        )


def embedded_files() -> tuple[str, str]:
    """options.json and weights.hdf5 of the embedded biLM."""
    return bilms.paths(EMBEDDED)


def check_files(options_file: File | None, weight_file: File | None, bilm: File | None = None) -> None:
    """Raise SettingsError if only one of the two files is set, or if `bilm` is set beside one."""
    names = ("options_file", "weight_file")
    present = [name for name, file in zip(names, (options_file, weight_file)) if file is not None]
    if bilm is not None and present:
        raise SettingsError(
            f"bilm is {shown(os.fspath(bilm))}, and {' and '.join(present)} {'are' if len(present) > 1 else 'is'} set "
            "too. Expected one of the two: bilm for a folder or a name, or options_file and weight_file for two files "
            "(in a component's config they are model.bilm and so on)."
        )
    if len(present) == 1:
        missing = names[1 - names.index(present[0])]
        raise SettingsError(
            f"{present[0]} is set, but {missing} is not. Set both to use a biLM of your own, or neither to use "
            f"the embedded one (in a component's config they are model.{present[0]} and model.{missing})."
        )


def can_name_bilm(name: File) -> bool:
    """Return whether a name can be that of a biLM: "en_core", a published one, one in a package, or a folder."""
    return os.fspath(name) == EMBEDDED or is_named(name) or expanded(name).is_dir()


def is_embedded(bilm: File) -> bool:
    """Return whether a biLM is the embedded one: it is called en_core, and there is no folder of this name."""
    return os.fspath(bilm) == EMBEDDED and not Path(bilm).is_dir()


def find_bilm(bilm: File) -> Path:
    """Return the folder with the options.json and the weights.hdf5 of a biLM. They may be missing.

    bilm: a folder with both files, the folder of a pretraining run (then they are in its model-best), "en_core", or
        the name of a published biLM, such as "original", or of one in an installed package, such as "en_mini".
        A folder of such a name comes first.

    Raises ElmoError if there is no such folder or name, if a published biLM was not downloaded, if a package is not
    installed or can't be used, or if a file or folder without a biLM has the name of one.
    """
    if is_embedded(bilm):
        return Path(embedded_files()[0]).parent
    if is_named(bilm):
        return folder_named(bilm)
    folder = expanded(bilm)
    if not (folder / OPTIONS).exists() and (folder / BEST / OPTIONS).exists():
        folder /= BEST
    hides = os.fspath(bilm) == EMBEDDED or is_hidden(bilm)
    is_expected = folder.name == BEST and folder.parent.is_dir()  # a run has not written it yet
    if not (can_name_bilm(bilm) or is_expected) or (hides and not (folder / OPTIONS).exists()):
        raise unknown_bilm_error(bilm)
    return folder


def files_of(bilm: File) -> list[Path]:
    """Return the files of a biLM, which may be missing, and the folder of the run that wrote it. Raises ElmoError."""
    folder = find_bilm(bilm)
    return [*(folder / name for name in _FILES), *([folder.parent] if (folder.parent / RUN).is_file() else [])]


def _folder_of(bilm: File, file: str) -> Path:
    """Return what `find_bilm` does. Raises SettingsError if its files have other names."""
    folder = find_bilm(bilm)
    if not (folder / file).exists():
        refuse_other_names(folder)
    return folder


def load_options(options_file: File | None = None, bilm: File | None = None) -> BiLMOptions:
    """Load the sizes and settings of a biLM.

    options_file: an options.json; None: that of the embedded biLM.
    bilm: a biLM as `find_bilm` describes it, in place of the file.

    Raises ElmoError, which names the setting and says what is wrong with the file.
    """
    if bilm is not None:
        options_file = _folder_of(bilm, OPTIONS) / OPTIONS
    with _naming("options_file", options_file, bilm):
        return read_options(embedded_files()[0] if options_file is None else options_file)


def load_arrays(
    options_file: File | None = None, weight_file: File | None = None, bilm: File | None = None
) -> tuple[BiLMOptions, Arrays]:
    """Load the options and the weights of a biLM, without a network. If all are None, load the embedded biLM.

    options_file, weight_file: the options.json, with sizes and settings, and the weights.hdf5 in the official format.
    bilm: a biLM as `find_bilm` describes it, in place of the two files.

    Raises ElmoError, which names the setting and says what is wrong with its file.
    """
    kernels.allows("amx")  # raises if SPACY_ELMO_ISA has an unknown value
    check_files(options_file, weight_file, bilm)
    options = load_options(options_file, bilm)
    if bilm is not None:
        weight_file = _folder_of(bilm, WEIGHTS) / WEIGHTS
    with _naming("weight_file", weight_file, bilm):
        path = existing_file(weight_file or embedded_files()[1], "the weights.hdf5 of a biLM", WeightsError)
        arrays = read_weights(path, options)
    if (weight_file or bilm) and bilm != EMBEDDED:
        warn_of_other_options(options, path)
    return options, arrays


def warn_of_other_options(options: BiLMOptions, weights: Path) -> None:
    """Warn if weights are those of a known biLM, by their SHA-256, but the options are not."""
    bilms = {**folders_of_packages(), EMBEDDED: Path(embedded_files()[0]).parent}
    size = weights.stat().st_size
    for name, folder in bilms.items():
        own = folder / WEIGHTS
        if own.is_file() and own.stat().st_size == size and not own.samefile(weights):
            expected = read_options(folder / OPTIONS)
            if expected != options and sha256_of(weights) == sha256_of(own):
                _warn_of_options(name, options, expected)
    for model in OFFICIAL_MODELS:
        if model.n_bytes == size and model.options != options and sha256_of(weights) == model.sha256:
            _warn_of_options(f"the official {model.name} model", options, model.options)


def _warn_of_options(name: str, got: BiLMOptions, expected: BiLMOptions) -> None:
    values = [(KEYS[field], *(getattr(one, field) for one in (got, expected))) for field in KEYS]
    told = "; ".join(f"{key} is {shown(one)}, expected {shown(other)}" for key, one, other in values if one != other)
    warnings.warn(
        f"The weights are those of {name}, but the options are not: {told}. The vectors are wrong. Use the "
        "options.json that came with the weights.",
        OptionsWarning,
        stacklevel=4,
    )


def load_named_arrays(name: File | None = None, weight_file: File | None = None) -> tuple[BiLMOptions, Arrays]:
    """Load a biLM as `load_arrays` does: from two files, or, without a weight_file, by a name for `find_bilm`."""
    if weight_file is None and name is not None:
        path = expanded(name)
        is_file = path.suffix == ".json" or (path.is_file() and not is_packed(path))
        if can_name_bilm(name) or not is_file:
            return load_arrays(bilm=name)
    return load_arrays(name, weight_file)


def load_bilm(options_file: File | None = None, weight_file: File | None = None) -> BiLM:
    """Load a biLM in the official format as a network. If both files are None, load the embedded one, en_core.

    Raises ElmoError, which names the setting and says what is wrong with its file.
    """
    return BiLM.from_arrays(*load_arrays(options_file, weight_file))


@contextmanager
def _naming(setting: str, file: File | None, bilm: File | None) -> Iterator[None]:
    try:
        yield
    except ElmoError as error:
        setting = setting if bilm is None else "bilm"
        told = f"The setting {setting} (model.{setting} in a component's config) points there."
        if file is None and bilm is None:
            told = "It is a file of spacy_elmo itself: install spacy_elmo again."
        raise type(error)(f"{error} {told}") from error


CARD, CARD_CHARACTERS = "README.md", 100_000
NAMES = {"english": "en"}  # cards of pretraining runs have the code


def told_by_card(row: str, options_file: File | None) -> str | None:
    """Return what the model card beside an options file says in a row, as of the language; None if it has none.

    options_file: None: of the embedded biLM.
    """
    try:
        with (expanded(options_file or embedded_files()[0]).parent / CARD).open(
            encoding="utf8", errors="replace"
        ) as card:
            found = re.search(rf"^\| {row} \| (.*?)(?: *\|)?$", card.read(CARD_CHARACTERS), re.MULTILINE)
    except (OSError, ValueError):  # ValueError: a path with a NUL character
        return None
    return found[1] if found else None


def named_language(name: File | None = None, weight_file: File | None = None) -> str | None:
    """Return the `card_language` of a biLM that is named as in `load_named_arrays`."""
    is_name = name is not None and weight_file is None and not expanded(name).is_file()
    return card_language(bilm=name) if is_name else card_language(name)


def card_language(options_file: File | None = None, bilm: File | None = None) -> str | None:
    """Return spaCy's code of the language that a model card tells; it may be xx. None if it tells none of spaCy's.

    options_file, bilm: those of `load_options`. Raises ElmoError if there is no such biLM.
    """
    if bilm is not None:
        options_file = find_bilm(bilm) / OPTIONS
    word = re.match(r"[A-Za-z]+\b", told_by_card("language", options_file) or "")
    if word is None:
        return None
    name = word[0].lower()
    code = NAMES.get(name, name)
    return code if find_spec(f"spacy.lang.{code}") is not None else None
