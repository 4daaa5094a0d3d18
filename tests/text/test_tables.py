"""Tables against pandas, and the columns of annotated words."""

import csv
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.errors import CorpusError
from spacy_elmo.text import files, tables, words
from spacy_elmo.text.files import text_files
from spacy_elmo.text.stream import Parser, read_items
from spacy_elmo.text.tables import column_words
from spacy_elmo.text.words import Unusable

PARSER = Parser(None)
Found = tuple[list[tuple[int, str, dict[str, str] | None]], int, dict[int, str]]


def read(content: str | bytes, folder: Path, name: str = "a.csv", column: str = "text") -> Found:
    """Return number, text and other fields of all rows, the number of blank ones, and the bad lines with reasons."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    rows, n_blank, bad = [], 0, {}
    for item in read_items(text_files(path), column):
        try:
            document = PARSER(item)
        except Unusable as error:
            bad[item.line] = str(error)
            continue
        if document is None:
            n_blank += 1
        else:
            meta = None if document.meta is None else json.loads(document.meta)
            rows.append((document.line, document.text or "", meta))
    return rows, n_blank, bad


PIECES = ["a", "b c", '"', '""', ",", ";", "\t", "\n", "\r\n", "\r", "é", "'", "2008", " "]


def fields(rng: random.Random, n: int) -> list[str]:
    return ["".join(rng.choices(PIECES, k=rng.randint(0, 4))) for _ in range(n)]


@pytest.mark.parametrize(("name", "end"), [("a.csv", "\n"), ("a.csv", "\r\n"), ("a.tsv", "\n")])
def test_tables_as_pandas_reads_them(name: str, end: str, tmp_path: Path) -> None:
    """Fields of all kinds: .csv with the quotes that are needed, as the csv module writes it, and .tsv without."""
    pandas = pytest.importorskip("pandas")
    rng = random.Random(1)
    for _ in range(80):
        names = ["id", "text", "x"][: rng.randint(2, 3)]
        rows = [fields(rng, len(names)) for _ in range(rng.randint(0, 8))]
        how: dict[str, Any] = {}
        if name == "a.tsv":
            rows = [[re.sub("[\t\r\n]", "", field) for field in row] for row in rows]
            content = "".join("\t".join(row) + end for row in [names, *rows])
            how = {"sep": "\t", "quoting": csv.QUOTE_NONE, "skip_blank_lines": False}
        else:
            out = io.StringIO()
            # the module leaves a carriage return without quotes if it does not end lines
            quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]) if end == "\r\n" else csv.QUOTE_ALL
            csv.writer(out, lineterminator=end, quoting=quoting).writerows([names, *rows])
            content = out.getvalue()
        frame = pandas.read_csv(io.BytesIO(content.encode()), dtype=str, keep_default_na=False, **how)
        found, n_blank, bad = read(content, tmp_path, name)
        assert not bad
        expected = [(i + 2, row) for i, row in enumerate(frame.to_dict("records")) if row["text"].split()]
        assert [text for _, text, _ in found] == [row["text"] for _, row in expected]
        for (line, _, meta), (expected_line, row) in zip(found, expected):
            others = {key: value for key, value in row.items() if key not in ("id", "text")}
            assert meta == (others or None)
            assert line == expected_line or name == "a.csv"  # whose fields have line breaks
        assert n_blank >= len(frame) - len(expected)


def test_bad_rows_are_alone(tmp_path: Path) -> None:
    """A bad row at a random place: all others are read, with their lines."""
    rng = random.Random(3)
    bad_rows = {
        'x,"never closed\n': "never closed|text after a closing",
        '"a" b,x\n': "text after a closing quotation mark",
        "a,b,c\n": "3 fields. Expected 2",
        "a\n": "1 fields. Expected 2",
        'a,"\xff"\n': "not UTF-8",
        'a,"b\0"\n': "NUL",
        '"p\n\xff\nq",5\n': "line",
        '"one\ntwo, three"x\n': "text after a closing quotation mark",
        "a," + "x" * 400 + "\n": "more than 300 bytes",
    }
    for text, reason in bad_rows.items():
        for _ in range(10):
            rows = [f'"say ""{i}""\nand go",{i}\n' if rng.random() < 0.5 else f"word {i},{i}\n" for i in range(8)]
            at = rng.randint(0, 8)
            before = 2 + sum(row.count("\n") for row in rows[:at])
            with pytest.MonkeyPatch.context() as patch:
                for module in (files, tables, words):
                    patch.setattr(module, "LONGEST_LINE", 300)
                content = "text,n\n" + "".join([*rows[:at], text, *rows[at:]])
                found, _, bad = read(content.encode("latin-1"), tmp_path)
            assert [meta for *_, meta in found] == [{"n": str(i)} for i in range(8)]
            assert list(bad) == [before]
            assert any(part in bad[before] for part in reason.split("|")), bad


def test_long_fields(tmp_path: Path) -> None:
    """A field may be longer than the csv module allows, and also one that is not read."""
    content = f'text,other\n{"a " * 100_000},{"b" * 200_000}\n"{"c " * 100_000}",d\n'
    rows, _, bad = read(content, tmp_path)
    assert [len(text) for _, text, _ in rows] == [200_000, 200_000]
    assert not bad


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.tsv", 'text\n"I liked it, he said\nBad; film\n', ['"I liked it, he said', "Bad; film"]),  # one column
        ("a.TSV", 'text\tn\n"a\t1\nb"\t2\n', ['"a', 'b"']),
        ("a.txt", 'text\tn\n"a\t1\n', ['"a']),
        ("a.csv", '\ufefftext;n\n"a, b";1\n', ["a, b"]),  # as Excel writes it in much of Europe
        ("a.csv", 'a;b,text\n1;2,"x;y"\n', ["x;y"]),
        ("a.csv", 'text,x,x\na "b" c,1,2\n', ['a "b" c']),
        ("a.csv", '"Name, Vorname";"text"\nx;y\n', ["y"]),
        ("a.csv", "\n\ntext,n\na,1\n", ["a"]),
        ("a.csv", "text,n\r\na,1\r\n\r\nb,2\r\n", ["a", "b"]),
        ("a.csv", "text,n\ra,1\rb,2\r", ["a", "b"]),
    ],
)
def test_kinds_of_tables(name: str, content: str, texts: list[str], tmp_path: Path) -> None:
    rows, _, bad = read(content, tmp_path, name)
    assert [text for _, text, _ in rows] == texts
    assert not bad
    if ",x,x" in content:
        assert rows[0][2] == {"x": "1", "x.1": "2"}


def test_columns_that_are_missing_or_there_twice(tmp_path: Path) -> None:
    for content, got in (
        ("a,b\n1,2\n", "its columns are a, b"),
        ("text,text\n", "its columns are text, te"),
        ("", ""),
    ):
        with pytest.raises(CorpusError, match=rf"a\.csv: {got}.* Expected 'text' among its columns, once"):
            read(content, tmp_path)


WEBANNO = """#FORMAT=WebAnno TSV 3.2
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value


