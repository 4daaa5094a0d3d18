"""Items of every kind of file, and the documents that are made of them."""

import gzip
import io
import json
import math
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import CorpusError, PlainTextWarning, StandardInputWarning
from spacy_elmo.text.files import text_files, total_bytes
from spacy_elmo.text.stream import (
    Document,
    Item,
    Parser,
    Report,
    docs_in,
    read_items,
    read_sentences,
    sentence_starts,
    sentences_of,
)
from spacy_elmo.text.words import Offsets, Unusable, blank
from spacy_elmo.text.words import Tokenize as Tokenizer

BLANKS = Parser(None, docs=False)
ENGLISH = Parser(Tokenizer(partial(blank, "en")), docs=True)


def parsed(paths: Sequence[Path | str], parser: Parser = BLANKS, column: str | None = None) -> list[Document]:
    found = (parser(item) for item in read_items(text_files(paths), column))
    return [document for document in found if document is not None]


def words(documents: list[Document]) -> list[list[str]]:
    return [sentence for document in documents for sentence in document.sentences]


def in_text(document: Document) -> list[list[str]]:
    """What stands in the text at the places of the words."""
    return [[(document.text or "")[start:end] for start, end in each] for each in document.places() or []]


def test_sizes(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_bytes(b"the cat sat")
    packed.write_bytes(gzip.compress(b"a dog"))
    assert total_bytes([plain, packed]) == 11 + 3 * packed.stat().st_size
    assert [total_bytes([plain, tmp_path / name]) for name in ("-", "a.spacy", "none.txt")] == [None] * 3


def test_tokens_have_places_in_their_text() -> None:
    text = "  It isn't  raining.  Stop!  "
    for parser in (ENGLISH, BLANKS):
        document = parser(Item("a", 1, "text", text.encode()))
        assert document is not None
        assert document.text == text
        assert in_text(document) == document.sentences
    assert words([ENGLISH(Item("a", 1, "text", text.encode()))]) == [  # type: ignore[list-item]
        ["It", "is", "n't", "raining", "."],
        ["Stop", "!"],
    ]


@pytest.mark.parametrize("text", ['He said "Stop." And left... Then? Yes', "one", "? ! a . b", "。 x 。 。 y"])
def test_sentences_are_those_of_spacys_sentencizer(text: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp(Doc(nlp.vocab, words=text.split()))
    assert sentence_starts(text.split()) == [span.start for span in doc.sents]


TEXT = "We sat.\nYes"
OBJECTS = [{"text": "We", "start": 0, "end": 2, "id": 0}, {"text": "sat", "start": 3, "end": 6},
           {"text": ".", "start": 6, "end": 7}, {"text": "\n", "start": 7, "end": 8},
           {"text": "Yes", "start": 8, "end": 11}]  # fmt: skip
PLACES = [{name: token[name] for name in ("start", "end")} for token in OBJECTS]
SENTS = [{"start": 0, "end": 7}, {"start": 8, "end": 11}]


@pytest.mark.parametrize(
    ("record", "sentences", "text", "name", "meta"),
    [
        ({"text": "A dog. It barks.", "id": 7, "lang": "en"}, ["A dog .", "It barks ."], True, "7", {"lang": "en"}),
        ({"text": "a", "id": None}, ["a"], True, None, None),
        ({"text": "a", "id": True}, ["a"], True, "true", None),
        ({"text": "a", "id": {"n": [1]}}, ["a"], True, '{"n": [1]}', None),
        ({"text": "a", "id": "é"}, ["a"], True, "é", None),
        ({"tokens": ["isn't", "."], "id": "b"}, ["isn't ."], False, "b", None),
        ({"tokens": ["a"], "text": "A"}, ["a"], False, None, {"text": "A"}),  # the tokens are read, so it is one more
        ({"tokens": ["a"], "url": None, "id": 1.5}, ["a"], False, "1.5", None),  # null is no field
        ({"text": TEXT, "tokens": OBJECTS, "spans": []}, ["We sat .", "Yes"], True, None, {"spans": []}),  # Prodigy
        ({"text": TEXT, "tokens": PLACES, "sents": SENTS}, ["We sat .", "Yes"], True, None, None),
        ({"tokens": [{"text": "New_York"}]}, ["New_York"], False, None, None),
        ({"text": "We sat", "tokens": [101, 2057]}, ["We sat"], True, None, {"tokens": [101, 2057]}),
    ],
)
def test_json_lines(record: dict, sentences: list[str], text: bool, name: str | None, meta: dict | None) -> None:
    document = ENGLISH(Item("a.jsonl", 1, "json", json.dumps(record).encode()))
    assert document is not None
    assert list(map(" ".join, words([document]))) == sentences
    assert (document.id, document.meta) == (name, None if meta is None else json.dumps(meta))
    assert document.text == (record["text"] if text else None)
    assert in_text(document) == (document.sentences if text else [])


def test_a_field_of_json_lines() -> None:
    item = Item("a.jsonl", 1, "json", b'{"body": "a b", "tokens": ["c"]}')
    document = Parser(None, False, "body")(item)
    assert document is not None
    assert (words([document]), document.meta) == ([["a", "b"]], '{"tokens": ["c"]}')
    with pytest.raises(Unusable, match="no JSON object with 'title'"):
        Parser(None, False, "title")(item)


def test_json_lines_that_doc_to_json_writes(tmp_path: Path) -> None:
    doc = spacy.blank("en")("We sat on the bank.")
    for name in ("jsonl", "ndjson", "json", "jsonlines", "jl"):
        path = tmp_path / f"a.{name}"
        path.write_text(json.dumps(doc.to_json()) + "\n", encoding="utf8")
        expected = [[token.text for token in doc]]
        assert words(parsed([path])) == expected
        assert list(read_sentences(path)) == expected


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", '{"text": "a"}\n', "its first line is a JSON object"),
        ("a.csv", "a,b\n", r"it looks like a table\. Name the column of the text with --text-column NAME"),
        ("a.txt", "id\ttext\n1\ta\n", "it looks like a table"),
        ("a.txt", "EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n", "its lines look like words with tags"),
    ],
)
def test_fields_that_are_read_as_text(name: str, content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf8")
    for read_all in (lambda path: list(read_items(text_files(path))), lambda path: list(read_sentences(path))):
        with pytest.warns(PlainTextWarning, match=f"{name} is read as text, though {told}"):
            read_all(tmp_path / name)


VALUES: list[Any] = [
    "a b",
    "",
    " ",
    "c\r\nd",
    "e\0f",
    None,
    math.nan,
    3,
    True,
    [],
    ["a"],
    ["a", "", " "],
    ["a", None],
]
VALUES += [[1, 2], [{"text": "a"}], [{"text": None}], {"a": 1}]


def words_of_line(line: str) -> list[str] | None:
    """The words of a line by the rules of docs/corpora.md; None: it can't be used."""
    if not line.strip():
        return []
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not {"text", "tokens"} & set(record):
        return None
    text, tokens = (None if record.get(name) != record.get(name) else record.get(name) for name in ("text", "tokens"))
    numbers = isinstance(tokens, list) and tokens and all(type(token) is int for token in tokens)
    if tokens is None or ((numbers or tokens == []) and text is not None):
        if text is None:
            return []
        return text.split() if isinstance(text, str) and "\0" not in text else None
    if not isinstance(tokens, list):
        return None
    found = [token["text"] if isinstance(token, dict) and "text" in token else token for token in tokens]
    if not all(isinstance(word, str) and "\0" not in word for word in found):
        return None
    return [word for word in found if word.strip()]


def test_random_json_lines(tmp_path: Path) -> None:
    """Each line has the words that the rules give it, whatever stands around it."""
    rng = random.Random(4)
    lines = []
    for _ in range(2_000):
        record = {name: rng.choice(VALUES) for name in ("text", "tokens") if rng.random() < 0.7}
        line = json.dumps(record | {"id": 1})
        lines.append(
            line if rng.random() < 0.9 else rng.choice(["", line[:-1], "[" + line + "]", "null", "é", "{" * 9])
        )
    (tmp_path / "a.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf8")
    expected = [words_of_line(line) for line in lines]
    report = Report()
    assert list(read_sentences(tmp_path / "a.jsonl", report=report)) == [each for each in expected if each]
    assert (report.blank, report.n_bad) == (expected.count([]), expected.count(None))
    assert min(report.blank, report.n_bad, report.sentences) > 100


CONLLU = """# sent_id = s1
# text = Il va au marché.
1\tIl\t_
2\tva\t_
3-4\tau\t_
3\tà\t_
4\tle\t_
5\tmarché\t_
5.1\thidden\t_
6\t.\t_

1\tYes\t_
"""


def test_conllu(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf8")
    first, second = parsed([path])
    assert words([first, second]) == [["Il", "va", "à", "le", "marché", "."], ["Yes"]]
    assert (first.id, first.text, second.id, second.text, second.line) == ("s1", "Il va au marché.", None, None, 12)
    assert first.places() == [[(0, 2), (3, 5), (6, 8), (6, 8), (9, 15), (15, 16)]]


def test_docs_without_boundaries(tmp_path: Path) -> None:
    """In the first doc it is not known where spaces are; in the second it is, and one token is a line break."""
    vocab = spacy.blank("xx").vocab
    words_of_docs = [["Yes", ".", "No", "!"], ["A", "dog", ".", "\n", "Yes", "."]]
    known = Doc(vocab, words=words_of_docs[1], spaces=[True, False, False, False, False, False])
    DocBin(docs=[Doc(vocab, words=words_of_docs[0]), known]).to_disk(tmp_path / "a.spacy")
    for parser, split in (
        (BLANKS, [[["Yes", ".", "No", "!"]], [["A", "dog", ".", "Yes", "."]]]),
        (ENGLISH, [[["Yes", "."], ["No", "!"]], [["A", "dog", "."], ["Yes", "."]]]),
    ):
        unknown, spaced = parsed([tmp_path / "a.spacy"], parser)
        assert [words([unknown]), words([spaced])] == split
        assert unknown.text is None
        assert unknown.places() is None
        assert spaced.text == "A dog.\nYes."
        assert in_text(spaced) == spaced.sentences


def test_sentences_without_words_are_left_out(tmp_path: Path) -> None:
    for line in (b'{"tokens": []}', b'{"text": " "}', b'{"text": ""}'):
        assert BLANKS(Item("a.jsonl", 1, "json", line)) is ENGLISH(Item("a.jsonl", 1, "json", line)) is None
    vocab = spacy.blank("en").vocab
    blank_in_between = Doc(vocab, words=["A", "\n", "B"], sent_starts=[True, True, True])
    DocBin(docs=[Doc(vocab, words=["\n", " "]), blank_in_between]).to_disk(tmp_path / "a.spacy")
    [document] = parsed([tmp_path / "a.spacy"])
    assert (document.line, words([document])) == (2, [["A"], ["B"]])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\nc\n")))
    assert words(parsed(["-"])) == [["a", "b"], ["c"]]
    for begin in (b"", b"\xef\xbb\xbf"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(begin + b'{"text": "a"}\n{"text": "b"}\n')))
        with pytest.warns(StandardInputWarning, match=r"first line is a JSON object\. .* ends in \.jsonl") as told:
            assert words(parsed(["-"])) == [['{"text":', '"a"}'], ['{"text":', '"b"}']]
        assert len(told) == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO("a b\n"))
    with pytest.raises(CorpusError, match=r"standard input: .*text, not bytes"):
        parsed(["-"])
    for sources, message in ((["-", "-"], "given twice"), ([""], r"Expected text, \.jsonl, .* or \.spacy files")):
        with pytest.raises(CorpusError, match=message):
            text_files(sources)


