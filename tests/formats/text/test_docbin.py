"""DocBins are read as spaCy reads them; hostile ones are refused before they take memory."""

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from srsly.msgpack.exceptions import UnpackException

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats import docbin
from spacy_elmo.formats.docbin import TooLargeError, docbin_bytes, read_docs

LIMIT = 1 << 20
# what spaCy and msgpack raise; the caller turns all of it into a CorpusError
DAMAGE = (ValueError, KeyError, IndexError, UnpackException)


def docs() -> list[Doc]:
    vocab = spacy.blank("en").vocab
    words = ["a", "b", "\n", "é", "中"]
    heads = Doc(vocab, words=words, heads=[0, 0, 1, 4, 4], deps=["ROOT", "x", "x", "x", "ROOT"])
    starts = Doc(vocab, words=words, sent_starts=[True, False, None, True, False], spaces=[True, False] * 2 + [True])
    rich = Doc(vocab, words=words, tags=["T"] * 5, lemmas=words[::-1], ents=["B-X", "I-X", "O", "O", "B-Y"])
    rich.spans["s"] = [rich[0:2]]
    rich.user_data["u"], rich.cats = 1, {"c": 0.5}
    return [heads, Doc(vocab, words=[]), starts, Doc(vocab, words=["ORTH", " ", "x"]), rich]


def described(doc: Doc) -> Any:
    sentences = [[token.text for token in span] for span in doc.sents] if doc.has_annotation("SENT_START") else None
    return [token.text for token in doc], doc.text, sentences, doc.has_unknown_spaces


@pytest.mark.parametrize(
    "attrs",
    [
        None,
        ["ORTH"],
        ["ORTH", "SENT_START"],
        ["ORTH", "HEAD", "DEP"],
        ["HEAD", "TAG", "ORTH"],
        ["TAG", "HEAD", "HEAD", "DEP"],
    ],
)
@pytest.mark.parametrize("store_user_data", [False, True])
def test_docs_as_spacy_reads_them(attrs: list[str] | None, store_user_data: bool) -> None:
    kinds = {} if attrs is None else {"attrs": attrs}
    data = DocBin(docs=docs(), store_user_data=store_user_data, **kinds).to_bytes()
    expected = list(DocBin().from_bytes(data).get_docs(Vocab()))
    assert list(map(described, read_docs(data, LIMIT))) == list(map(described, expected))


NAMES = ("text", "pos_", "tag_", "lemma_", "morph", "dep_", "head", "ent_iob_", "ent_type_", "norm_")


def annotated(doc: Doc) -> Any:
    values = [[str(getattr(token, name)) for name in NAMES] for token in doc]
    return described(doc), values, [token.is_title for token in doc], dict(doc.user_data)


@pytest.mark.parametrize("attrs", [None, ["ORTH", "POS", "NORM", "SENT_START"], ["TAG", "TAG", "POS"]])
@pytest.mark.parametrize("store_user_data", [False, True])
def test_annotations_as_spacy_reads_them(attrs: list[str] | None, store_user_data: bool) -> None:
    kinds = {} if attrs is None else {"attrs": attrs}
    tagged = Doc(
        spacy.blank("en").vocab,
        words=["It", "rains", "."],
        pos=["PRON", "VERB", "PUNCT"],
        morphs=["Case=Nom", "", "PunctType=Peri"],
        deps=["nsubj", "ROOT", "punct"],
        heads=[1, 1, 1],
    )
    tagged.user_data["._.", "mood", 0, None] = [1.5, {"a": None}]
    data = DocBin(docs=[*docs(), tagged], store_user_data=store_user_data, **kinds).to_bytes()
    expected = list(DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab))
    found = list(read_docs(data, LIMIT, annotated=True))
    assert [annotated(doc) for doc in found] == [annotated(doc) for doc in expected]
    assert ("._.", "mood", 0, None) in found[-1].user_data or not store_user_data


def test_user_data_of_some_docs() -> None:
    merged = DocBin(docs=docs()[:1], store_user_data=True)
    merged.user_data[0] = None
    merged.add(docs()[-1])
    assert [dict(doc.user_data) for doc in read_docs(merged.to_bytes(), LIMIT, annotated=True)] == [{}, {"u": 1}]


def test_no_docs() -> None:
    assert list(read_docs(DocBin().to_bytes(), LIMIT)) == []


