"""Corpora with senses and lists of first senses."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_elmo.analysis.senses import Instance, Lemma, SenseSentence, read_first_senses, read_senses
from spacy_elmo.errors import CorpusError

TEXT = """# a comment
The\t\t\t-
natural gas\tnatural_gas\tn\tgas1
burns\tburn\tv\tburn1 burn2

No\tno\td\t-

#\t\t\t-
Bank\tbank\tn\tbank2
"""


def test_senses(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.tsv", tmp_path / "a.tsv.gz"
    path.write_text(TEXT, encoding="utf8")
    packed.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode()))
    gas = Instance(1, 3, Lemma("natural_gas", "n"), ("gas1",))
    burn = Instance(3, 4, Lemma("burn", "v"), ("burn1", "burn2"))
    bank = Instance(1, 2, Lemma("bank", "n"), ("bank2",))
    expected = [
        SenseSentence(["The", "natural", "gas", "burns"], [gas, burn]),
        SenseSentence(["#", "Bank"], [bank]),
    ]
    assert read_senses(path) == read_senses(packed) == expected


def test_sentences_without_a_sense_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("No\tno\td\t-\n\n\n" * 100_000 + "Bank\tbank\tn\tbank2\n", encoding="utf8")
    tracemalloc.start()
    try:
        assert len(read_senses(path)) == 1
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", "line 1: 'a\\\\tb'. Expected a word, its lemma"),
        ("a\tb\tn\t-\n\nbank\tbank\tn\n", "line 3: "),
        ("\tbank\tn\tbank1\n", "line 1: "),
        ("bank\tbank\tn\t\n", "line 1: "),
        ("bank\t\tn\tbank1\n", "line 1: a sense without a lemma"),
        ("bank\tbank\t\tbank1\n", "line 1: a sense without a part of speech"),
        ("a\tb\tn\t-\n", "no word with a sense"),
        ("", "no word with a sense"),
    ],
)
def test_bad_lines(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(text, encoding="utf8")
    with pytest.raises(CorpusError, match=message):
        read_senses(path)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"gone: no such file\. Expected a text with tabs"):
        read_senses(tmp_path / "gone")
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\t\t\t-\n\xff\t\t\t-\n")
    with pytest.raises(CorpusError, match=r"line 2: not UTF-8"):
        read_senses(path)


@pytest.mark.parametrize("read", [read_senses, read_first_senses])
def test_a_folder_is_no_damaged_file(tmp_path: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(CorpusError, match=r"a folder or a special file\. Expected a text with tabs"):
        read(tmp_path)


def test_first_senses(tmp_path: Path) -> None:
    path = tmp_path / "first.tsv"
    path.write_text("bank\tn\tbank1 \nbank\tv\tbank7\n\n", encoding="utf8")
    assert read_first_senses(path) == {Lemma("bank", "n"): "bank1", Lemma("bank", "v"): "bank7"}
    for text, message in (
        ("bank\tn\n", "line 1: .* Expected a lemma"),
        ("bank\tn\t\n", "line 1: "),
        ("bank\tn\t-\n", "line 1: .* and the first sense"),
        ("bank\tn\tbank1 bank2\n", "line 1: .* and the first sense"),
        ("\n", "no first senses"),
        ("bank\tn\ta\nbank\tn\ta\n", r"line 2: bank \(n\) again"),
    ):
        path.write_text(text, encoding="utf8")
        with pytest.raises(CorpusError, match=message):
            read_first_senses(path)
