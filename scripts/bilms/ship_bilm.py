"""Put a trained biLM into the package as en_mini, and its softmax into the package beside it.

python -m scripts.bilms.ship_bilm runs/en_mini/model-best

The model cards are not written: they tell what was measured, and are to be brought up to date by hand.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.language_model import COUNTS, OPTIONS, SOFTMAX, WEIGHTS, WORDS, write_digest
from spacy_elmo.pretraining.pack import pack

from ..shared import run_command

ROOT = Path(__file__).resolve().parents[2]
BILM = Path("spacy_elmo/bilms/en_mini")
PACKAGE = Path("packages/en_mini_softmax/spacy_elmo_en_mini_softmax")
MOST_BYTES = 16_000_000  # of each of the two
BILM_FILES = (OPTIONS, WEIGHTS, WORDS)
PACKAGE_FILES = (SOFTMAX, WORDS, COUNTS)


def ship(model: Path, root: Path = ROOT, bits: int | None = 8, most_bytes: int = MOST_BYTES) -> None:
    """Pack a model and put its files into both packages under `root`. Raises ElmoError; no file is changed then.

    bits: of the matrices, as in `elmo pack --bits`; None: mantissas of 10 bits for all weights.
    """
    with tempfile.TemporaryDirectory() as name:
        packed = Path(name, "packed")
        pack(model, packed, bits=bits)
        missing = [file for file in {*BILM_FILES, *PACKAGE_FILES} if not (packed / file).exists()]
        if missing:
            raise CommandError(
                f"{model}: {', '.join(sorted(missing))} missing. Expected a biLM with its softmax and counts."
            )
        for files, target in ((BILM_FILES, BILM), (PACKAGE_FILES, PACKAGE)):
            size = sum((packed / file).stat().st_size for file in files)
            if size > most_bytes:
                raise CommandError(f"{target}: {size:,} bytes. Expected {most_bytes:,} at most: lower --bits.")
        for files, target in ((BILM_FILES, BILM), (PACKAGE_FILES, PACKAGE)):
            for file in files:
                shutil.copyfile(packed / file, root / target / file)
    write_digest(root / PACKAGE, root / BILM / WEIGHTS)  # last: until it is there the package is refused


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a biLM with its softmax, like model-best of a run")],
    bits: Annotated[int, typer.Option(min=2, max=16, help="Bits of the matrices, as in elmo pack")] = 8,
) -> None:
    """Put MODEL into the package as en_mini, and its softmax into packages/en_mini_softmax."""
    ship(model, bits=bits)
    for folder in (BILM, PACKAGE):
        for path in sorted((ROOT / folder).iterdir()):
            if path.is_file():
                print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    run_command(main)
