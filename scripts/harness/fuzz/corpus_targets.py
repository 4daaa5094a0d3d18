"""Corpora: those of `pretrain`, `embed`, `probe` and `wsd`, in all formats, packed or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random

from spacy_elmo.analysis.probing import label_getter, read_labelled
from spacy_elmo.analysis.senses import read_first_senses, read_senses
from spacy_elmo.corpus.reading import Parser, read_items
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats.text import Tokenize as Tokenizer
from spacy_elmo.formats.text import blank
from spacy_elmo.formats.text import read_sentences as read_keyed_sentences
from spacy_elmo.pretraining.text import read_sentences

from .corpus_samples import TEXT, conllu, docbin, first_senses, json_lines, senses, text
from .mutate import ODD_TEXTS, mutated
from .packings import write_packed
from .pool import Target

_ATTRIBUTES = ("upos", "tag", "lemma", "dep", "morph", "ent", "head", "is_title", "_.mood", "_.x")


def corpus() -> Target:
    """A text for pretraining in any format, packed or not."""

    def load(folder: Path) -> None:
        for path in folder.iterdir():
            language = "en" if path.stat().st_size % 2 and path.stat().st_size < 10_000 else None
            for words in read_sentences(path, language):
                assert words, "a sentence without words"

    return _corpora({".txt": text, ".jsonl": json_lines, ".spacy": docbin}, load)


def documents() -> Target:
    """A text for `elmo embed` in any format, whose words the tokenizer of a language finds, or which has blanks."""

    def load(folder: Path) -> None:
        for path in folder.iterdir():
            tokenizer = _english() if path.stat().st_size % 4 else None
            for document in Parser(tokenizer, docs=path.stat().st_size % 3 > 0).documents(read_items([path])):
                for sentence in document.sentences:
                    assert sentence.tokens, "a sentence without words"
                    assert all(sentence.tokens), "a word without characters"

    return _corpora({".txt": text, ".jsonl": json_lines, ".spacy": docbin, ".conllu": conllu}, load)


def labelled() -> Target:
    """A corpus with annotations, for `elmo probe`."""

    def load(folder: Path) -> None:
        for path in folder.iterdir():
            attribute = _ATTRIBUTES[path.stat().st_size % len(_ATTRIBUTES)]
            try:
                found = read_labelled(path, attribute, label_getter(attribute))
            except SettingsError:  # an attribute whose values are no labels
                continue
            assert len(found.words) == len(found.labels)

    return _corpora({".spacy": docbin, ".conllu": conllu}, load)


def sense_lists() -> Target:
    """A corpus with senses and a list of first senses, for `elmo wsd`."""

    def load(folder: Path) -> None:
        for path in folder.iterdir():
            if path.name.startswith("corpus.first"):
                read_first_senses(path)
            else:
                read_senses(path)

    return _corpora({".txt": senses, ".first.txt": first_senses}, load)


def sentences() -> Target:
    """Sentences with keys, the text of the vectors that `elmo embed` writes."""

    def make(folder: Path, random: Random) -> None:
        data = random.choice((TEXT, *ODD_TEXTS)).encode("utf8", "surrogatepass")
        (folder / "text.txt").write_bytes(mutated(data, random))

    def load(folder: Path) -> None:
        with (folder / "text.txt").open(encoding="utf8") as file:
            read_keyed_sentences(file, "text.txt", keys=True)

    return Target(make, load)


def _corpora(formats: dict[str, Callable[[Random], bytes]], load: Callable[[Path], object]) -> Target:
    def make(folder: Path, random: Random) -> None:
        kind = random.choice(list(formats))
        data = formats[kind](random)
        write_packed(folder / f"corpus{kind}", mutated(data, random) if random.random() < 0.4 else data, random)

    return Target(make, load)


@cache
def _english() -> Tokenizer:
    return Tokenizer(partial(blank, "en"))
