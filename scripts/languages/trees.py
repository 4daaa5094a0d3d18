"""Five languages with open text and a small treebank: what a biLM of an hour brings to a parser.

    OMP_NUM_THREADS=1 python -m scripts.languages.trees assets/languages training/trees hu grc sl uk he --seeds 3

The first folder gets the texts and treebanks, with git; what it has is not fetched. The second one gets LANGUAGE/: the
text, the biLM, floret's vectors of the same text, and what `elmo compare` writes, by docs/your_language.md. Scores are
put into results/languages_trees.json. A command that was stopped goes on. Sentences of development and test parts are
taken out of the texts, by their letters alone. Two treebanks are for non-commercial use: nothing is shipped.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.etree import ElementTree

import spacy
import typer
from spacy.tokens import DocBin
from spacy.training.converters.conllu_to_docs import conllu_to_docs

from ..assets import clone_of
from ..bilms.embeddings import train_floret
from ..bilms.latin import SETTINGS
from ..runs.experiments import keep_result
from ..shared import origin, read_lines, run_command, run_elmo
from .compare import facts_of, train_bilm
from .texts import PARTS, without

TOKENS = 12_000_000  # words that a biLM reads: about an hour of one core
CHARACTERS = 100_000  # of a text that is divided at once
SCORES = ("pos_acc", "morph_acc", "dep_uas", "dep_las")
_TEI = "{http://www.tei-c.org/ns/1.0}"
_PARAGRAPHS = [f"{_TEI}{tag}" for tag in ("head", "p", "l")]


class Language(NamedTuple):
    """Text and treebank of a language. texts, treebank: names of repositories."""

    texts: str
    folders: tuple[str, ...]
    treebank: str
    files: str  # of the treebank; a part follows
    cut: int | None = None  # its training part could not be had: so many sentences of the development part are
    joined: bool = False  # it divides words that the text does not: they are joined


_HEBREW = ("law", "modern", "pre_modern", "shortstoryproject_Dicta")
LANGUAGES = {
    "hu": Language("eltec_hun", ("level1",), "ud_hungarian", "hu_szeged-ud"),
    "grc": Language("tesserae", ("texts",), "ud_ancient_greek", "grc_ptnk-ud"),
    "sl": Language("eltec_slv", ("level1",), "ud_slovenian", "sl_ssj-ud", cut=1000),
    "uk": Language("eltec_ukr", ("level1",), "ud_ukrainian", "uk_iu-ud", cut=540),
    "he": Language("hebrew", _HEBREW, "ud_hebrew", "he_htb-ud", cut=390, joined=True),
}


def fetch(assets: Path, repository: str, paths: Iterable[str]) -> None:
    """Fetch folders and files of a repository that are missing."""
    missing = [path for path in paths if not (assets / repository / path).exists()]
    if missing:
        with clone_of(repository, *missing) as clone:
            for path in missing:
                (assets / repository / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(clone / path, assets / repository / path)


def written(text: str) -> str:
    """Return a text with one form of each accent, without Hebrew's points, and with breathings after their capital."""
    text = re.sub("([\u0313\u0314])([\u0391-\u03a9])", r"\2\1", text)
    text = re.sub("[\u0591-\u05bd\u05bf-\u05c7]", "", text).replace("\u05be", "-")
    return " ".join(unicodedata.normalize("NFC", text).split())


def paragraphs_of(path: Path) -> Iterator[str]:
    """Yield the paragraphs of a novel, or of another text: its lines, or all of them together if they have a number."""
    text = path.read_text(encoding="utf-8-sig", errors="ignore")
    if path.suffix == ".xml":
        for body in ElementTree.fromstring(text).iter(f"{_TEI}body"):
            yield from ("".join(one.itertext()) for one in body.iter() if one.tag in _PARAGRAPHS)
    elif path.suffix == ".tess":
        yield " ".join(line.partition(">")[2] for line in text.split("\n"))
    else:
        yield from text.split("\n")


def write_texts(language: str, files: Iterable[Path], left_out: list[list[str]], out: Path) -> dict[str, int]:
    """Write the sentences (raw/text.txt), and their words separated by blanks (words.txt), and return counts."""
    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    pieces = (
        paragraph[i : i + CHARACTERS]
        for file in files
        for paragraph in map(written, paragraphs_of(file))
        for i in range(0, len(paragraph), CHARACTERS)
    )
    sentences = {
        sentence.text.strip(): [word.text for word in sentence] for doc in nlp.pipe(pieces) for sentence in doc.sents
    }
    is_one = without(left_out)
    kept = {text: words for text, words in sentences.items() if text and not is_one(words)}
    (out / "raw").mkdir(parents=True, exist_ok=True)
    (out / "raw" / "text.txt").write_text("\n".join(kept) + "\n", encoding="utf-8", newline="\n")
    lines = "\n".join(" ".join(word for word in words if not word.isspace()) for words in kept.values())
    (out / "words.txt").write_text(lines + "\n", encoding="utf-8", newline="\n")
    sizes = [len(word.encode()) for words in kept.values() for word in words]
    counts = {"sentences": len(kept), "left out": len(sentences) - len(kept), "words": len(sizes)}
    return counts | {"bytes": sum(sizes), "words of more than 48 bytes": sum(size > 48 for size in sizes)}


