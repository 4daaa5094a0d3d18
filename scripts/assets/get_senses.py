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
from typing import Annotated, NamedTuple
from xml.etree import ElementTree

import typer

from spacy_elmo.errors import CorpusError, DownloadError
from spacy_elmo.formats.atomic import replacing

from ..shared.command import run_command
from ..shared.messages import Messages
from .asset_files import is_right
from .get_assets import copy_present, warn_of_others
from .git_files import fetch

REPOSITORY = "https://github.com/rubenIzquierdo/wsd_corpora"
COMMIT = "c31b9b8eb6d6ca726b6868f19123aaf7e5eb1d88"
INSTALLED = Path("/usr/share/wordnet/index.sense")
INDEX, INDEX_CHECKSUM = "index.sense", "aca5a2bfb253a9b27b95d376419728c9"
_FOLDER = "assets/senses"
_KINDS = ("sense", "lexical_key", "sense_number", "synset")  # of references; others name the word in its own corpus
_PARTS = ("resource", "reftype", "reference")
_HEAD = "# token\tlemma\tpos\tsenses (resource:reftype:reference, separated by a blank)"


class Table(NamedTuple):
    """folder: of the corpus in the repository. checksum: MD5 of the table."""

    folder: str
    checksum: str


TABLES = {
    "semcor30.tsv": Table("semcor3.0", "0883972f8817cd128d243cd4889aaa37"),
    "senseval2.tsv": Table("senseval2", "9ce86c6f7361f44d49eeb370d4821575"),
    "senseval3.tsv": Table("senseval3", "2437fe0b32dce7bcee696d77b0ce9bd2"),
    "semeval2007_task17.tsv": Table("semeval2007_task17_allwords", "806aa4c2a2100150330cc4980dd9cb32"),
    "semeval2013_task12_en.tsv": Table("semeval2013_task12/en", "c88b6a143c432bbdbea57ef8d9c85192"),
}


def lines_of(path: Path, name: str) -> Iterator[str]:
    """Yield the lines of a text in NAF, an XML format: a comment, a line for each word, an empty line, per sentence.

    name: of the text in the comments.

    Raises CorpusError if it is not XML.
    """
    try:
        text = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise CorpusError(Messages.CORPUS_NAF.format(path=path, reason=error)) from error
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
    """Write the table of a corpus. Raises CorpusError if there are no texts.

    folder: with texts in NAF, which may be in folders of it.
    """
    texts = sorted(folder.rglob("*.naf"))
    if not texts:
        raise CorpusError(Messages.CORPUS_EMPTY.format(path=folder))
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in texts]
    lines = [line for path, name in zip(texts, names) for line in lines_of(path, name)]
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, CorpusError) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in [_HEAD, *lines]), encoding="utf-8", newline="\n")


def get_senses(project: Path, data: Path | None, repository: str, commit: str, installed: Path) -> None:
    """Copy or make the files in assets/senses."""
    checksums = {**{name: table.checksum for name, table in TABLES.items()}, INDEX: INDEX_CHECKSUM}
    assets = [{"dest": f"{_FOLDER}/{name}", "checksum": checksum} for name, checksum in checksums.items()]
    if data is not None:
        copy_present(project, assets, data)
    wanted = [Path(asset["dest"]).name for asset in assets if not is_right(project / asset["dest"], asset)]
    if INDEX in wanted:  # before anything is fetched
        if not installed.is_file():
            raise DownloadError(Messages.SENSE_INDEX_MISSING.format(path=installed, md5=INDEX_CHECKSUM))
        (project / _FOLDER).mkdir(parents=True, exist_ok=True)
        with replacing(project / _FOLDER / INDEX, CorpusError) as temporary:
            shutil.copyfile(installed, temporary)
    with tempfile.TemporaryDirectory() as folder:
        for name, table in TABLES.items():
            if name in wanted:
                texts = fetch(repository, commit, table.folder, Path(folder) / "corpora", TABLES)
                write_table(texts, project / _FOLDER / name)
    warn_of_others(project, assets)


def main(
    project: Annotated[Path, typer.Argument(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")] = "",
    repository: Annotated[str, typer.Option(help="Of the corpora")] = REPOSITORY,
    commit: Annotated[str, typer.Option(help="Of the corpora")] = COMMIT,
    installed: Annotated[Path, typer.Option(help="WordNet's index.sense, if the folder has none")] = INSTALLED,
) -> None:
    """Write the tables of the corpora, and index.sense, to assets/senses."""
    get_senses(project, Path(data).expanduser() if data else None, repository, commit, installed)


if __name__ == "__main__":
    run_command(main)
