"""Get the entities of Worldwide Newswire (Shan et al. 2023): a file of words and BIO tags for each part.

If the folder --data has the three files with their MD5, they are copied. Else the articles are fetched with git. The
corpus names no parts; an article's part depends on the MD5 of its path, so that a sentence never has neighbours in
another part. Of nested entities the one in the last column counts.

    python -m scripts.assets.get_newswire --data FOLDER
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo.errors import CorpusError

from ..shared import read_lines, run_command
from .get_assets import copy_present, fetch, warn_of_others

REPOSITORY = "https://github.com/stanfordnlp/en-worldwide-newswire"
COMMIT = "e082527b86d9a68475166ab584b9c47f282177da"
FILE = "assets/worldwide_newswire/newswire.{}.conll"
FILES = {
    FILE.format("train"): "0a3e85d102687fe84010f38dedaf30b6",
    FILE.format("dev"): "78084776c7c15e2a9f22e29313427921",
    FILE.format("test"): "0a1fcbded9398e52a3914b0f8f64caaf",
}
_FOLDER = "processed_annotated"
_BLANK = re.compile(r"\s")


def part_of(name: str) -> str:
    """Return the part of an article: 10 % of them are for testing, 10 % for development. name: of its file."""
    number = int(hashlib.md5(f"{_FOLDER}/{name}".encode()).hexdigest(), 16) % 20
    return "test" if number < 2 else "dev" if number < 4 else "train"


def lines_of(path: Path) -> Iterator[str]:
    """Return the lines of an article: its mark, then a word and a tag each, and an empty line after each sentence."""
    yield from ("-DOCSTART- O", "")
    inside = False
    for line in [*read_lines(path), ""]:
        word, *tags = line.split("\t")
        if line.strip():
            yield "\t".join([_BLANK.sub("_", word.strip()), tags[-1].strip() if tags else "O"])
        elif inside:
            yield ""
        inside = bool(line.strip())


def write_parts(folder: Path, project: Path) -> None:
    """Write the parts of the articles in a folder. Raises CorpusError if there are none."""
    articles = sorted(folder.glob("*.tsv"))
    if not articles:
        raise CorpusError(f"{folder}: no articles in it. Expected some: check the repository and the commit.")
    for part in ("train", "dev", "test"):
        lines = [line for path in articles if part_of(path.name) == part for line in lines_of(path)]
        target = project / FILE.format(part)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def main(
    project: Annotated[Path, typer.Argument(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with the three files; empty: none")] = "",
    repository: Annotated[str, typer.Option(help="Of the corpus")] = REPOSITORY,
    commit: Annotated[str, typer.Option(help="Of the corpus")] = COMMIT,
) -> None:
    """Write assets/worldwide_newswire/newswire.{train,dev,test}.conll."""
    if copy_present(project, FILES, data):
        with tempfile.TemporaryDirectory() as folder:
            write_parts(fetch(repository, commit, _FOLDER, Path(folder) / "newswire"), project)
        warn_of_others(project, FILES)


if __name__ == "__main__":
    run_command(main)