def write_parts(one: Language, assets: Path, out: Path) -> dict[str, Path]:
    """Write the parts of a treebank, and return their files."""
    fetch(assets, one.treebank, [f"{one.files}-{part}.conllu" for part in PARTS if part != "train" or one.cut is None])
    parts = {}
    for part in PARTS if one.cut is None else PARTS[1:]:
        lines = read_lines(assets / one.treebank / f"{one.files}-{part}.conllu")
        parts[part] = [sentence for sentence in "\n".join(lines).split("\n\n") if sentence.strip()]
    if one.cut is not None:
        parts["train"], parts["dev"] = parts["dev"][: one.cut], parts["dev"][one.cut :]
    files = {part: out / f"{part}.{'spacy' if one.joined else 'conllu'}" for part in PARTS}
    for part, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{sentence}\n\n" for sentence in parts[part])
        if one.joined:
            DocBin(docs=conllu_to_docs(text, n_sents=1, merge_subtokens=True, no_print=True)).to_disk(file)
        else:
            file.write_text(text, encoding="utf-8", newline="\n")
    return files


def words_of(file: Path) -> list[list[str]]:
    """Return the words of each sentence of a part."""
    if file.suffix == ".spacy":
        return [[word.text for word in doc] for doc in DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab)]
    sentences = file.read_text(encoding="utf-8").split("\n\n")
    rows = [[line.split("\t") for line in sentence.split("\n") if line[:1].isdigit()] for sentence in sentences]
    return [[row[1] for row in sentence if row[0].isdigit()] for sentence in rows if sentence]


def measure(language: str, assets: Path, out: Path, seeds: int) -> None:
    """Make a language's text, biLM and vectors, and compare the networks on its treebank."""
    one = LANGUAGES[language]
    files = write_parts(one, assets, out / "treebank")
    counts = out / "counts.json"
    if not counts.is_file():
        fetch(assets, one.texts, one.folders)
        texts = sorted(
            file for folder in one.folders for file in (assets / one.texts / folder).rglob("*") if file.is_file()
        )
        found = write_texts(language, texts, [*words_of(files["dev"]), *words_of(files["test"])], out)
        counts.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(language, found, flush=True)
    if not (out / "floret" / "config.cfg").is_file():
        (out / "floret").mkdir(exist_ok=True)
        train_floret(out / "words.txt", out / "floret", language)
    bilm = train_bilm(out / "raw", out / "bilm", "--training.total_tokens", str(TOKENS), language=language)
    options = ["--pipeline", "morphologizer,parser", "--lang", language, "--model", str(bilm)]
    options += ["--vectors", str(out / "floret"), "--seeds", str(seeds)]
    for name, value in {**SETTINGS, "nlp.after_pipeline_creation": {"@callbacks": "spacy-elmo.NumpyGemm.v1"}}.items():
        options += [f"--{name}", json.dumps(value)]
    compared = out / "compared"
    run_elmo("compare", str(compared), *(part for name in PARTS for part in (f"--{name}", str(files[name]))), *options)
    sizes = json.loads(counts.read_text(encoding="utf-8")) | {"trees": len(words_of(files["train"]))}
    keep_result("languages_trees", f"{language}/text", sizes | facts_of(bilm.parent))
    for run in json.loads((compared / "scores.json").read_text(encoding="utf-8"))["runs"]:
        scores: dict[str, Any] = {key: run["scores"][key] for key in SCORES}
        keep_result(
            "languages_trees", f"{language}/{run['network']}/seed-{run['seed']}", {**origin(), "scores": scores}
        )


def main(
    assets: Path,
    out: Path,
    languages: Annotated[list[str], typer.Argument(help=f"Of {', '.join(LANGUAGES)}")],
    seeds: Annotated[int, typer.Option(help="Trainings of each network")] = 3,
) -> None:
    """Measure LANGUAGES: the first seed of all of them, then the next."""
    for seed in range(seeds):
        for language in languages:
            measure(language, assets, out / language, seed + 1)


if __name__ == "__main__":
    run_command(main)
