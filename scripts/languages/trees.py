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
from typing import Annotated, NamedTuple
from xml.etree import ElementTree

import spacy
import typer
from spacy.tokens import DocBin
from spacy.training.converters.conllu_to_docs import conllu_to_docs

from ..assets import clone_of
from ..bilms.embeddings import train_floret
from ..bilms.latin import SETTINGS
from ..runs.experiments import keep_result, read_results
from ..shared import origin, read_lines, run_command, run_elmo
from .compare import facts_of, train_bilm
from .texts import PARTS, without, written

TOKENS = 12_000_000  # words that a biLM reads: about an hour of one core
CHARACTERS = 100_000  # of a text that is divided at once
SCORES = ("pos_acc", "morph_acc", "dep_uas", "dep_las")
_TEI = "{http://www.tei-c.org/ns/1.0}"
_MARKS = dict.fromkeys(map(ord, "\u1fbd\u1fbf"), "'") | dict.fromkeys(map(ord, "\xb7\u0387"), ":") | {0x05BE: "-"}
_MARKS |= dict.fromkeys([0x200E, *range(0x202A, 0x202F), *range(0x0591, 0x05BE), *range(0x05BF, 0x05C8)], "")
_PARAGRAPHS = [f"{_TEI}{tag}" for tag in ("head", "p", "l")]


class Language(NamedTuple):
    """Text and treebank of a language. texts, treebank: names of repositories."""

    texts: str
    folders: tuple[str, ...]
    treebank: str
    files: str  # of the treebank; a part follows
    cut: int | None = None  # so many sentences of its development part are for training: its training part is large
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
                part = assets / repository / f"{path}.part"  # a command that is stopped leaves nothing under the name
                part.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(part, ignore_errors=True)
                shutil.move(clone / path, part)
                part.rename(assets / repository / path)


def alike(text: str) -> str:
    """Return a text with one form of accents and marks, so that texts and treebanks are written alike.

    What can't be seen and Hebrew's points go; breathings and accents that stand before their Greek letter follow it.
    """
    text = written(text).translate(_MARKS)
    return unicodedata.normalize("NFC", re.sub("(?<![\\w\u0300-\u036f])([\u0300-\u036f]+)(\\w)", r"\2\1", text))


def paragraphs_of(path: Path) -> Iterator[str]:
    """Yield the paragraphs of a novel, or of another text: its lines, or all of them together if they have a number."""
    text = path.read_text(encoding="utf-8-sig", errors="ignore")
    if path.suffix == ".xml":
        for body in ElementTree.fromstring(text).iter(f"{_TEI}body"):
            yield from (alike("".join(one.itertext())) for one in body.iter() if one.tag in _PARAGRAPHS)
    elif path.suffix == ".tess":
        lines = "\n".join(line.partition(">")[2].strip() for line in alike(text).split("\n"))
        yield lines.replace("-\n", "")  # divided words
    else:
        yield from alike(text).split("\n")


def write_texts(language: str, files: Iterable[Path], left_out: Iterable[str], out: Path) -> dict[str, int]:
    """Write the sentences (raw/text.txt), and their words separated by blanks (words.txt), and return counts."""
    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    pieces = (
        paragraph[i : i + CHARACTERS]
        for file in files
        for paragraph in (" ".join(one.split()) for one in paragraphs_of(file))
        for i in range(0, len(paragraph), CHARACTERS)
    )
    sentences = {
        sentence.text.strip(): [word.text for word in sentence] for doc in nlp.pipe(pieces) for sentence in doc.sents
    }
    is_one = without([text] for text in left_out)
    kept = {text: words for text, words in sentences.items() if text and not is_one(words)}
    (out / "raw").mkdir(parents=True, exist_ok=True)
    (out / "raw" / "text.txt").write_text("\n".join(kept) + "\n", encoding="utf-8", newline="\n")
    lines = "\n".join(" ".join(word for word in words if not word.isspace()) for words in kept.values())
    (out / "words.txt").write_text(lines + "\n", encoding="utf-8", newline="\n")
    sizes = [len(word.encode()) for words in kept.values() for word in words]
    counts = {"sentences": len(kept), "left out": len(sentences) - len(kept), "words": len(sizes)}
    return counts | {"bytes": sum(sizes), "words of more than 48 bytes": sum(size > 48 for size in sizes)}


