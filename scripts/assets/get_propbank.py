"""Get PropBank's roles on UD English EWT, in the columns that convert_roles.py reads: a file for each part.

If the folder --data has the three files with their MD5, they are copied. Else PropBank's annotations are fetched with
git; they have no words, which come from UD English EWT, an asset of the project. A sentence is left out if the
two divide it into another number of words.

    python -m scripts.assets.get_propbank --data FOLDER
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo.errors import CorpusError

from ..shared import read_lines, run_command
from .get_assets import copy_present, fetch, warn_of_others

REPOSITORY = "https://github.com/propbank/propbank-release"
COMMIT = "4abade0b53ce4a181e1d98b3518101c1a44d395a"
FILE = "assets/propbank_ewt/propbank_ewt_{}.conll"
FILES = {
    FILE.format("train"): "4b232ed47e6b0b8da2a34e749995cd16",
    FILE.format("dev"): "7e381524ed58cda7a42d1541c95923eb",
    FILE.format("test"): "a691cc45903aba267db8886a41a5d0ec",
}
_FOLDER = "data/google/ewt"
_SUFFIX = ".xml.gold_skel"
_LEMMA = 6  # the first of the columns that are kept; those before it say which word it is
Sentences = dict[int, list[list[str]]]


def read_annotations(folder: Path) -> dict[str, Sentences]:
    """Return the columns of each word: name of the document -> number of the sentence, from 0 -> words."""
    documents = {}
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        sentences: defaultdict[int, list[list[str]]] = defaultdict(list)
        for line in read_lines(path):
            if columns := line.split():
                sentences[int(columns[1])].append(columns[_LEMMA:])
        documents[f"{path.relative_to(folder).parts[0]}-{path.name.removesuffix(_SUFFIX)}"] = dict(sentences)
    return documents


def read_words(path: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Return each sentence of a CoNLL-U file: its sent_id, and word, both tags of its words."""
    name = ""
    words: list[list[str]] = []
    for line in [*read_lines(path), ""]:
        if line.startswith("# sent_id = "):
            name = line.removeprefix("# sent_id = ").strip()
        elif not line.strip():
            if words:
                yield name, words
            words = []
        elif not line.startswith("#") and (columns := line.split("\t"))[0].isdecimal():
            words.append([columns[1], columns[4], columns[3]])


def join(annotations: dict[str, Sentences], words: Path, target: Path) -> None:
    """Write a part. words: its file of UD English EWT. Raises CorpusError if there is no sentence in it."""
    parts = []
    for name, rows in read_words(words):
        document, _, number = name.rpartition("-")
        roles = annotations.get(document, {}).get(int(number) - 1, [])
        if len(roles) == len(rows):
            lines = ["\t".join([*row, *columns]) + "\n" for row, columns in zip(rows, roles)]
            parts.append("".join([f"# sent_id = {name}\n", *lines, "\n"]))
    if not parts:
        raise CorpusError(f"{words}: no sentence of it has roles. Expected UD English EWT: get it again.")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(parts), encoding="utf-8", newline="\n")
    print(f"{words}: {len(parts):,} sentences -> {target}")


def main(
    project: Annotated[Path, typer.Argument(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with the three files; empty: none")] = "",
    repository: Annotated[str, typer.Option(help="Of PropBank's release")] = REPOSITORY,
    commit: Annotated[str, typer.Option(help="Of PropBank's release")] = COMMIT,
) -> None:
    """Write assets/propbank_ewt/propbank_ewt_{train,dev,test}.conll."""
    if copy_present(project, FILES, data):
        with tempfile.TemporaryDirectory() as folder:
            annotations = read_annotations(fetch(repository, commit, _FOLDER, Path(folder) / "propbank"))
        for part in ("train", "dev", "test"):
            words = project / f"assets/ud_english_ewt/en_ewt-ud-{part}.conllu"
            join(annotations, words, project / FILE.format(part))
        warn_of_others(project, FILES)


if __name__ == "__main__":
    run_command(main)
