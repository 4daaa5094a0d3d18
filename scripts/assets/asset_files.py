"""Files of assets: whether they are right, and which prepared files stand for originals.

A folder given with vars.data may have a corpus in another form than its address has it. Such prepared files give the
same docs as the originals, and are used instead of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from weasel.util import get_checksum  # type: ignore[import-untyped]


class Prepared(NamedTuple):
    """Prepared files and what they stand for. Paths are relative to the folder of project.yml.

    files: path and MD5 of each. originals: paths of assets.
    """

    files: dict[str, str]
    originals: tuple[str, ...]


PREPARED = (
    Prepared(
        {"assets/snli/snli.dev.tsv": "5fa425bacea219c73c86fed69fdf9812"},
        ("assets/snli/labels.dev", "assets/snli/s1.dev", "assets/snli/s2.dev"),
    ),
    Prepared(
        {"assets/snli/snli.test.tsv": "644350bf3a743a6c08788a46111e15e2"},
        ("assets/snli/labels.test", "assets/snli/s1.test", "assets/snli/s2.test"),
    ),
    Prepared(
        {"assets/mnli/mnli_matched_dev.tsv": "40ab4eddf2466496eba46bc53fb06cdd"},
        ("assets/mnli/dev.jsonl",),
    ),
    Prepared(
        {
            "assets/squad_part/train.jsonl": "bb2e17badeb3007c73e0296b1ef84595",
            "assets/squad_part/dev.jsonl": "e8c164052fb1a098dbb9654b9e99c2f5",
        },
        (
            "assets/squad_part/routerlens/dev.json",
            "assets/squad_part/flan/train.json",
            "assets/squad_part/flan/valid.json",
            "assets/squad_part/flan/test.json",
        ),
    ),
)


def is_right(path: Path, asset: dict[str, Any]) -> bool:
    """Return whether a file exists and has the MD5 of the asset."""
    return path.is_file() and get_checksum(path) == asset["checksum"]


def stand_ins(project: Path, table: Iterable[Prepared]) -> dict[Path, list[Path]]:
    """Return the prepared files for each original that has them in the project.

    table: all files of one of its lines have to be there with their MD5.
    """
    found: dict[Path, list[Path]] = {}
    for files, originals in table:
        if all(is_right(project / path, {"checksum": checksum}) for path, checksum in files.items()):
            found |= {project / original: [project / path for path in files] for original in originals}
    return found


def prepared_or_given(sources: Iterable[Path]) -> list[Path]:
    """Return the sources of a step, which runs in the folder of project.yml. Prepared files replace their originals."""
    found = stand_ins(Path(), PREPARED)
    return list(dict.fromkeys(path for source in sources for path in found.get(source, [source])))
