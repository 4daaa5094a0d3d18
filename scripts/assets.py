"""Get the files of the tasks into assets/: from a folder that has them, else from where they are published.

    python -m scripts.assets get snli mnli sick --data FOLDER    # the files of assets.tsv in these folders of assets/
    python -m scripts.assets newswire                            # with git, as are the next two
    python -m scripts.assets propbank                            # after: get ud_english_ewt
    python -m scripts.assets senses

A file of FOLDER, or of the folders inside it, is used only if it has its MD5.
Files whose licence is not free are fetched for the user alone: nothing of them is shipped.
"""

from __future__ import annotations

import csv
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer
from weasel.cli.assets import fetch_asset  # type: ignore[import-untyped]
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError, CorpusError, DownloadError

from .shared import read_lines, run_command

TABLE = "scripts/assets.tsv"
PARTS = ("train", "dev", "test")
# FOLDER may have a corpus in another form than its address has it: prepared files with their MD5, and the originals
# that they stand for, because they give the same docs
PREPARED: list[tuple[dict[str, str], list[str]]] = [
    ({f"assets/snli/snli.{part}.tsv": md5}, [f"assets/snli/{name}.{part}" for name in ("labels", "s1", "s2")])
    for part, md5 in (("dev", "5fa425bacea219c73c86fed69fdf9812"), ("test", "644350bf3a743a6c08788a46111e15e2"))
]
PREPARED.append(({"assets/mnli/mnli_matched_dev.tsv": "40ab4eddf2466496eba46bc53fb06cdd"}, ["assets/mnli/dev.jsonl"]))
_SQUAD = {"train": "bb2e17badeb3007c73e0296b1ef84595", "dev": "e8c164052fb1a098dbb9654b9e99c2f5"}
_SQUAD_ORIGINALS = ("routerlens/dev", "flan/train", "flan/valid", "flan/test")
PREPARED.append(
    (
        {f"assets/squad_part/{part}.jsonl": md5 for part, md5 in _SQUAD.items()},
        [f"assets/squad_part/{name}.json" for name in _SQUAD_ORIGINALS],
    )
)
Files = dict[str, str]  # path -> MD5
Data = Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")]


def is_right(path: str | Path, md5: str) -> bool:
    """Return whether a file exists and has this MD5."""
    return Path(path).is_file() and get_checksum(path) == md5


