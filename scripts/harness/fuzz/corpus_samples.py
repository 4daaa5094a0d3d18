"""Corpora in each format, changed: texts, JSON lines, DocBins, CoNLL-U, and words with senses."""

from __future__ import annotations

import json
import zlib
from functools import cache
from random import Random
from typing import Any

import spacy
import srsly
from spacy.tokens import Doc, DocBin

from .mutate import JSON_VALUES, ODD_TEXTS, changed_tree, mutated

TEXT = "The river bank .\nHe sat by the bank of the river .\n\nÉté à Tōkyō 東京 🙂 !\n" * 20
_CONLLU = """# sent_id = a
# text = Du rivage.
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tDe\tde\tADP\tP\tx=y\t3\tcase\t_\t_
2\tle\tle\tDET\tD\t_\t3\tdet\t_\t_
3\trivage\trivage\tNOUN\t_\tCase=Nom|Number=Sing\t0\troot\t_\tSpaceAfter=No|NER=B-X
3.1\tnothing\t_\tNOUN\tN\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_
"""
_SENSES = "The\tthe\tDET\t-\nnatural gas\tnatural_gas\tNOUN\tgas%1 gas%2\nbank\tbank\tNOUN\tbank%1\n"
_FIRST = "bank\tNOUN\tbank%1\nriver\tNOUN\triver%1\n"
# words that are slow to tokenise if they are repeated
_SLOW = (
    "http://",
    "!",
    "a:",
    ":a@",
    "!" * 999 + "a",
    '{"a":"b",',
    "(",
    "a.",
    "a!",
    "1,",
    "'",
    "-",
    "e\u0301",
    "\u3000",
)
_NUMBERS = (
    "0",
    "-1",
    "1-300000000",
    "2-1",
    "1.300000000",
    "²",
    "٣",
    "9" * 5000,
    "1-" + "9" * 5000,
    "1e9",
    "",
    "_",
    "*",
)


def text(random: Random) -> bytes:
    """Return a text, perhaps with odd characters or with words that are slow to tokenise."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(ODD_TEXTS).encode("utf8", "surrogatepass").join([TEXT.encode(), TEXT.encode()[::-1]])
    if kind == 1:
        slow = random.choice(_SLOW) * random.choice((10, 1000, 100_000)) + random.choice(("", "a", "!", ":"))
        return f"{TEXT}{slow[: random.choice((10_000, 100_000, 1_100_000))]}\n{TEXT}".encode()
    return TEXT.encode()


def json_lines(random: Random) -> bytes:
    """Return changed JSON lines."""
    lines: list[Any] = [{"text": "The river bank ."}, {"tokens": ["The", "bank"]}, {"text": "x", "tokens": ["y"]}]
    changed = [json.dumps(changed_tree(line, random, JSON_VALUES)) for line in lines * 5]
    return "\n".join([*changed, "[" * random.choice((1, 100_000)), *map(json.dumps, lines)]).encode()


def docbin(random: Random) -> bytes:
    """Return a DocBin with odd parts, lists of very many values, or odd numbers in its table; some are valid."""
    message: dict[Any, Any] = dict(_docbin_message())
    kind = random.randrange(4)
    if kind == 0:
        message = changed_tree(message, random)
    elif kind == 1:
        name = random.choice([*message, "more"])
        message[name] = [random.choice(([], {}, None, 0, "", b""))] * random.choice((1, 1000, 3_000_000))
    elif kind == 2:
        name = random.choice(("tokens", "spaces", "lengths"))
        message[name] = mutated(message[name], random)
    else:
        message["user_data"] = [_user_data(random) for _ in range(len(message["user_data"]))]
    try:
        packed = srsly.msgpack_dumps(message)
    except (OverflowError, UnicodeEncodeError, ValueError):  # msgpack has no such values
        packed = mutated(srsly.msgpack_dumps(_docbin_message()), random)
    return zlib.compress(packed, 1)


def conllu(random: Random) -> bytes:
    """Return sentences of CoNLL-U whose columns are changed; some are valid."""
    rows = [line.split("\t") for line in f"{_CONLLU}\n{_CONLLU}\n".split("\n")]
    for _ in range(random.choice((0, 1, 2, 5))):
        row = random.choice(rows)
        odd = (*_NUMBERS, *ODD_TEXTS, "x=y|", "a\tb")
        row[random.randrange(len(row))] = random.choice(_NUMBERS if random.random() < 0.5 else odd)
    if random.random() < 0.1:
        rows *= random.choice((10, 1000))
    return random.choice(("\n", "\n", "\r\n")).join("\t".join(row) for row in rows).encode("utf8", "surrogatepass")


def senses(random: Random) -> bytes:
    """Return words with senses, perhaps with very many empty lines."""
    return (_SENSES + "\n" * (3_000_000 if random.random() < 0.05 else 1) + _SENSES).encode()


def first_senses(random: Random) -> bytes:
    """Return the first senses of lemmas, some of them twice."""
    return (_FIRST * random.choice((1, 1, 2))).encode()


def _user_data(random: Random) -> Any:
    user_data: dict[Any, Any] = {("._.", "mood", 0, None): "glad", "x": [1.5, {"a": None}]}
    valid = srsly.msgpack_dumps(user_data)
    kind = random.randrange(4)
    if kind == 0:
        return mutated(valid, random)
    if kind == 1:
        return b"\x81\xa1x\xdd" + (n := random.choice((9, 3_000_000, 30_000_000))).to_bytes(4, "big") + b"\x90" * n
    return random.choice((valid, None, b"", [], "x"))


@cache
def _docbin_message() -> dict[Any, Any]:
    nlp = spacy.blank("en")
    tagged = Doc(
        nlp.vocab,
        words=["It", "rains", "."],
        pos=["PRON", "VERB", "PUNCT"],
        tags=["PRP", "VBZ", "."],
        morphs=["Case=Nom", "", ""],
        lemmas=["it", "rain", "."],
        deps=["nsubj", "ROOT", "punct"],
        heads=[1, 1, 1],
        ents=["B-X", "I-X", "O"],
    )
    user_data: dict[Any, Any] = tagged.user_data
    user_data["._.", "mood", 0, None] = "glad"
    docs = [nlp(TEXT), nlp(""), tagged, Doc(nlp.vocab, words=["a", "b"], sent_starts=[True, True])]
    message: dict[Any, Any] = srsly.msgpack_loads(zlib.decompress(DocBin(docs=docs, store_user_data=True).to_bytes()))
    return message
