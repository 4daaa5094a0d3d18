"""Sentences for measurements of speed: like English in length and in how often words return, or from a text."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from spacy.lang.en.stop_words import STOP_WORDS

import spacy_elmo

SHORTEST, LONGEST = 5, 60
# chosen so that 512 sentences have 23 tokens each and 3,000 distinct words, and a batch of 32 has 45-50 % distinct
# words among its tokens, about as encyclopedic text does
LENGTH_MEDIAN, LENGTH_SIGMA = 20.0, 0.55
VOCABULARY, ZIPF_EXPONENT = 40_000, 1.1

ONSETS = ["b", "br", "c", "ch", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v", "w"]
NUCLEI = ["a", "e", "i", "o", "u", "ea", "io", "ou"]
CODAS = ["", "", "", "l", "m", "n", "nd", "ng", "r", "s", "st", "t"]
ENDINGS = ["", "", "", "s", "ed", "er", "ing", "ly", "ment", "tion"]


def generated(n: int, seed: int) -> list[list[str]]:
    """Make sentences of 5 to 60 tokens, unsorted, each with a full stop at its end.

    n: how many. seed: of the random numbers.
    """
    words = np.array(_vocabulary(random.Random(seed)), dtype=object)
    generator = np.random.default_rng(seed)
    frequencies = 1.0 / np.arange(1, len(words) + 1) ** ZIPF_EXPONENT
    lengths = generator.lognormal(np.log(LENGTH_MEDIAN), LENGTH_SIGMA, n).round().clip(SHORTEST, LONGEST).astype(int)
    return [
        [*generator.choice(words, length - 1, p=frequencies / frequencies.sum()).tolist(), "."] for length in lengths
    ]


def from_text(path: Path, n: int) -> list[list[str]]:
    """Read the first lines that have 5 to 60 tokens.

    path: text, one sentence a line, tokens separated by blanks. n: how many lines at most.
    """
    sentences: list[list[str]] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if SHORTEST <= len(words) <= LONGEST:
                sentences.append(words)
            if len(sentences) == n:
                break
    return sentences


def distinct_share(sentences: list[list[str]], batch: int) -> float:
    """Share of distinct words among the tokens of a batch, the mean over all full batches.

    sentences: the words of each. batch: sentences of a batch; if there are fewer, all are one batch.
    """
    size = min(batch, len(sentences))
    batches = [sentences[k : k + size] for k in range(0, len(sentences) - size + 1, size)]
    shares = [len({w for s in part for w in s}) / sum(map(len, part)) for part in batches]
    return sum(shares) / len(shares)


def _vocabulary(source: random.Random) -> list[str]:
    """Distinct words, the most frequent first: function words, those of the package's examples, generated ones."""
    words = dict.fromkeys([",", "the", "of", "and", "to", "in", "a"])
    words.update(dict.fromkeys(sorted(STOP_WORDS, key=lambda word: (len(word), word))))
    with (Path(spacy_elmo.__file__).parent / "cli" / "senses.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            words.update(dict.fromkeys(word for word in row[-1].split() if word != "."))
    invented = _invented(source)
    while len(words) < VOCABULARY:
        words.setdefault(next(invented))
    return list(words)


def _invented(source: random.Random) -> Iterator[str]:
    """Pronounceable strings of one to three syllables, one in eight with a capital letter."""
    while True:
        syllables = range(source.randint(1, 3))
        word = "".join(source.choice(part) for _ in syllables for part in (ONSETS, NUCLEI, CODAS))
        word += source.choice(ENDINGS)
        yield word.capitalize() if source.random() < 1 / 8 else word
