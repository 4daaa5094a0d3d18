"""Get SemCor, the Senseval and SemEval test sets, and WordNet's list of senses, as convert_senses.py reads them.

Files that the folder --data has with their MD5 are copied. Else the corpora are fetched with git and become tables of
word, lemma, part of speech and senses. WordNet's index.sense is that of Debian's package wordnet-sense-index: if it is
installed, its file is copied.

    python -m scripts.assets.get_senses --data FOLDER
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer

from spacy_elmo.errors import CorpusError, DownloadError

from ..shared import run_command
from .get_assets import copy_present, fetch, warn_of_others

REPOSITORY = "https://github.com/rubenIzquierdo/wsd_corpora"
COMMIT = "c31b9b8eb6d6ca726b6868f19123aaf7e5eb1d88"
INSTALLED = Path("/usr/share/wordnet/index.sense")
INDEX = "assets/senses/index.sense"
FILES = {
    INDEX: "aca5a2bfb253a9b27b95d376419728c9",
    "assets/senses/semcor30.tsv": "0883972f8817cd128d243cd4889aaa37",
    "assets/senses/senseval2.tsv": "9ce86c6f7361f44d49eeb370d4821575",
    "assets/senses/senseval3.tsv": "2437fe0b32dce7bcee696d77b0ce9bd2",
    "assets/senses/semeval2007_task17.tsv": "806aa4c2a2100150330cc4980dd9cb32",
    "assets/senses/semeval2013_task12_en.tsv": "c88b6a143c432bbdbea57ef8d9c85192",
}
FOLDERS = {  # of the corpora in the repository
    "assets/senses/semcor30.tsv": "semcor3.0",
    "assets/senses/senseval2.tsv": "senseval2",
    "assets/senses/senseval3.tsv": "senseval3",
    "assets/senses/semeval2007_task17.tsv": "semeval2007_task17_allwords",
    "assets/senses/semeval2013_task12_en.tsv": "semeval2013_task12/en",
}
_KINDS = ("sense", "lexical_key", "sense_number", "synset")  # of references; others name the word in its own corpus
_PARTS = ("resource", "reftype", "reference")
_HEAD = "# token\tlemma\tpos\tsenses (resource:reftype:reference, separated by a blank)"


def lines_of(path: Path, name: str) -> Iterator[str]:
    """Yield the lines of a text in NAF, an XML format: a comment, a line for each word, an empty line, per sentence.

    name: of the text in the comments.

    Raises CorpusError if it is not XML.
    """
    try:
        text = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise CorpusError(f"{path}: can't be read ({error}). Expected a text in NAF, an XML format.") from error
    terms = {}
    for term in text.iter("term"):
        references = [[one.get(key, "") for key in _PARTS] for one in term.iter("externalRef")]
        senses = " ".join(":".join(one) for one in references if one[1] in _KINDS)
        for target in term.iter("target"):
            terms[target.get("id")] = [term.get("lemma") or "-", term.get("pos") or "-", senses or "-"]
    sentence = None
    for word in text.iter("wf"):
        if word.get("sent") != sentence:
            if sentence is not None:
                yield ""
            sentence = word.get("sent")
            yield f"# {name} sent {sentence}"
        yield "\t".join([(word.text or "").strip(), *terms.get(word.get("id"), ["-"] * 3)])
    yield ""


def write_table(folder: Path, target: Path) -> None:
    """Write the table of the corpus whose texts are in a folder and its folders. Raises CorpusError if it has none."""
    texts = sorted(folder.rglob("*.naf"))
    if not texts:
        raise CorpusError(f"{folder}: no texts in it. Expected some: check the repository and the commit.")
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in texts]
    lines = [line for path, name in zip(texts, names) for line in lines_of(path, name)]
    target.write_text("".join(f"{line}\n" for line in [_HEAD, *lines]), encoding="utf-8", newline="\n")


def main(
    project: Annotated[Path, typer.Argument(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")] = "",
    repository: Annotated[str, typer.Option(help="Of the corpora")] = REPOSITORY,
    commit: Annotated[str, typer.Option(help="Of the corpora")] = COMMIT,
    installed: Annotated[Path, typer.Option(help="WordNet's index.sense, if the folder has none")] = INSTALLED,
) -> None:
    """Write the tables of the corpora, and index.sense, to assets/senses."""
    wanted = copy_present(project, FILES, data)
    (project / INDEX).parent.mkdir(parents=True, exist_ok=True)
    if INDEX in wanted:  # before anything is fetched
        if not installed.is_file():
            raise DownloadError(
                f"{installed}: no such file. Expected WordNet 3.0's index.sense (MD5 {FILES[INDEX]}): install Debian's "
                "package wordnet-sense-index, or put the file into a folder and name it with --vars.data FOLDER."
            )
        shutil.copyfile(installed, project / INDEX)
    with tempfile.TemporaryDirectory() as folder:
        for path in wanted.keys() - {INDEX}:
            write_table(fetch(repository, commit, FOLDERS[path], Path(folder) / "corpora"), project / path)
    warn_of_others(project, FILES)


if __name__ == "__main__":
    run_command(main)
