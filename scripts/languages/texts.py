"""Make texts of African languages for biLMs, and corpora of their entities, those of MasakhaNER 2.0.

    python -m scripts.languages.texts assets/languages corpus/languages

The first folder gets the files of sources.tsv and those of MasakhaNER, with git; what it has is not fetched. The second
one gets text/LANGUAGE.txt (a sentence a line, words separated by blanks), all.txt (the sentences of all languages,
shuffled), LANGUAGE/train.spacy, dev.spacy and test.spacy, and counts.json. No sentence of a development or test part,
and no piece of one, is in a text. Few of the files may be used commercially: nothing of them is shipped.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from ..assets import clone_of
from ..convert import begun, blocks, write_docs
from ..shared import run_command

SOURCES = Path(__file__).with_name("sources.tsv")
PARTS = ("train", "dev", "test")
NER, ENTITIES = "masakhane_ner", "MasakhaNER2.0/data"
ANNOTATED = ["bam", "bbj", "ewe", "fon", "hau", "ibo", "kin", "lug", "luo", "mos"]
ANNOTATED += ["nya", "pcm", "sna", "swa", "tsn", "twi", "wol", "xho", "yor", "zul"]
# quotation marks and dashes; what can't be seen goes
_MARKS = dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'") | dict.fromkeys(
    map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"'
)
_MARKS |= dict.fromkeys(map(ord, "\u2013\u2014"), "-") | dict.fromkeys(map(ord, "\u200b\u200f\ufeff\xad"), "")
_LETTER = r"[\w\u0300-\u036f]"  # some letters of Yoruba have an accent of their own character
# as the words of MasakhaNER are; 'yan is a word of Hausa, and bang' of Luo
_WORD = re.compile(rf"'?{_LETTER}+(?:'{_LETTER}+)*(?:(?<=ng)')?|\S")
_PIECE = 20  # letters; shorter sentences are left out only if they are whole sentences of a part
Sentence = Sequence[str]


def written(text: str) -> str:
    """Return a text with one form of each accent, quotation mark and dash."""
    return unicodedata.normalize("NFC", text.translate(_MARKS))


def letters_of(words: Sentence) -> str:
    """Return the letters of words without accents, in lower case."""
    return "".join(filter(str.isalpha, unicodedata.normalize("NFKD", "".join(words).lower())))


def sentences_of(line: str) -> Iterator[Sentence]:
    """Yield the words of each sentence: one ends with . ? or ! if a capital follows, but not after an initial."""
    words = _WORD.findall(written(line))
    begin = 0
    for i, (word, after) in enumerate(pairwise(words), 1):
        ends = word in "?!" or (word == "." and i > 1 and len(words[i - 2]) > 2)
        if ends and after.lstrip("'")[:1].isupper():
            yield words[begin:i]
            begin = i
    if words:
        yield words[begin:]


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a text, the headlines and articles of a table, or the verses of a Bible."""
    text = path.read_text(encoding="utf-8-sig", errors="ignore")
    if path.suffix == ".xml":
        fields: Iterable[str | None] = (verse.text for verse in ElementTree.fromstring(text).iter("seg"))
    elif path.suffix == ".csv":
        fields = (field for row in csv.reader(io.StringIO(text, newline="")) for field in row)
    elif path.suffix == ".tsv":
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
        fields = (row[name] for row in rows for name in ("headline", "text"))
    else:
        fields = (line.rpartition("\t")[2] for line in text.split("\n"))  # igbo_data.txt has a column before it
    for field in fields:
        yield from (field or "").split("\n")


def entities_of(path: Path) -> list[tuple[Sentence, list[str]]]:
    """Return words and BIO tags of each sentence of MasakhaNER, where a quotation mark is four of them."""
    sentences = [[line.split() for _, line in block] for block in blocks(path)]
    return [([written(row[0]).replace('""""', '"') for row in rows], [row[-1] for row in rows]) for rows in sentences]


