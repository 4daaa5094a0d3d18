"""Small valid files, whose changes are the inputs."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from spacy_elmo.formats import BiLMOptions, write_options, write_weights
from spacy_elmo.modules import BiLM

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8)), 1, "relu", 20, 16, 8, 2, 3.0, 3.0, True)


@cache
def bilm_files() -> tuple[Path, Path]:
    """Return the paths of options.json and weights.hdf5 of a random biLM of OPTIONS."""
    folder = new_folder()
    bilm = BiLM(OPTIONS)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    write_options(folder / "options.json", OPTIONS)
    write_weights(folder / "weights.hdf5", OPTIONS, bilm.to_arrays())
    return folder / "options.json", folder / "weights.hdf5"


def new_folder() -> Path:
    """Return a new temporary folder. It is removed when this process ends; its forks end without that."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-samples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files in a folder and its folders, by their paths in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write what `files_in` returned into another folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
