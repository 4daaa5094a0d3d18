"""Make .spacy files, and the files that `elmo wsd` reads, from the files of the tasks.

    python -m scripts.convert conll btc.train corpus/ner/train.spacy
    python -m scripts.convert coreference assets/litbank corpus/coreference

`--help` of each command says what its sources look like. Docs have the words of the corpus. Their spaces are marked as
unknown, so that spaCy does not tokenise them again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.tokens import Doc, DocBin, Span
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.answers import make_question
from spacy_elmo.tasks.coreference import annotate
from spacy_elmo.tasks.entailment import make_pair
from spacy_elmo.tasks.roles import PREDICATES, roles_key

from .assets import prepared_or_given
from .shared import read_lines, run_command


@contextmanager
def expecting(what: str, place: object) -> Iterator[None]:
    """Raise CorpusError if what is read at a place has another form. what: that is expected there."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise CorpusError(f"{place}: {type(error).__name__}: {error}. Expected {what}.") from error


def write_docs(source: Path, docs: Iterable[Doc], target: Path) -> None:
    """Write the docs of a corpus to a DocBin. Raises CorpusError if there are none."""
    binary = DocBin(docs=docs, store_user_data=False)
    if not len(binary):
        raise CorpusError(
            f"{source}: nothing in it that can be used. Expected a corpus: check the file and the options."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    binary.to_disk(target)
    print(f"{source}: {len(binary):,} docs -> {target}")


def blocks(path: Path, *marks: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines, with their numbers, between those that begin with a mark or have nothing but blanks and tabs."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip() and not line.startswith(marks):
            block.append((number, line))
        elif block:
            yield block
            block = []


def begun(lengths: Iterable[int]) -> list[bool | int | None]:
    """Return for each word whether it begins a sentence. lengths: of the sentences."""
    return [i == 0 for n in lengths for i in range(n)]


# Entities

_TAG = re.compile(r"O|[BI]-[^\s,]+")


def conll(source: Path, target: Path) -> None:
    """Convert entities in two columns (word, tab, BIO tag), a doc for each sentence or tweet.

    `spacy convert` joins sentences whose separator is not quite empty (WNUT-17's training part has a tab in it), and
    stops at lines without a word (Broad Twitter has some). Words keep the blanks inside them; a line without a word
    and with the tag O is left out. A line with -DOCSTART- is left out. An entity may begin with I-.
    """
    vocab = Vocab()

    def docs() -> Iterator[Doc]:
        for block in blocks(source, "-DOCSTART-"):
            sentence = []
            for number, line in block:
                word, _, tag = (part.strip() for part in line.partition("\t"))
                if not _TAG.fullmatch(tag) or (tag != "O" and not word):
                    form = "a word, a tab and a tag, which is O, or B- or I- and a type"
                    raise CorpusError(f"{source}, line {number}: got {line!r}. Expected {form}.")
                sentence += [(word, tag)] if word else []
            if sentence:
                doc = Doc(vocab, words=[word for word, _ in sentence], sent_starts=begun([len(sentence)]))
                tags = iob_to_biluo([tag for _, tag in sentence])
                doc.set_ents(biluo_tags_to_spans(doc, tags), default="outside")
                yield doc

    write_docs(source, docs(), target)


# Sentiment

_SENTIMENT = re.compile(r"__label__(\S+)\t(.*\S.*)")


def sst(source: Path, target: Path) -> None:
    """Convert classes of sentences in fastText's format (`__label__N`, tab, words with blanks), a doc for each line."""
    vocab, docs = Vocab(), []
    for number, line in enumerate(read_lines(source), 1):
        if line.strip():
            match = _SENTIMENT.fullmatch(line)
            if match is None:
                raise CorpusError(
                    f"{source}, line {number}: got {line!r}. Expected __label__, a name, a tab and a text."
                )
            docs.append((match[1], Doc(vocab, words=match[2].split())))
    labels = sorted({label for label, _ in docs})
    for label, doc in docs:
        doc.cats = {other: float(other == label) for other in labels}
    write_docs(source, [doc for _, doc in docs], target)


# Semantic roles

_ROLE = re.compile(r"\*|\(([^\s()*]+)\*(?: \*)*\)")  # no role, or a role and the words inside it
_FRAME, _FIRST_ROLE = 4, 5


def roles_in(column: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return start, end and label of the roles in a column. Raises ValueError if the brackets are not balanced."""
    text = " ".join(column)
    matches = list(_ROLE.finditer(text))
    if " ".join(match[0] for match in matches) != text:
        raise ValueError(f"got the roles {text!r}")
    starts = [(match, text.count(" ", 0, match.start())) for match in matches]
    return [(start, start + match[0].count(" ") + 1, match[1]) for match, start in starts if match[1]]


def roles(source: Path, target: Path) -> None:
    """Convert semantic roles in the columns of CoNLL-2005, a doc for each sentence.

    The columns, divided by tabs: word, two tags, lemma and frame of a predicate (both - for other words), and then a
    column for each predicate in the order of the text, with brackets around its roles: (ARG0* ... *). # is a comment.
    """
    vocab = Vocab()
    form = (
        "a word, two tags, lemma and frame, and a column for each predicate with roles like (ARG0* ... *), not nested"
    )

    def docs() -> Iterator[Doc]:
        for block in blocks(source, "# "):
            with expecting(form, f"{source}, line {block[0][0]}"):
                words, *columns = zip(*(line.split("\t") for _, line in block), strict=True)
                predicates = [place for place, frame in enumerate(columns[_FRAME - 1]) if frame != "-"]
                doc = Doc(vocab, words=list(words), sent_starts=begun([len(words)]))
                doc.spans[PREDICATES] = [doc[place : place + 1] for place in predicates]
                for place, column in zip(predicates, columns[_FIRST_ROLE - 1 :], strict=True):
                    doc.spans[roles_key(place)] = [Span(doc, *role) for role in roles_in(column)]
            yield doc

    write_docs(source, docs(), target)


# Coreference

DEV = (940, 60, 208, 351, 2814, 158, 44, 6053, 15265, 768)  # numbers of Project Gutenberg
TEST = (6593, 271, 730, 16357, 2807, 1023, 1155, 238, 1661, 711)
_MARK = re.compile(r"(\()?(\d+)(\))?")


def _novel(path: Path, vocab: Vocab) -> Doc:
    """Return a document with its sentences and clusters."""
    words: list[str] = []
    clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
    opened: dict[str, list[int]] = defaultdict(list)
    sentences = list(blocks(path, "#begin document", "#end document"))
    for number, line in (numbered for block in sentences for numbered in block):
        columns = line.split("\t")
        form = (
            "columns with tabs, the fourth a word, the last like (3 and 3) at the ends of a mention of cluster 3, or _"
        )
        with expecting(form, f"{path}, line {number}: got {columns[-1]!r}"):
            for mark in columns[-1].split("|") if columns[-1] not in ("", "_", "-") else ():
                begins, cluster, ends = _MARK.fullmatch(mark).groups()  # type: ignore[union-attr]
                if begins:
                    opened[cluster].append(len(words))
                if ends:
                    clusters[cluster].append((opened[cluster].pop(), len(words) + 1))
            words.append(columns[3])
    if left := [name for name, places in opened.items() if places]:
        raise CorpusError(f"{path}: got an open cluster {left[0]}. Expected each mention that begins to end.")
    doc = Doc(vocab, words=words, sent_starts=begun(map(len, sentences)))
    annotate(doc, sorted(sorted(cluster) for cluster in clusters.values()))
    return doc


def coreference(source: Path, target: Path) -> None:
    """Convert the folder of LitBank's .conll files to train.spacy, dev.spacy and test.spacy, a doc for each document.

    LitBank itself names no parts. These are split 0 of the ten of its coreference paper (Bamman et al. 2020;
    dbamman/lrec2020-coref, data/litbank_tenfold_splits/0).
    """
    vocab = Vocab()
    parts: dict[str, list[Doc]] = {"train": [], "dev": [], "test": []}
    paths = {int(path.name.partition("_")[0]): path for path in source.glob("*.conll")}  # like 158_emma_brat.conll
    for number, path in sorted(paths.items()):
        part = "dev" if number in DEV else "test" if number in TEST else "train"
        parts[part].append(_novel(path, vocab))
    for name, docs in parts.items():
        write_docs(source, docs, target / f"{name}.spacy")


# Entailment

LABELS = ("contradiction", "entailment", "neutral")
DEV_PAIRS = 1000
Pair = tuple[str, str, str]  # class, premise, hypothesis
COLUMNS = (  # their names: plain ones, those of SNLI and MultiNLI, and SICK's
    ("label", "premise", "hypothesis"),
    ("gold_label", "sentence1", "sentence2"),
    ("entailment_judgment", "sentence_A", "sentence_B"),
)


def _read_pairs(source: Path) -> list[Pair]:
    pairs: list[Pair] = []
    unclear = 0  # of SNLI's, on whose class no three annotators agreed
    with expecting(f"a class ({', '.join(LABELS)}), a premise and a hypothesis a line, none of them empty", source):
        for fields in _read_fields(source):
            label, premise, hypothesis = (" ".join(field.split()) for field in fields)
            if label == "-":
                unclear += 1
                continue
            if label.lower() not in LABELS or not premise or not hypothesis:
                raise ValueError(f"after {len(pairs)} pairs got {label!r}, {premise!r}, {hypothesis!r}")
            pairs.append((label.lower(), premise, hypothesis))
    if unclear:
        print(f"{source}: {unclear:,} pairs with - for a class left out")
    return pairs


def _read_fields(source: Path) -> Iterator[Sequence[str]]:
    """Yield class, premise and hypothesis of each line."""

    def lines_of(path: Path) -> list[str]:
        lines = read_lines(path)
        return lines if lines[-1] else lines[:-1]

    def names_of(row: Container[str]) -> Sequence[str] | None:
        return next((names for names in COLUMNS if names[0] in row), None)

    lines = lines_of(source)
    if source.stem == "labels":
        yield from zip(lines, *(lines_of(source.with_stem(stem)) for stem in ("s1", "s2")), strict=True)
    elif source.suffix == ".jsonl":
        for line in lines:
            values = json.loads(line)
            yield [values[name] for name in names_of(values) or COLUMNS[0]]
    elif names := names_of(lines[0].split("\t")):
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield [row[name] for name in names]
    else:
        yield from (line.split("\t") for line in lines)


def divide(pairs: list[Pair], number: int) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into the first ones and the last `number`, or more: pairs with the same premise stay together."""
    start = max(0, len(pairs) - number)
    while 0 < start < len(pairs) and pairs[start - 1][1] == pairs[start][1]:
        start -= 1
    return pairs[:start], pairs[start:]


def entailment(
    target: Path,
    sources: list[Path],
    dev: Annotated[Path | None, typer.Option(help="File for the last 1,000 pairs of the first source")] = None,
) -> None:
    """Convert pairs of premise and hypothesis, a doc for each pair with its class in `doc.cats`.

    labels.X: e-SNLI's classes; the premises are beside it in s1.X, the hypotheses in s2.X. X.jsonl: an object a line,
    with label, premise, hypothesis, or SNLI's own gold_label, sentence1, sentence2. Other files: columns with tabs
    between them, under SNLI's or SICK's own headers; or without a header class, premise, hypothesis. Pairs of SNLI's
    class - are left out.
    """
    nlp = spacy.blank("en")

    def docs(pairs: list[Pair]) -> Iterator[Doc]:
        for label, premise, hypothesis in pairs:
            doc = make_pair(nlp, premise, hypothesis)
            doc.cats = {other: float(other == label) for other in LABELS}
            yield doc

    sources = prepared_or_given(sources)
    kept, *others = [_read_pairs(source) for source in sources]
    if dev is not None:
        kept, last = divide(kept, DEV_PAIRS)
        write_docs(sources[0], docs(last), dev)
    write_docs(sources[0], docs([*kept, *(pair for pairs in others for pair in pairs)]), target)


# Answers

_SENTENCE_END = re.compile(r"(?<=[.?!])\s")


class Question(NamedTuple):
    """A question and its right answers: the index of the first character (None: not told) and the text of each."""

    context: str
    question: str
    answers: tuple[tuple[int | None, str], ...]

    @property
    def key(self) -> str:
        """The MD5 of the paragraph in lower case, with single blanks."""
        return hashlib.md5(" ".join(self.context.lower().split()).encode()).hexdigest()


def _read_questions(path: Path) -> Iterator[Question]:
    lines = read_lines(path)
    with expecting("questions with answers in SQuAD's layout, or paragraphs with context and questions", path):
        if path.suffix == ".jsonl":
            content: Any = [json.loads(line) for line in lines if line.strip()]
        else:
            content = json.loads("\n".join(lines))
        if isinstance(content, dict):
            content = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
        for paragraph in content:
            for item in next((paragraph[key] for key in ("questions", "qas") if key in paragraph), [paragraph]):
                told = item["answers"] if "answers" in item else [{"text": item["answer"]}]
                answers = tuple((answer.get("answer_start"), answer["text"]) for answer in told)
                yield Question(paragraph["context"], item["question"].strip(), answers)


def train_and_dev(questions: Iterable[Question]) -> tuple[list[Question], list[Question]]:
    """Divide questions, each once (with its first answers), in the order of their paragraphs' MD5.

    The first tenth of the paragraphs in this order is for development.
    """
    first: dict[tuple[str, str], Question] = {}
    for one in questions:
        first.setdefault((one.context, one.question), one)
    ordered = sorted(first.values(), key=lambda one: one.key)
    keys = list(dict.fromkeys(one.key for one in ordered))
    dev = set(keys[: len(keys) // 10])
    return [one for one in ordered if one.key not in dev], [one for one in ordered if one.key in dev]


def place_of(answer: str, one: Question) -> int:
    """Return where in the context an answer most probably stands; -1 if it does not.

    Whole words are preferred, then the sentence that shares most words with the question, then the first place.
    """
    asked = set(re.findall(r"\w+", one.question.lower()))

    def rank(start: int) -> tuple[bool, int]:
        end = start + len(answer)
        before = one.context[:start][-1:].isalnum() and answer[:1].isalnum()
        after = one.context[end:][:1].isalnum() and answer[-1:].isalnum()
        sentence = _SENTENCE_END.split(one.context[:start])[-1] + " " + _SENTENCE_END.split(one.context[end:])[0]
        return not (before or after), len(asked & set(re.findall(r"\w+", sentence.lower())))

    places = [match.start() for match in re.finditer(f"(?={re.escape(answer)})", one.context)] if answer else []
    return max(places, key=rank, default=-1)


def answers(
    target: Path,
    sources: list[Path],
    dev: Annotated[Path | None, typer.Option(help="File for the questions of a tenth of the paragraphs")] = None,
    without: Annotated[Path | None, typer.Option(help="File whose paragraphs are left out")] = None,
) -> None:
    """Convert questions with answers in paragraphs, a doc for each question, in spaCy's tokens of English.

    Sources: SQuAD's own layout (.json; 1.1 or 2.0), lists of paragraphs or of questions (.json), or a paragraph a line
    (.jsonl). Left out are questions without an answer, and answers that do not stand where they should.
    """
    nlp = spacy.blank("en")

    def docs(questions: Iterable[Question]) -> Iterator[Doc]:
        left_out = 0
        for one in questions:
            placed = [(place_of(text, one) if start is None else start, text) for start, text in one.answers]
            if found := [(start, text) for start, text in placed if start >= 0 and one.context.startswith(text, start)]:
                yield make_question(nlp, one.question, one.context, found)
            left_out += not found
        if left_out:
            print(f"{left_out:,} questions without an answer in their context left out")

    sources = prepared_or_given(sources)
    unwanted = set() if without is None else {one.key for one in _read_questions(without)}
    questions = [one for source in sources for one in _read_questions(source) if one.key not in unwanted]
    if dev is not None:
        questions, for_dev = train_and_dev(questions)
        write_docs(sources[0], docs(for_dev), dev)
    write_docs(sources[0], docs(questions), target)


# Senses

_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # the number after the % of a key; 5: satellite adjectives


def _lemma_of(key: str) -> tuple[str, str]:
    """Return the lemma and the part of speech of a sense key such as bank%1:14:00::."""
    lemma, _, rest = key.partition("%")
    return lemma, _POS[rest[0]]


def _keys_of(lemma: str, senses: str) -> list[str]:
    """Return the sense keys of a word, of any version of WordNet. Raises ValueError if `senses` has another form."""
    keys: list[str] = []
    for sense in senses.split() if senses != "-" else ():
        _, kind, reference = sense.split(":", 2)
        if kind == "sense":
            keys.append(reference)
        elif kind == "lexical_key":
            keys += [f"{lemma.lower()}%{part}" for part in reference.split(";")]
    return list(dict.fromkeys(keys))


def senses(index: Path, folder: Path, sources: list[Path]) -> None:
    """Convert SOURCES to files of the same names in FOLDER, and write WordNet's first senses to first_senses.tsv.

    INDEX is WordNet 3.0's file index.sense. The sources are tables of word, lemma, part of speech and senses, as
    `scripts.assets senses` writes them. The test sets have keys of several versions of WordNet; those that WordNet 3.0
    does not have are left out, and a word without any other has no sense.
    """
    with expecting("lines of WordNet's index.sense: key, place of the synset, number of the sense, count", index):
        rows = [line.split() for line in read_lines(index) if line.strip()]
        wordnet = {key: _lemma_of(key) for key, _, _, _ in rows}
        firsts = {wordnet[key]: key for key, _, number, _ in rows if number == "1"}
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{lemma}\t{pos}\t{key}\n" for (lemma, pos), key in firsts.items()]
    (folder / "first_senses.tsv").write_text("".join(lines), encoding="utf8")
    for source in sources:
        counts, lines = {True: 0, False: 0}, []  # of words with senses, whether WordNet 3.0 has one of them
        for block in blocks(source, "# "):  # a comment begins a sentence
            for number, line in block:
                form = "word, lemma, part of speech and senses (resource:kind:reference, - for none), divided by tabs"
                with expecting(form, f"{source}, line {number}"):
                    word, lemma, _, told = line.split("\t")
                    keys = _keys_of(lemma, told)
                known = [key for key in keys if key in wordnet]
                known = [key for key in known if wordnet[key] == wordnet[known[0]]]
                if keys:
                    counts[bool(known)] += 1
                tag = [*wordnet[known[0]], " ".join(known)] if known else ["", "", "-"]
                lines.append("\t".join([word.replace("_", " ").strip() or word, *tag]) + "\n")
            lines.append("\n")
        if not counts[True]:
            raise CorpusError(f"{source}: no word has a sense of WordNet's list. Expected a corpus with senses.")
        (folder / source.name).write_text("".join(lines), encoding="utf8")
        print(f"{source}: {counts[True]:,} words with senses, {counts[False]:,} left out -> {folder / source.name}")


if __name__ == "__main__":
    run_command(conll, sst, roles, coreference, entailment, answers, senses)
