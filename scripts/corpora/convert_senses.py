"""Convert corpora with WordNet senses to the form that `elmo wsd` reads, and write WordNet's first senses.

The sources are SemCor 3.0 and the Senseval and SemEval test sets as tables of word, lemma, part of speech and senses,
where a sense is resource:kind:reference. Senses are named by WordNet's sense keys. The test sets have keys of several
versions of WordNet; those that WordNet 3.0 does not have are left out, and a word without any other has no sense.
index.sense is a file of WordNet 3.0 (Debian has it in the package wordnet-sense-index).

    python -m scripts.corpora.convert_senses index.sense corpus/senses semcor30.tsv senseval2.tsv senseval3.tsv
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from spacy_elmo.errors import CorpusError

from ..shared import read_lines, run_command

_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # the number after the % of a key; 5: satellite adjectives
FIRST = "first_senses.tsv"


def lemma_of(key: str) -> tuple[str, str]:
    """Return the lemma and the part of speech of a sense key such as bank%1:14:00::."""
    lemma, _, rest = key.partition("%")
    return lemma, _POS[rest[0]]


def read_wordnet(path: Path) -> dict[str, bool]:
    """Return the sense keys in index.sense, and whether each is the first sense of its lemma and part of speech.

    A line has a key, the place of the synset, the number of the sense and a count. Raises CorpusError.
    """
    keys = {}
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split()
        if columns and (len(columns) != 4 or columns[0].partition("%")[2][:1] not in _POS):
            raise CorpusError(f"{path}, line {number}: expected a line of WordNet's file index.sense; got {line!r}.")
        if columns:
            keys[columns[0]] = columns[2] == "1"
    return keys


def keys_of(lemma: str, senses: str) -> list[str]:
    """Return the sense keys of a word, of any version of WordNet. Raises ValueError if `senses` has another form."""
    keys: list[str] = []
    for sense in senses.split():
        _, kind, reference = sense.split(":", 2)
        if kind == "sense":
            keys.append(reference)
        elif kind == "lexical_key":
            keys += [f"{lemma.lower()}%{part}" for part in reference.split(";")]
    return list(dict.fromkeys(keys))


def convert(path: Path, wordnet: Container[str], counts: dict[bool, int]) -> Iterator[str]:
    """Yield the lines of a corpus. counts: of words with senses, whether WordNet 3.0 has one of them."""
    begun = False
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if line.startswith("# ") or not line.strip():  # a comment begins a sentence
            if begun:
                yield ""
            begun = False
            continue
        try:
            word, lemma, _, senses = columns
            keys = [] if senses == "-" else keys_of(lemma, senses)
        except ValueError:
            raise CorpusError(
                f"{path}, line {number}: expected a word, its lemma, its part of speech and its senses, divided by "
                f"tabs; a sense is resource:kind:reference, and - stands for none; got {line!r}."
            ) from None
        known = [key for key in keys if key in wordnet]
        known = [key for key in known if lemma_of(key) == lemma_of(known[0])]
        if keys:
            counts[bool(known)] += 1
        begun = True
        tag = [*lemma_of(known[0]), " ".join(known)] if known else ["", "", "-"]
        yield "\t".join([word.replace("_", " ").strip() or word, *tag])


def main(index: Path, folder: Path, sources: list[Path]) -> None:
    """Convert SOURCES to files of the same names in FOLDER, with WordNet's INDEX, its file index.sense."""
    wordnet = read_wordnet(index)
    folder.mkdir(parents=True, exist_ok=True)
    firsts = {lemma_of(key): key for key, is_first in wordnet.items() if is_first}
    first = ["\t".join([*lemma, key]) for lemma, key in firsts.items()]
    (folder / FIRST).write_text("".join(f"{line}\n" for line in first), encoding="utf8")
    print(f"{index}: {len(first):,} first senses -> {folder / FIRST}")
    for source in sources:
        counts = {True: 0, False: 0}
        lines = list(convert(source, wordnet, counts))
        if not counts[True]:
            raise CorpusError(f"{source}: no word has a sense of WordNet's list. Expected a corpus with senses.")
        (folder / source.name).write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
        print(f"{source}: {counts[True]:,} words with senses, {counts[False]:,} left out -> {folder / source.name}")


if __name__ == "__main__":
    run_command(main)