def write_parts(one: Language, assets: Path, out: Path) -> tuple[dict[str, Path], dict[str, list[str]]]:
    """Write the parts of a treebank, and return their files, and the text of each sentence."""
    fetch(assets, one.treebank, [f"{one.files}-{part}.conllu" for part in PARTS if part != "train" or one.cut is None])
    parts = {}
    for part in PARTS if one.cut is None else PARTS[1:]:
        lines = read_lines(assets / one.treebank / f"{one.files}-{part}.conllu")
        parts[part] = [alike(sentence) for sentence in "\n".join(lines).split("\n\n") if sentence.strip()]
    if one.cut is not None:
        parts["train"], parts["dev"] = parts["dev"][: one.cut], parts["dev"][one.cut :]
    files = {part: out / f"{part}.{'spacy' if one.joined else 'conllu'}" for part in PARTS}
    out.mkdir(parents=True, exist_ok=True)
    for part, file in files.items():
        text = "".join(f"{sentence}\n\n" for sentence in parts[part])
        if one.joined:
            DocBin(docs=conllu_to_docs(text, n_sents=1, merge_subtokens=True, no_print=True)).to_disk(file)
        else:
            file.write_text(text, encoding="utf-8", newline="\n")
    return files, {part: re.findall("^# text = (.*)", "\n".join(of), re.MULTILINE) for part, of in parts.items()}


def measure(language: str, assets: Path, out: Path, seeds: int) -> None:
    """Make a language's text, biLM and vectors, and compare the networks on its treebank."""
    one = LANGUAGES[language]
    files, sentences = write_parts(one, assets, out / "treebank")
    counts = out / "counts.json"
    if not counts.is_file():
        fetch(assets, one.texts, one.folders)
        paths = [file for folder in one.folders for file in (assets / one.texts / folder).rglob("*")]
        texts = sorted(file for file in paths if file.suffix in (".xml", ".tess", ".txt"))
        found = write_texts(language, texts, [*sentences["dev"], *sentences["test"]], out)
        counts.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(language, found, flush=True)
    if not (vectors := out / "floret").is_dir():
        (part := out / "floret.part").mkdir(exist_ok=True)
        train_floret(out / "words.txt", part, language)
        part.rename(vectors)
    bilm = train_bilm(out / "raw", out / "bilm", "--training.total_tokens", str(TOKENS), language=language)
    options = ["--pipeline", "morphologizer,parser", "--lang", language, "--model", str(bilm)]
    options += ["--vectors", str(vectors), "--seeds", str(seeds)]
    for name, value in {**SETTINGS, "nlp.after_pipeline_creation": {"@callbacks": "spacy-elmo.NumpyGemm.v1"}}.items():
        options += [f"--{name}", json.dumps(value)]
    compared = out / "compared"
    run_elmo("compare", str(compared), *(part for name in PARTS for part in (f"--{name}", str(files[name]))), *options)
    sizes = json.loads(counts.read_text(encoding="utf-8")) | {"trees": len(sentences["train"])}
    keep_result("languages_trees", f"{language}/text", sizes | facts_of(bilm.parent))
    known = read_results("languages_trees")
    for run in json.loads((compared / "scores.json").read_text(encoding="utf-8"))["runs"]:
        key = f"{language}/{run['network']}/seed-{run['seed']}"
        scores = {name: run["scores"][name] for name in SCORES}
        if key not in known or known[key]["scores"] != scores:  # what was measured earlier keeps its commit
            keep_result("languages_trees", key, {**origin(), "scores": scores})


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
