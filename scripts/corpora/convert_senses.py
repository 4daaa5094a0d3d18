"""Convert corpora with WordNet senses to the form that `elmo wsd` reads, and write WordNet's first senses.

The sources are SemCor 3.0 and the Senseval and SemEval test sets as tables of word, lemma, part of speech and senses,
where a sense is resource:kind:reference. Senses are named by WordNet's sense keys. The test sets have keys of several
versions of WordNet; those that WordNet 3.0 does not have are left out, and a word without any other has no sense.
index.sense is a file of WordNet 3.0 (Debian has it in the package wordnet-sense-index).

    python -m scripts.corpora.convert_senses index.sense corpus/senses semcor30.tsv senseval2.tsv senseval3.tsv
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_elmo.errors import CorpusError, shown
from spacy_elmo.formats.atomic import replacing, writing

from ..shared.command import run_command
from ..shared.corpus_files import read_lines, refuse_sources
from ..shared.messages import Messages

_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # the number after the % of a key; 5: satellite adjectives
FIRST = "first_senses.tsv"


class WordNet(NamedTuple):
    """keys: all sense keys. first: the first sense of each lemma and part of speech."""

    keys: set[str]
    first: dict[tuple[str, str], str]


def lemma_of(key: str) -> tuple[str, str]:
    """Return the lemma and the part of speech of a sense key such as bank%1:14:00::."""
    lemma, _, rest = key.partition("%")
    return lemma, _POS[rest[0]]


def read_wordnet(path: Path) -> WordNet:
    """Read index.sense: key, place of the synset, number of the sense, count. Raises CorpusError."""
    wordnet = WordNet(set(), {})
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split()
        if not columns:
            continue
        if len(columns) != 4 or columns[0].partition("%")[2][:1] not in _POS:
            raise CorpusError(Messages.SENSE_INDEX.format(path=path, line=number, got=shown(line)))
        wordnet.keys.add(columns[0])
        if columns[2] == "1":
            wordnet.first[lemma_of(columns[0])] = columns[0]
    return wordnet


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


def convert(path: Path, wordnet: WordNet, counts: dict[bool, int]) -> Iterator[str]:
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
            raise CorpusError(Messages.CORPUS_SENSES.format(path=path, line=number, got=shown(line))) from None
        known = [key for key in keys if key in wordnet.keys]
        known = [key for key in known if lemma_of(key) == lemma_of(known[0])]
        if keys:
            counts[bool(known)] += 1
        begun = True
        tag = [*lemma_of(known[0]), " ".join(known)] if known else ["", "", "-"]
        yield "\t".join([word.replace("_", " ").strip() or word, *tag])


def main(index: Path, folder: Path, sources: list[Path]) -> None:
    """Convert SOURCES to files of the same names in FOLDER, with WordNet's INDEX, its file index.sense."""
    names = [source.name for source in sources]
    for source in sources:
        target = folder / source.name
        if source.name == FIRST or names.count(source.name) > 1 or target.resolve() == source.resolve():
            raise CorpusError(Messages.SENSES_TARGET.format(path=source, target=target))
        refuse_sources(target, index)
    refuse_sources(folder / FIRST, index)
    wordnet = read_wordnet(index)
    if not wordnet.first:
        raise CorpusError(Messages.SENSES_EMPTY.format(path=index))
    with writing(folder, CorpusError):
        folder.mkdir(parents=True, exist_ok=True)
    first = ["\t".join([*lemma, key]) for lemma, key in wordnet.first.items()]
    write_lines(folder / FIRST, first)
    print(f"{index}: {len(first):,} first senses -> {folder / FIRST}")
    for source in sources:
        counts = {True: 0, False: 0}
        lines = list(convert(source, wordnet, counts))
        if not counts[True]:
            raise CorpusError(Messages.SENSES_NONE.format(path=source))
        write_lines(folder / source.name, lines)
        print(f"{source}: {counts[True]:,} words with senses, {counts[False]:,} left out -> {folder / source.name}")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file, which is complete or not written at all."""
    with replacing(path, CorpusError) as temporary, writing(path, CorpusError):
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")


if __name__ == "__main__":
    run_command(main)
