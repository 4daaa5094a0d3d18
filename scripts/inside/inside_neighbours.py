"""Find the nearest neighbours of ambiguous words in context, as in Table 4 of Peters et al. 2018.

Each word of scripts/inside/ambiguous_words.tsv stands in two sentences, one for each of two senses. The corpus is the
training parts of UD English EWT and of Broad Twitter. The result goes to results/inside/neighbours.json.

    python -m scripts.inside.inside_neighbours
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from spacy_elmo import ElmoEmbedder, WordIndex, build_index
from spacy_elmo.analysis.neighbours import Neighbour
from spacy_elmo.errors import CommandError

from ..runs.facts_of_runs import bilm_mark
from ..shared.command import run_command
from ..shared.measurement import Measurement
from ..shared.messages import Messages
from .inside_runs import inside_result_of

WORDS = Path(__file__).with_name("ambiguous_words.tsv")
CORPORA = (Path("corpus/tagger/en_ewt-ud-train.spacy"), Path("corpus/ner/train.spacy"))
FOUND = 5  # neighbours of each word
_AROUND = 2  # words kept on each side: a result is no copy of the corpus, and `number` finds the whole sentence


class Ambiguous(NamedTuple):
    """A word, and a sentence for each of its senses, by what the sense is."""

    word: str
    sentences: dict[str, str]


def read_words(path: Path) -> list[Ambiguous]:
    """Return the words of a table: word, sense, sentence, another sense, its sentence."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file, delimiter="\t")
    return [Ambiguous(row[0], {row[1]: row[2], row[3]: row[4]}) for row in rows]


def static_neighbours(types: WordIndex, word: str) -> list[dict[str, Any]]:
    """Return the other words that are nearest in layer 0, which sees a word without its sentence.

    types: index in which each word stands alone.
    """
    found = types.neighbours(word, word, FOUND, other_words=True)
    return [{"cosine": round(one.cosine, 3), "word": one.words[0]} for one in found]


def neighbours_in_context(index: WordIndex, sentence: str, word: str) -> list[dict[str, Any]]:
    """Return the words that are nearest to a word in its sentence, one of each sentence of the corpus."""
    found = index.neighbours(sentence, word, FOUND, one_per_sentence=True)
    return [{"cosine": round(one.cosine, 3), "number": one.sentence} | excerpt(one) for one in found]


def excerpt(found: Neighbour) -> dict[str, Any]:
    """Return the found word and those around it."""
    begin, end = max(0, found.place - _AROUND), found.place + 1 + _AROUND
    return {
        "before": found.words[begin : found.place],
        "word": found.words[found.place],
        "after": found.words[found.place + 1 : end],
    }


def find(words: Iterable[Ambiguous], corpora: Iterable[Path], embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return the neighbours of the words in the last layer and in layer 0.

    corpora: .spacy files.
    """
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        (room / "corpus").mkdir()
        for number, path in enumerate(corpora):
            shutil.copyfile(path, room / "corpus" / f"{number}.spacy")
        build_index(room / "corpus", room / "index", embedder)
        index = WordIndex(room / "index", embedder)
        text = dict.fromkeys(word for i in range(len(index.corpus)) for word in index.corpus.sentence(i))
        (room / "types.txt").write_text("".join(f"{word}\n" for word in text), encoding="utf-8")
        build_index(room / "types.txt", room / "types", embedder, layer=0)
        types = WordIndex(room / "types", embedder)
        found = [
            {
                "word": one.word,
                "static": static_neighbours(types, one.word),
                "senses": [
                    {
                        "sense": sense,
                        "sentence": sentence,
                        "neighbours": neighbours_in_context(index, sentence, one.word),
                    }
                    for sense, sentence in one.sentences.items()
                ],
            }
            for one in words
        ]
        return {"layer": index.header.layer, "tokens": len(index), "sentences": len(index.corpus), "words": found}


def main() -> None:
    """Write results/inside/neighbours.json."""
    for path in CORPORA:
        if not path.is_file():
            raise CommandError(Messages.CORPUS_MISSING.format(path=path))
    measurement = Measurement()
    found = find(read_words(WORDS), CORPORA, ElmoEmbedder("en_mini"))
    command = "python -m scripts.inside.inside_neighbours"
    measurement.write(inside_result_of(Path(), "neighbours"), command, found, bilm=bilm_mark())


if __name__ == "__main__":
    run_command(main)
