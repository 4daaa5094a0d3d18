"""Write a biLM with random weights, as training initialises it. The experiments compare with it.

python -m scripts.embeddings.random_bilm assets/random_bilm --seed 0          # sizes of the embedded biLM
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo import bilms
from spacy_elmo.analysis.rows import random_weights
from spacy_elmo.formats import read_options, write_options, write_weights

from ..shared.command import run_command

_EMBEDDED = Path(bilms.paths("en_mini")[0])


def write_random_bilm(folder: Path, options_file: Path, seed: int) -> None:
    """Write options.json and weights.hdf5 in the official format. Raises OptionsError and WeightsError."""
    options = read_options(options_file)
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / "weights.hdf5", options, random_weights(options, seed))
    write_options(folder / "options.json", options)


def main(
    folder: Path,
    options_file: Annotated[Path, typer.Option(help="Sizes; default: those of the embedded biLM")] = _EMBEDDED,
    seed: Annotated[int, typer.Option(help="Of the weights")] = 0,
) -> None:
    """Write options.json and weights.hdf5 to FOLDER."""
    write_random_bilm(folder, options_file, seed)
    print(f"{folder}: a biLM of the sizes in {options_file}, random weights of seed {seed}")


if __name__ == "__main__":
    run_command(main)