def doc_of(vocab: Vocab, words: Sentence, tags: Sequence[str]) -> Doc:
    """Return a doc with entities. Igbo's n'X, which MasakhaNER divides in three with a quotation mark, is one word."""
    joined: list[tuple[str, str]] = []
    for word, tag in zip(words, tags):
        if tag == "O" and [one for one, _ in joined[-2:]] in (["n", '"'], ["N", '"']) and word[0].isalpha():
            word = f"{joined[-2][0]}'{word}"
            del joined[-2:]
        joined.append((word, tag))
    doc = Doc(vocab, words=[word for word, _ in joined], sent_starts=begun([len(joined)]))
    doc.set_ents(biluo_tags_to_spans(doc, iob_to_biluo([tag for _, tag in joined])), default="outside")
    return doc


def without(sentences: Iterable[Sentence]) -> Callable[[Sentence], bool]:
    """Return a function that tells whether a sentence is one of these, has one of them in it, or is a piece of one.

    Letters alone are compared. Of a piece, the first and the last 20 letters are.
    """
    whole = {letters_of(words) for words in sentences} - {""}
    runs = {one[i : i + _PIECE] for one in whole for i in range(len(one) - _PIECE + 1)}
    begins = defaultdict(list)
    for one in whole:
        if len(one) >= _PIECE:
            begins[one[:_PIECE]].append(one)

    def is_one(words: Sentence) -> bool:
        letters = letters_of(words)
        if letters in whole or (letters[:_PIECE] in runs and letters[-_PIECE:] in runs):
            return True
        places = range(len(letters) - _PIECE + 1)
        return any(letters.startswith(one, i) for i in places for one in begins.get(letters[i : i + _PIECE], ()))

    return is_one


def fetch(assets: Path, files: Iterable[tuple[str, str]]) -> None:
    """Fetch the files that are missing, each named by its repository and its path there."""
    missing = defaultdict(list)
    for repository, path in files:
        if not (assets / repository / path).is_file():
            missing[repository].append(path)
    for repository, paths in missing.items():
        with clone_of(repository, *paths) as clone:
            for path in paths:
                (assets / repository / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(clone / path, assets / repository / path)


def main(assets: Path, out: Path) -> None:
    """Write texts and corpora of the files in ASSETS to OUT."""
    with SOURCES.open(encoding="utf-8", newline="") as table:
        sources = list(csv.DictReader(table, delimiter="\t"))
    of_part = {(one, part): f"{ENTITIES}/{one}/{part}.txt" for one in ANNOTATED for part in PARTS}
    files = [(source["repository"], source["path"]) for source in sources]
    fetch(assets, [*files, *((NER, path) for path in of_part.values())])
    vocab, annotated = Vocab(), {}
    for (language, part), path in of_part.items():
        found = entities_of(assets / NER / path)
        write_docs(Path(path), (doc_of(vocab, *one) for one in found), out / language / f"{part}.spacy")
        annotated[language, part] = [words for words, _ in found]
    is_one = without(words for (_, part), found in annotated.items() if part != "train" for words in found)
    counts, everything = {}, []
    (out / "text").mkdir(exist_ok=True)
    for language in sorted({source["language"] for source in sources}):
        paths = [assets / one["repository"] / one["path"] for one in sources if one["language"] == language]
        sentences = (words for path in paths for line in lines_of(path) for words in sentences_of(line))
        seen: dict[str, Sentence] = {}  # each sentence once, as it is written first
        for words in (*filter(letters_of, sentences), *annotated.get((language, "train"), ())):
            seen.setdefault(letters_of(words), words)
        text = [" ".join(words) for words in seen.values() if not is_one(words)]
        sizes = [len(word.encode()) for line in text for word in line.split()]
        counts[language] = {
            "sentences": len(text),
            "left out": len(seen) - len(text),
            "words": len(sizes),
            "bytes a word": round(sum(sizes) / len(sizes), 2),
            "words of more than 48 bytes": sum(size > 48 for size in sizes),
        }
        print(language, counts[language], flush=True)
        (out / "text" / f"{language}.txt").write_text("\n".join(text) + "\n", encoding="utf-8", newline="\n")
        everything += text
    random.Random(0).shuffle(everything)
    (out / "all.txt").write_text("\n".join(everything) + "\n", encoding="utf-8", newline="\n")
    (out / "counts.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    run_command(main)
