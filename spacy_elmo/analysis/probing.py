"""Linear probes of the layers of a biLM, and of their mean."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import spacy
import torch
import torch.nn.functional as F
from spacy.tokens import Doc, MorphAnalysis, Span, Token
from spacy.training import biluo_tags_to_spans
from spacy.training.converters.conllu_to_docs import get_entities, has_ner
from torch import Tensor

from ..corpus.bilm import embed_finite
from ..errors import FILE_MISSING, CorpusError, ElmoError, SettingsError, shown
from ..formats.options import BiLMOptions
from ..formats.paths import find_files
from ..inference import Embedder
from ..modules import Arrays, BiLM
from ..text.files import TextFile, kind_of
from ..text.stream import conllu_rows, damaged, docs_in, read_items, sentences_of
from ..text.words import Unusable, decode_line

Array = npt.NDArray[np.float32]
Getter = Callable[[Token], str]  # "" means that a token has no label
ENTITIES, OUTSIDE = "ent", "O"
_CUSTOM = "_."
_NAMES = {"upos": "pos", "xpos": "tag"}  # what spaCy calls them


def label_getter(attribute: str) -> Getter:
    """Return a function that reads the label of a token. Both raise SettingsError if that can't be.

    attribute: "upos" (spaCy's pos), "ent" (IOB and the type, such as B-PER, or O), another attribute of spaCy's tokens,
        such as "tag" or "is_title", or "_.name" for an extension attribute whose values are in the docs.
    """
    if attribute == ENTITIES:
        return lambda token: f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else token.ent_iob_
    if attribute.startswith(_CUSTOM) and len(attribute) > len(_CUSTOM):
        custom = attribute.removeprefix(_CUSTOM)
        # read from where spaCy stores it, so that the extension need not be registered
        return lambda token: _text(token.doc.user_data.get(("._.", custom, token.idx, None)), attribute)  # type: ignore[call-overload]
    name = _NAMES.get(attribute, attribute)
    if name.startswith("_") or name.endswith("_") or not hasattr(Token, name):
        raise SettingsError(
            f"--attr is {shown(attribute)}, which spaCy's tokens do not have. Expected upos, tag, ent, another "
            "attribute of a token, such as dep or morph, or _.NAME for an extension attribute: change --attr."
        )
    read = f"{name}_" if hasattr(Token, f"{name}_") else name  # spaCy has pos as a number and pos_ as a string
    return lambda token: _text(getattr(token, read), attribute)


def _text(value: object, attribute: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | MorphAnalysis):  # bool is an int
        raise SettingsError(
            f"--attr is {shown(attribute)}, but its value of a token is {shown(value)}, which is no label. Expected a "
            "text, a number or a truth value: change --attr."
        )
    return str(value)


DOCBIN, CONLLU = ".spacy", ".conllu"
_COLUMNS = 10
_ENTITY = "^((?:name|NE)=)?([BILU])-([A-Z_]+)|O$"  # in the last column of CoNLL-U; from spaCy's conllu_to_docs
_EXPECTED = "an annotated corpus: a .spacy or .conllu file, or a folder of such files"


class LabelledCorpus(NamedTuple):
    """The sentences of a corpus. labels: of all words, in order; "" for a word without a label."""

    sentences: list[list[str]]
    labels: list[str]

    @property
    def labelled(self) -> list[tuple[str, str]]:
        """The words that have a label, and their labels."""
        return [pair for pair in zip(chain.from_iterable(self.sentences), self.labels) if pair[1]]


def read_labelled(source: Path, attribute: str, getter: Getter, limit: int | None = None) -> LabelledCorpus:
    """Read a corpus: a .spacy or .conllu file, perhaps packed, or a folder of such files. limit: number of sentences.

    Whitespace tokens are left out, because they have no vectors. A doc without sentence boundaries is one sentence.
    Raises ElmoError if a file can't be read, if there are no words, or if no word has a label.
    """
    if not source.exists():
        raise CorpusError(FILE_MISSING.format(path=source, expected=_EXPECTED))
    files = find_files(source) if source.is_dir() else [source]
    corpus = LabelledCorpus([], [])
    limit = limit and min(limit, sys.maxsize)  # islice accepts no larger number
    for words, labels in islice(_labelled_sentences(files, attribute, getter), limit):
        if words:
            corpus.sentences.append(words)
            corpus.labels.extend(labels)
    if not corpus.sentences:
        raise CorpusError(f"{source}: no words. Expected a corpus of annotated docs: give another one.")
    if not any(corpus.labels):
        raise CorpusError(
            f"{source}: no token has a value of the attribute {shown(attribute)}. Change --attr, or the corpus."
        )
    return corpus


def _labelled_sentences(files: Iterable[Path], attribute: str, getter: Getter) -> Iterator[tuple[list[str], list[str]]]:
    for path in files:
        kind = kind_of(path)
        if kind not in (DOCBIN, CONLLU):
            raise CorpusError(
                f"{path}: not a .spacy or .conllu file. Convert it: python -m spacy convert reads .iob, .conll and "
                ".json. Of another format, such as a table, write the docs to a .spacy file with spaCy's DocBin."
            )
        try:
            of_docs: Iterable[Doc | Span] = (sentence for doc in docs_in(path) for sentence in sentences_of(doc))
            for sentence in of_docs if kind == DOCBIN else _conllu_docs(path, attribute.startswith("ent")):
                tokens = [token for token in sentence if not token.is_space]
                yield [token.text for token in tokens], list(map(getter, tokens))
        except ElmoError:
            raise
        except Exception as error:  # a damaged file fails anywhere in spaCy, even if an attribute is read
            raise damaged(path, error) from error


def _conllu_docs(path: Path, entities: bool) -> Iterator[Doc]:
    """Yield the sentences of a .conllu file. If one has an entity, the words of all others are outside of entities."""
    vocab = spacy.blank("xx").vocab
    has_entities = entities and any(
        has_ner("\n".join(map("\t".join, rows)), _ENTITY) for _, rows in _conllu_sentences(path)
    )
    for number, rows in _conllu_sentences(path):
        try:
            # no ranges, and no words that are not in the text
            words = [row for row in rows if not {"-", "."} & set(row[0])]
            if not words:
                continue
            _, forms, lemmas, pos, tags, morphs, heads, relations, _, _ = map(list, zip(*words))
            doc = Doc(
                vocab,
                words=forms,
                lemmas=["" if lemma == "_" != form else lemma for form, lemma in zip(forms, lemmas)],
                pos=_known(pos),
                tags=_known(tags),
                morphs=_known(morphs),
                heads=[i if head in ("0", "_") else int(head) - 1 for i, head in enumerate(heads)],
                deps=["ROOT" if relation == "root" else relation for relation in _known(relations)],
            )
            if has_entities:
                doc.set_ents(
                    biluo_tags_to_spans(doc, get_entities(list(map("\t".join, rows)), _ENTITY)), default="outside"
                )
        except (ValueError, LookupError, TypeError) as error:  # a value that spaCy does not know
            raise CorpusError(f"{path}, the sentence at line {number}: {error}. Correct or remove it.") from error
        yield doc


def _known(values: Iterable[str]) -> list[str]:
    return ["" if value == "_" else value for value in values]


def _conllu_sentences(path: Path) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the number of the first line of each sentence, and the columns of its words."""
    for item in read_items([TextFile(path, True)]):
        try:
            if item.data is None:
                raise Unusable(item.problem)
            rows = [row for _, row in conllu_rows(decode_line(item.data, item.line), item.line)]
            for row in rows:
                if len(row) != _COLUMNS:
                    got = shown("\t".join(row))
                    raise Unusable(f"no line of CoNLL-U, which has {_COLUMNS} columns divided by tabs: {got}")
            yield item.line, rows
        except Unusable as error:
            raise CorpusError(f"{path}, the sentence at line {item.line}: {error}. Correct or remove it.") from error


L2 = 1e-5  # on standardised features, beside the mean loss of a token
ITERATIONS = 100
_SCORES = 1 << 25  # computed at a time (rows times labels), so that memory does not grow with their number


class LinearClassifier(NamedTuple):
    """Weights on standardised features, whose mean and std are those of training.

    *Shape:* (width,) of mean and std, (labels, width) of weight, (labels,) of bias.
    """

    mean: Tensor
    std: Tensor
    weight: Tensor
    bias: Tensor

    def predict(self, x: Tensor) -> Tensor:
        parts = ((part - self.mean).div_(self.std) for part in x.split(_rows(len(self.bias))))
        return torch.cat([F.linear(part, self.weight, self.bias).argmax(1) for part in parts])


def fit(x: Tensor, labels: Tensor, classes: int, iterations: int = ITERATIONS) -> LinearClassifier:
    """Train a classifier of *Shape:* (rows, width) with L-BFGS: a convex loss, from zero weights, without a seed."""
    mean, std = x.mean(0), x.std(0, correction=min(1, len(x) - 1)).clamp_min(1e-6)
    standardised = (x - mean).div_(std)
    rows = _rows(classes)
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, history_size=20, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = L2 * weight.square().sum()
        total.backward()
        for part, numbers in zip(standardised.split(rows), labels.split(rows)):
            loss = F.cross_entropy(F.linear(part, weight, bias), numbers, reduction="sum") / len(x)
            loss.backward()
            total = total.detach() + loss.detach()
        return total

    optimizer.step(closure)
    return LinearClassifier(mean, std, weight.detach(), bias.detach())


def _rows(classes: int) -> int:
    return max(1, _SCORES // classes)


class Score(NamedTuple):
    """Shares from 0 to 1. f1: of the labels other than "outside"; None: there is no such label."""

    accuracy: float
    f1: float | None


def score(predicted: Sequence[str], labels: Sequence[str], outside: str | None) -> Score:
    """Compare labels token by token. outside: the label of those that are not looked for, such as "O"; None: none."""
    right = sum(a == b for a, b in zip(predicted, labels))
    if outside is None:
        return Score(right / len(labels), None)
    found, present = (sum(label != outside for label in given) for given in (predicted, labels))
    both = sum(a == b != outside for a, b in zip(predicted, labels))
    return Score(right / len(labels), 2 * both / (found + present) if both else 0.0)


OnTokens = Callable[[int], object]  # gets a number of tokens that are done


class Probes:
    """The questions to a biLM: the training part and the part that is scored, without the tokens that have no label.

    `labels`: of the training part. `unknown_tokens`: how many tokens of the other part have another, so not found.
    """

    def __init__(self, train: LabelledCorpus, dev: LabelledCorpus, attribute: str, iterations: int) -> None:
        self.train, self.dev, self.iterations = train, dev, iterations
        self.labels = list(dict.fromkeys(label for _, label in train.labelled))
        if len(self.labels) < 2:
            raise CorpusError(
                f"all tokens of the training part have the same value of the attribute {shown(attribute)}: "
                f"{shown(self.labels[0])}. Expected two different labels or more: change --attr, or give another "
                "corpus."
            )
        self._outside = OUTSIDE if attribute == ENTITIES else None
        self._rows = [np.flatnonzero([label != "" for label in part.labels]) for part in (train, dev)]
        self.train_tokens, self.dev_tokens = map(len, self._rows)
        numbers = {label: i for i, label in enumerate(self.labels)}
        self._numbers = torch.tensor([numbers[label] for _, label in train.labelled])
        self._gold = [label for _, label in dev.labelled]
        self.unknown_tokens = sum(label not in numbers for label in self._gold)
        if self.unknown_tokens == len(self._gold):
            found = [shown(list(dict.fromkeys(labels))) for labels in (self._gold, self.labels)]
            raise CorpusError(
                f"no token of the part that is scored has a label of the training part: it has {found[0]}, and the "
                f"training part has {found[1]}. Expected the same set of labels: change --attr, or give another corpus."
            )

    def majority(self) -> Score:
        """Score each word's most frequent label in the training part, for others that of all; of equals the first."""
        of_words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word, label in self.train.labelled:
            of_words[word][label] += 1
        of_all = Counter(label for _, label in self.train.labelled)
        found = [of_words.get(word, of_all).most_common(1)[0][0] for word, _ in self.dev.labelled]
        return score(found, self._gold, self._outside)

    def run(self, bilm: Embedder, progress: OnTokens) -> Iterator[Score]:
        """Embed all tokens, whose layers stay in memory. Return an iterator that trains on each, then on their mean."""
        parts = (embed(bilm, part.sentences, progress) for part in (self.train, self.dev))
        x, y = (part if len(rows) == part.shape[1] else part[:, rows] for part, rows in zip(parts, self._rows))
        return (self._probe(*pair) for pair in chain(zip(x, y), [(x.mean(0), y.mean(0))]))

    def _probe(self, x: Array, y: Array) -> Score:
        classifier = fit(torch.from_numpy(x), self._numbers, len(self.labels), self.iterations)
        predicted = classifier.predict(torch.from_numpy(y))
        return score([self.labels[i] for i in predicted.tolist()], self._gold, self._outside)


def embed(bilm: Embedder, sentences: Sequence[Sequence[str]], progress: OnTokens = lambda tokens: None) -> Array:
    """Return the layers of all tokens in order, *Shape:* (layers, tokens, width). progress: of a sentence's tokens."""
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    result = np.empty((bilm.options.layers, int(starts[-1]), bilm.options.width), np.float32)
    for i, layers in embed_finite(bilm, sentences):
        result[:, starts[i] : starts[i + 1]] = layers
        progress(layers.shape[1])
    return result


def row_titles(layers: int) -> dict[int | str, str]:
    """Return the title of each layer, and then of their mean, by what JSON calls it."""
    return {**{k: f"layer {k}" for k in range(layers)}, "mean": "mean of the layers"}


def random_weights(options: BiLMOptions, seed: int) -> Arrays:
    """Return random weights by parameter name. The same seed gives the same weights."""
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    return bilm.to_arrays()