def changed(**changes: object) -> bytes:
    message = srsly.msgpack_loads(zlib.decompress(DocBin(docs=docs()).to_bytes())) | changes
    return zlib.compress(srsly.msgpack_dumps({name: value for name, value in message.items() if value is not ...}))


def numbers(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


ARRAY = {b"nd": True, b"type": "|O", b"kind": b"", b"shape": [1], b"data": bytes(8)}


@pytest.mark.parametrize(
    "changes",
    [
        {"attrs": []},
        {"attrs": [65, 65]},
        {"attrs": ["ORTH"]},
        {"attrs": 5},
        {"attrs": ...},
        {"strings": ["a"]},
        {"strings": [5]},
        {"strings": ["twice", "twice"]},
        {"strings": ...},
        {"tokens": b"x"},
        {"tokens": ARRAY},
        {"tokens": ...},
        {"spaces": b""},
        {"spaces": bytes(19)},
        {"lengths": numbers(5, -1, 6, 3, 5)},
        {"lengths": numbers(2**31 - 1, 2**31 - 1)},
        {"lengths": numbers(18)},
        {"lengths": b"x"},
        {"flags": [{}]},
        {"flags": [5] * 5},
        {"flags": [{"has_unknown_spaces": ARRAY}] * 5},
        {"flags": None},
    ],
)
def test_damaged_parts(changes: dict[str, object]) -> None:
    with pytest.raises(DAMAGE) as error:
        list(read_docs(changed(**changes), LIMIT))
    assert not isinstance(error.value, TooLargeError)


def test_parts_that_are_not_read() -> None:
    data = changed(user_data=[ARRAY] * 5, span_groups=[b"\x91" * 9000] * 5, cats=5, version=[[]], more=ARRAY)
    expected = list(map(described, docs()))
    assert [words for words, *_ in map(described, read_docs(data, LIMIT))] == [words for words, *_ in expected]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa5attrs\xdd\xff\xff\xff\xff",
        b"\x81\xa7strings\xdd\xff\xff\xff\xff",
        b"\x81\xa5flags\xdd\xff\xff\xff\xff\xdf\xff\xff\xff\xff",
        b"\x81\xa6tokens" + b"\xdd\xff\xff\xff\xff" * 1000,
        b"\x81\xa4more" + b"\x91" * 100_000,
        b"\x82\xa5attrs\x90\xa5attrs\x90",
    ],
)
def test_damaged_messages(message: bytes) -> None:
    with pytest.raises(DAMAGE) as error:
        list(read_docs(zlib.compress(message), LIMIT))
    assert not isinstance(error.value, TooLargeError)


def test_the_most_bytes_that_docs_may_unpack_to() -> None:
    data = DocBin(docs=docs()).to_bytes()
    size = len(zlib.decompress(data))
    assert len(list(read_docs(data, size))) == 5
    with pytest.raises(TooLargeError):
        read_docs(data, size - 1)


def test_the_most_bytes_of_a_packed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the larger one of a number of bytes and a multiple of the file's size."""
    monkeypatch.setattr(docbin, "_DOCS_BYTES", 50_000)
    path = tmp_path / "docs.spacy.gz"
    for number, times, limit in ((50_000, 0, 50_000), (50_000, 64, 50_000), (400_000, 1_000, 1_000)):
        monkeypatch.setattr(docbin, "_DOCS_TIMES", times)
        path.write_bytes(gzip.compress(bytes(number)))
        if times == 1_000:
            limit *= path.stat().st_size
            assert limit > number
        assert docbin_bytes(path) == (bytes(number), limit)
    monkeypatch.setattr(docbin, "_DOCS_TIMES", 64)
    path.write_bytes(gzip.compress(bytes(50_001)))
    with pytest.raises(CorpusError, match=r"docs\.spacy\.gz.*50,?000"):
        docbin_bytes(path)


def test_bombs() -> None:
    bomb = zlib.compress(bytes(1 << 26))
    assert len(bomb) < 1 << 17
    with pytest.raises(TooLargeError):
        read_docs(bomb, LIMIT)


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"", lambda data: data[2:]]
)
def test_what_is_no_zlib_stream(change: Any) -> None:
    with pytest.raises((ValueError, zlib.error)):
        read_docs(change(DocBin(docs=docs()).to_bytes()), LIMIT)
