"""Tables of SemCor and of the test sets become what `elmo wsd` reads."""

from pathlib import Path

import pytest

from scripts.corpora.convert_senses import main
from spacy_elmo.analysis.senses import Instance, Lemma, SenseSentence, read_first_senses, read_senses
from spacy_elmo.errors import CorpusError

INDEX = """bank%1:14:00:: 08420278 2 20
bank%1:17:01:: 09213565 1 25
open%3:00:00:: 01652782 1 60
open%5:00:00:available:00 00183053 2 3
river_bank%1:17:00:: 09213999 1 0
"""
SOURCE = """# token\tlemma\tpos\tsenses (resource:reftype:reference, separated by a blank)
# d0 sent 1
The\tthe\tDT\t-
river_bank\triver_bank\tNN\tWordNet-eng30:sense_number:1 WordNet-eng30:lexical_key:1:17:00::
# d0 sent 2
Banks\tBank\tNNS\tWordNet-2.1:sense:bank%1:14:00:: WordNet-2.1:sense:bank%1:99:00::
open\topen\tJJ\tWordNet-eng171:lexical_key:5:00:00:available:00;3:00:00:: WordNet-eng171:synset:eng171-0-a
n't\tn't\tRB\tWordNet-eng171:lexical_key:U
_\t_\t_\t-
"""


def test_convert_senses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, source, folder = tmp_path / "index.sense", tmp_path / "test.tsv", tmp_path / "senses"
    index.write_text(INDEX, encoding="utf8")
    source.write_text(SOURCE, encoding="utf8")
    main(index, folder, [source])
    river = Instance(1, 3, Lemma("river_bank", "n"), ("river_bank%1:17:00::",))
    bank = Instance(0, 1, Lemma("bank", "n"), ("bank%1:14:00::",))
    open_ = Instance(1, 2, Lemma("open", "a"), ("open%5:00:00:available:00", "open%3:00:00::"))
    assert read_senses(folder / "test.tsv") == [
        SenseSentence(["The", "river", "bank"], [river]),
        SenseSentence(["Banks", "open", "n't", "_"], [bank, open_]),
    ]
    assert read_first_senses(folder / "first_senses.tsv") == {
        Lemma("bank", "n"): "bank%1:17:01::",
        Lemma("open", "a"): "open%3:00:00::",
        Lemma("river_bank", "n"): "river_bank%1:17:00::",
    }
    assert "3 words with senses, 1 left out" in capsys.readouterr().out


def test_bad_files(tmp_path: Path) -> None:
    index, source = tmp_path / "index.sense", tmp_path / "test.tsv"
    index.write_text("bank 1 2 3\n")
    with pytest.raises(CorpusError, match=r"index\.sense, line 1: got 'bank 1 2 3'"):
        main(index, tmp_path / "senses", [])
    index.write_text(INDEX)
    for line in ("bank\tbank\n", "bank\tbank\tNN\tsense\n"):
        source.write_text(line)
        with pytest.raises(CorpusError, match=r"test\.tsv, line 1: got"):
            main(index, tmp_path / "senses", [source])
    assert not (tmp_path / "senses" / "test.tsv").exists()


def test_nothing_is_replaced_by_a_conversion(tmp_path: Path) -> None:
    index, other = tmp_path / "index.sense", tmp_path / "other"
    index.write_text(INDEX, encoding="utf8")
    other.mkdir()
    for path in (tmp_path / "test.tsv", tmp_path / "first_senses.tsv", other / "test.tsv"):
        path.write_text(SOURCE, encoding="utf8")
    test = tmp_path / "test.tsv"
    for folder, sources in ((tmp_path, [test]), (other, [tmp_path / "first_senses.tsv"]), (other, [test] * 2)):
        with pytest.raises(CorpusError, match="Expected files with names of their own"):
            main(index, folder, sources)
    assert test.read_text(encoding="utf8") == SOURCE
    index.write_text("")
    with pytest.raises(CorpusError, match=r"index\.sense: no senses"):
        main(index, tmp_path / "senses", [test])
    assert not (tmp_path / "senses").exists()


def test_a_corpus_without_senses(tmp_path: Path) -> None:
    index, source = tmp_path / "index.sense", tmp_path / "test.tsv"
    index.write_text(INDEX)
    source.write_text("The\tthe\tDT\t-\n")
    with pytest.raises(CorpusError, match=r"test\.tsv: no word has a sense"):
        main(index, tmp_path / "senses", [source])
    assert not (tmp_path / "senses" / "test.tsv").exists()


def test_the_list_of_senses_stays(tmp_path: Path) -> None:
    index, source = tmp_path / "in" / "test.tsv", tmp_path / "test.tsv"
    index.parent.mkdir()
    index.write_text(INDEX)
    source.write_text(SOURCE, encoding="utf8")
    with pytest.raises(CorpusError, match="would be replaced by its own conversion"):
        main(index, index.parent, [source])
    assert index.read_text() == INDEX