def read_assets(folders: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return dest, url and checksum of each file in these folders of assets/; of all files, if none is named."""
    with open(TABLE, encoding="utf-8", newline="") as table:
        files = list(csv.DictReader(table, delimiter="\t"))
    names = sorted({Path(file["dest"]).parts[1] for file in files})
    chosen = list(folders) or names
    if unknown := set(chosen) - set(names):
        got = ", ".join(sorted(unknown))
        raise CommandError(f"assets/{got}: no files there. Expected some of the folders {', '.join(names)}.")
    return [file for file in files if Path(file["dest"]).parts[1] in chosen]


def prepared_or_given(sources: Iterable[Path]) -> list[Path]:
    """Return the paths. Prepared files that are all there with their MD5 replace their originals."""
    found: dict[Path, list[Path]] = {}
    for files, originals in PREPARED:
        if all(is_right(path, md5) for path, md5 in files.items()):
            found |= {Path(original): list(map(Path, files)) for original in originals}
    return list(dict.fromkeys(path for source in sources for path in found.get(source, [source])))


def copy_present(files: Files, data: str) -> Files:
    """Copy the files that the folder `data` has to their places. Return those that are not there after that."""
    folder = Path(data).expanduser()
    if data and not folder.is_dir():
        raise CommandError(f"{folder}: no such folder. Change vars.data, or leave it empty.")
    left = {}
    for dest, md5 in files.items():
        if is_right(dest, md5):
            continue
        found = sorted(folder.rglob(Path(dest).name)) if data else []
        source = next((path for path in found if is_right(path, md5)), None)
        if source is None:
            left[dest] = md5
            continue
        Path(dest).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, dest)
        print(f"{source} -> {dest}")
    return left


def get(folders: Annotated[list[str] | None, typer.Argument(help="None: all")] = None, data: Data = "") -> None:
    """Get the files of assets.tsv in FOLDERS of assets/. A file that can't be got, or has another MD5, is named."""
    assets = {file["dest"]: file for file in read_assets(folders or ())}
    for files, originals in PREPARED:
        if set(originals) & set(assets):
            copy_present(files, data)
    wanted = [str(path) for path in prepared_or_given(map(Path, assets)) if str(path) in assets]
    wrong = []
    for dest, md5 in copy_present({dest: assets[dest]["checksum"] for dest in wanted}, data).items():
        url = assets[dest]["url"]
        try:
            fetch_asset(Path.cwd(), url, Path(dest).absolute(), md5)
        except (OSError, SystemExit) as error:  # the second is how it ends where nothing came
            print(f"{url}: {error}")
        if not is_right(dest, md5):
            wrong.append(f"  {dest} (MD5 {md5}), from {url}")
    if wrong:
        raise DownloadError(
            "These files did not come, or have another MD5. Check the connection and run the same command again, or "
            "put them into a folder and name it with --vars.data FOLDER:\n" + "\n".join(wrong)
        )


# What is made of repositories

_UD = "https://github.com/UniversalDependencies/UD_"
REPOSITORIES = {  # at a commit
    "newswire": ("https://github.com/stanfordnlp/en-worldwide-newswire", "e082527b86d9a68475166ab584b9c47f282177da"),
    "propbank": ("https://github.com/propbank/propbank-release", "4abade0b53ce4a181e1d98b3518101c1a44d395a"),
    "senses": ("https://github.com/rubenIzquierdo/wsd_corpora", "c31b9b8eb6d6ca726b6868f19123aaf7e5eb1d88"),
    # of scripts/languages
    "masakhane_ner": ("https://github.com/masakhane-io/masakhane-ner", "ba5843cd08aa491d5f96a5e809e71eb9ec461391"),
    "masakhane_news": ("https://github.com/masakhane-io/masakhane-news", "819be052e79e0a600e0ed4a7356594681cb5c4f3"),
    "lacuna": ("https://github.com/masakhane-io/lacuna_pos_ner", "b210032b53fde2504a4aa0b6a3a9a1e209098712"),
    "lafand": ("https://github.com/masakhane-io/lafand-mt", "d441f8b063d63e95eafb72e84317359e27abf95e"),
    "igbo": ("https://github.com/IgnatiusEzeani/IGBONLP", "83059341edae8760d1d1bfc0e6c07d19771a6238"),
    "bible": ("https://github.com/christos-c/bible-corpus", "44e5fca1bfb369a5da2ee23ebc6f421c88489c5c"),
    "eltec_hun": ("https://github.com/COST-ELTeC/ELTeC-hun", "5977c034202ff3be32f035a3c3782e97f84f90dc"),
    "eltec_slv": ("https://github.com/COST-ELTeC/ELTeC-slv", "42137628a2074b514162aaff51a70960b8cfe5cc"),
    "eltec_ukr": ("https://github.com/COST-ELTeC/ELTeC-ukr", "a8c3d71301cdba767e33551ff0099da1dc51681a"),
    "tesserae": ("https://github.com/cltk/grc_text_tesserae", "6ca055c61a668b5625a9f418d9e37ed9e96d1071"),
    "hebrew": ("https://github.com/elazarg/hebrew_diacritized", "1211c8f3edafd601922d4be473f678ff79c5a12c"),
    "ud_hungarian": (f"{_UD}Hungarian-Szeged", "8f08ba648e6f6345212a721b7cb1ad78c5924f0e"),
    "ud_ancient_greek": (f"{_UD}Ancient_Greek-PTNK", "18b3047746d762784297e25d4c4227be7f1cebcd"),
    "ud_slovenian": (f"{_UD}Slovenian-SSJ", "17011b12eae4e522da4d1eeeffd439085466623c"),
    "ud_ukrainian": (f"{_UD}Ukrainian-IU", "21f641ba6109044ce9aafd4b2cbfa20a4ac6e479"),
    "ud_hebrew": (f"{_UD}Hebrew-HTB", "a6d496c877d0d07d97bcfdb2de11d245ef94256a"),
}
NEWSWIRE = {
    "assets/worldwide_newswire/newswire.train.conll": "0a3e85d102687fe84010f38dedaf30b6",
    "assets/worldwide_newswire/newswire.dev.conll": "78084776c7c15e2a9f22e29313427921",
    "assets/worldwide_newswire/newswire.test.conll": "0a1fcbded9398e52a3914b0f8f64caaf",
}
PROPBANK = {
    "assets/propbank_ewt/propbank_ewt_train.conll": "4b232ed47e6b0b8da2a34e749995cd16",
    "assets/propbank_ewt/propbank_ewt_dev.conll": "7e381524ed58cda7a42d1541c95923eb",
    "assets/propbank_ewt/propbank_ewt_test.conll": "a691cc45903aba267db8886a41a5d0ec",
}
INDEX = "assets/senses/index.sense"
FOLDERS = {  # in the repository, of what each table is made
    "assets/senses/semcor30.tsv": "semcor3.0",
    "assets/senses/senseval2.tsv": "senseval2",
    "assets/senses/senseval3.tsv": "senseval3",
    "assets/senses/semeval2007_task17.tsv": "semeval2007_task17_allwords",
    "assets/senses/semeval2013_task12_en.tsv": "semeval2013_task12/en",
}
_OF_SENSES = "aca5a2bfb253a9b27b95d376419728c9 0883972f8817cd128d243cd4889aaa37 9ce86c6f7361f44d49eeb370d4821575"
_OF_SENSES += " 2437fe0b32dce7bcee696d77b0ce9bd2 806aa4c2a2100150330cc4980dd9cb32 c88b6a143c432bbdbea57ef8d9c85192"
SENSES = dict(zip((INDEX, *FOLDERS), _OF_SENSES.split()))
INSTALLED = Path("/usr/share/wordnet/index.sense")


@contextmanager
def clone_of(corpus: str, *folders: str) -> Iterator[Path]:
    """Yield a clone of a corpus's repository that has these folders, for a while. Raises DownloadError."""
    repository, commit = REPOSITORIES[corpus]
    with tempfile.TemporaryDirectory() as name:
        clone = str(Path(name, "clone"))
        for arguments in (
            ["clone", "--quiet", "--filter=blob:none", "--no-checkout", repository, clone],
            ["-C", clone, "checkout", "--quiet", commit, "--", *folders],
        ):
            result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
            if result.returncode:
                raise DownloadError(
                    f"{repository}: can't be fetched with git ({result.stderr.strip()}). Check the connection, or put "
                    "the files into a folder and name it with --vars.data FOLDER."
                )
        yield Path(clone)


def _write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def _warn_of_others(files: Files) -> None:
    """Say which files that were made are not those that were measured."""
    for dest, md5 in files.items():
        if not is_right(dest, md5):
            print(
                f"warning: {dest} has the MD5 {get_checksum(dest)}; the results of this project were made with {md5}. "
                "Scores can differ: its origin may have changed."
            )


_ARTICLES = "processed_annotated"
_BLANK = re.compile(r"\s")


def part_of(name: str) -> str:
    """Return the part of an article: 10 % of them are for testing, 10 % for development. name: of its file."""
    number = int(hashlib.md5(f"{_ARTICLES}/{name}".encode()).hexdigest(), 16) % 20
    return "test" if number < 2 else "dev" if number < 4 else "train"


def newswire(data: Data = "") -> None:
    """Get Worldwide Newswire (Shan et al. 2023): a file of words and BIO tags for each part.

    The corpus names no parts; an article's part depends on the MD5 of its path, so that a sentence never has
    neighbours in another part. Of nested entities the one in the last column counts.
    """

    def lines_of(path: Path) -> Iterator[str]:
        yield from ("-DOCSTART- O", "")
        inside = False
        for line in [*read_lines(path), ""]:
            word, *tags = line.split("\t")
            if line.strip():
                yield "\t".join([_BLANK.sub("_", word.strip()), tags[-1].strip() if tags else "O"])
            elif inside:
                yield ""
            inside = bool(line.strip())

    if copy_present(NEWSWIRE, data):
        with clone_of("newswire", _ARTICLES) as clone:
            articles = sorted((clone / _ARTICLES).glob("*.tsv"))
            for part, target in zip(PARTS, NEWSWIRE):
                lines = [line for path in articles if part_of(path.name) == part for line in lines_of(path)]
                _write(target, "\n".join(lines).rstrip("\n") + "\n")
        _warn_of_others(NEWSWIRE)


_ROLES, _SUFFIX = "data/google/ewt", ".xml.gold_skel"
_LEMMA = 6  # the first of the columns that are kept; those before it say which word it is


def _annotations(folder: Path) -> dict[tuple[str, int], list[list[str]]]:
    """Return the columns of each word, by the name of the document and the number of the sentence, from 1."""
    found: defaultdict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        document = f"{path.relative_to(folder).parts[0]}-{path.name.removesuffix(_SUFFIX)}"
        for line in read_lines(path):
            if columns := line.split():
                found[document, int(columns[1]) + 1].append(columns[_LEMMA:])
    return found


def _words(path: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each sentence of a CoNLL-U file: its sent_id, and word, both tags of its words."""
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


def propbank(data: Data = "") -> None:
    """Get PropBank's roles on UD English EWT, in the columns that `scripts.convert roles` reads.

    PropBank's annotations have no words, which come from UD English EWT. A sentence is left out if the two divide it
    into another number of words.
    """
    if copy_present(PROPBANK, data):
        with clone_of("propbank", _ROLES) as clone:
            annotations = _annotations(clone / _ROLES)
        for part, target in zip(PARTS, PROPBANK):
            lines = []
            for name, rows in _words(Path(f"assets/ud_english_ewt/en_ewt-ud-{part}.conllu")):
                document, _, number = name.rpartition("-")
                roles = annotations.get((document, int(number)), [])
                if len(roles) == len(rows):
                    words = ["\t".join([*row, *columns]) for row, columns in zip(rows, roles)]
                    lines += [f"# sent_id = {name}", *words, ""]
            _write(target, "".join(f"{line}\n" for line in lines))
        _warn_of_others(PROPBANK)


_KINDS = ("sense", "lexical_key", "sense_number", "synset")  # of references; others name the word in its own corpus
_HEAD = "# token\tlemma\tpos\tsenses (resource:reftype:reference, separated by a blank)"


def _lines_of_naf(path: Path, name: str) -> Iterator[str]:
    """Yield the lines of a text in NAF, an XML format: a comment, a line for each word, an empty line, per sentence.

    name: of the text in the comments.
    """
    try:
        text = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise CorpusError(f"{path}: can't be read ({error}). Expected a text in NAF, an XML format.") from error
    terms = {}
    for term in text.iter("term"):
        keys = ("resource", "reftype", "reference")
        references = [[one.get(key, "") for key in keys] for one in term.iter("externalRef")]
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


def senses(data: Data = "") -> None:
    """Get SemCor, the Senseval and SemEval test sets as tables, and WordNet's index.sense.

    The tables have word, lemma, part of speech and senses. index.sense is that of Debian's package wordnet-sense-index:
    if it is installed, its file is copied.
    """
    wanted = copy_present(SENSES, data)
    if INDEX in wanted:  # before anything is fetched
        if not INSTALLED.is_file():
            raise DownloadError(
                f"{INSTALLED}: no such file. Expected WordNet 3.0's index.sense (MD5 {SENSES[INDEX]}): install "
                "Debian's package wordnet-sense-index, or put the file into a folder and name it with --vars.data "
                "FOLDER."
            )
        Path(INDEX).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(INSTALLED, INDEX)
    if folders := {target: FOLDERS[target] for target in wanted if target != INDEX}:
        with clone_of("senses", *folders.values()) as clone:
            for target, folder in folders.items():
                lines = [_HEAD]
                for path in sorted((clone / folder).rglob("*.naf")):
                    name = path.relative_to(clone / folder).with_suffix("").as_posix()
                    lines += _lines_of_naf(path, name)
                _write(target, "".join(f"{line}\n" for line in lines))
    _warn_of_others(SENSES)


if __name__ == "__main__":
    run_command(get, newswire, propbank, senses)