def read(text: str | None, *rows: str, end: str = "\n") -> tuple[list[str], list[Offsets] | None]:
    """Read a sentence of CoNLL-U. rows: number and form of each, with a blank between them."""
    lines = [f"# text = {text}"] * (text is not None) + ["\t".join([*row.split(" ", 1), "_"]) for row in rows]
    document = BLANKS(Item("a", 1, "conllu", "".join(line + end for line in lines).encode()))
    assert document is not None
    assert document.text == text
    return document.sentences[0], document.places()


def test_a_word_with_blanks_is_one_word_in_its_place() -> None:
    assert read("about 20 000 men", "1 about", "2 20 000", "3 men") == (
        ["about", "20 000", "men"],
        [[(0, 5), (6, 12), (13, 16)]],
    )


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A dog .", ["1 A", "2 cat", "3 ."]),  # the text has another word
        ("A dog .", ["1 A", "2 .", "3 dog"]),  # it has them in another order
        ("du", ["1-3 du", "1 de", "2 le"]),  # the range is too long
        ("du vin", ["1-2 du", "1 de", "3 vin"]),  # a word of it is missing
        (None, ["1 A", "2 dog"]),
    ],
)
def test_words_that_are_not_in_the_text_have_no_places(text: str | None, rows: list[str]) -> None:
    tokens, places = read(text, *rows)
    assert tokens == [row.split(" ")[1] for row in rows if "-" not in row]
    assert places is None