#Text=Jo slept .
1-1\t0-2\tJo\tPER
1-2\t3-8\tslept\t_
1-2.1\t3-5\tsl\tX
1-3\t9-10\t.\t_

#Text=Why ?
2-1\t11-14\tWhy\t_
2-2\t15-16\t?\t_
"""
CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
# NN B-NP O
rejects VBZ B-VP O

1 CD O O
"""
CONLL_2012 = """#begin document (x); part 000
x 0 0 Why WRB *
x 0 1 not RB *

x 0 0 # NN *
#end document
"""
CONLL_X = "1\tThe\t_\tDT\n2\tcat\t_\tNN\n\n1\tSat\t_\tVB\n"
UD = "# text = It ran over a lazy fox\n1-2\tdu\tx\tX\n1\tde\tx\tX\n2\tle\tx\tX\n\n# newdoc\n1\tIt\tx\tX\n2\tis\tx\tX\n"
MULTICONER = "# id 7\tdomain=en\nJo _ _ B-PER\nslept _ _ O\n\n# id 8\tdomain=en\nWhy _ _ O\n"


@pytest.mark.parametrize(
    ("name", "content", "sentences"),
    [
        ("a.tsv", WEBANNO, ["Jo slept .", "Why ?"]),
        ("a.conll", CONLL_2003, ["EU # rejects", "1"]),
        ("a.conll", CONLL_2012, ["Why not", "#"]),
        ("a.CONLL", CONLL_X, ["The cat", "Sat"]),
        ("a.conll", MULTICONER, ["Jo slept", "Why"]),
        ("a.conll", MULTICONER.replace("\t", " "), ["Jo slept", "Why"]),
        ("a.conllx", UD, ["de le", "It is"]),
        ("a.conll", "0\tThe\tDT\n1\tdog\tNN\n", ["The dog"]),
        ("a.conll", f"{'1' * 5000} CD O\nmen NN O\n", [f"{'1' * 5000} men"]),
        ("a.v4_gold_conll", CONLL_2012, ["Why not", "#"]),
        ("a.conll", "25\xa0785 CD O\nmen NN O\n\xa0\n", ["25\xa0785 men"]),
        ("a.iob2", "# doc1\nEU\tB-ORG\nrejects\tO\n", ["EU rejects"]),
        ("a.bio", "Jo\tB-PER\nslept\tO\n\nNew York\tB-LOC\n", ["Jo slept", "New_York"]),
        ("a.iob", "Jo|NNP|B-PER slept|VBD|O\n\nWhy|WRB|O\n", ["Jo slept", "Why"]),
        ("a.iob", "Jo O\r\nslept O\r\n\r\nWhy O\r\n", ["Jo slept", "Why"]),
    ],
)
def test_annotated_words(name: str, content: str, sentences: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf8", newline="")
    found = [PARSER(item) for item in read_items(text_files(tmp_path / name))]
    expected = [[word.replace("_", " ") for word in sentence.split(" ")] for sentence in sentences]
    assert [document.sentences[0] for document in found if document is not None] == expected


def test_a_bad_line_costs_its_sentence() -> None:
    lines = [b"a O\n", b"b\xff O\n", b"\n", b"c O\n", b"\n", None, b"d O\n"]
    parts: list[Any] = list(column_words(lines))
    assert [(number, data) for number, data, _ in parts] == [(1, None), (4, b'["c"]'), (6, None)]
    assert [problem[:9] for *_, problem in parts] == ["line 2: n", "", "more than"]