def test_what_ends_a_line() -> None:
    """What ends it in Python's text files, though Python's splitlines knows more separators."""
    for separator in ("\u2028", "\x85", "\x0c", "\x1c"):
        assert read(f"one{separator}two", "1 one", "2 two") == (["one", "two"], [[(0, 3), (4, 7)]])
    assert read("A dog", "1 A", "2 dog", end="\r\n") == (["A", "dog"], [[(0, 1), (2, 5)]])


@pytest.mark.parametrize("line", ["1", "one\tone\t_", "1_\tone\t_", ""])
def test_a_line_without_a_number_and_a_word_is_refused(line: str) -> None:
    with pytest.raises(Unusable, match="no line of CoNLL-U"):
        BLANKS(Item("a", 1, "conllu", f"1\tone\t_\n{line}\n2\ttwo\t_\n".encode()))


def test_docs_of_a_packed_or_damaged_file(tmp_path: Path) -> None:
    vocab, words = spacy.blank("xx").vocab, ["a", "b", "\n", "é", "中"]
    heads = Doc(vocab, words=words, heads=[0, 0, 1, 4, 4], deps=["ROOT", "x", "x", "x", "ROOT"], tags=["T"] * 5)
    starts = Doc(vocab, words=words, sent_starts=[True, False, None, True, False], spaces=[True, False] * 2 + [True])
    written = [heads, Doc(vocab, words=[]), starts, Doc(vocab, words=["ORTH", " ", "x"])]
    data, path = DocBin(docs=written).to_bytes(), tmp_path / "docs.spacy"
    (tmp_path / "docs.spacy.gz").write_bytes(gzip.compress(data))
    read = list(docs_in(tmp_path / "docs.spacy.gz"))
    assert [doc.to_json() for doc in read] == [doc.to_json() for doc in written]
    sentences = [[span.text for span in sentences_of(doc)] for doc in read]
    assert sentences == [["a b \n", "é 中"], [], ["a b\n", "é中"], ["ORTH   x"]]
    for damaged in (data[:-1], b"", data[2:], data[:-9] + b"garbage .."):
        path.write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"docs\.spacy: damaged, cut short or unreadable \("):
            list(docs_in(path))
