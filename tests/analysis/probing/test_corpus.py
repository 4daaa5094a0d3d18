"""Words and labels of .spacy and .conllu files."""

from pathlib import Path

import pytest
import spacy
from spacy.attrs import POS
from spacy.tokens import Doc, DocBin
from spacy.training.converters.conllu_to_docs import conllu_to_docs
from spacy.vocab import Vocab

from spacy_elmo.analysis import probing as probing_corpus
from spacy_elmo.analysis.probing import LabelledCorpus, label_getter, read_labelled
from spacy_elmo.errors import CorpusError

CONLLU = """# text = Du rivage .
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tDe\tde\tADP\tP\t_\t3\tcase\t_\t_
2\tle\tle\tDET\tD\t_\t3\tdet\t_\t_
3\trivage\trivage\tNOUN\tN\t_\t0\troot\t_\t_
3.1\tnothing\t_\tNOUN\tN\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tVa\taller\tVERB\tV\t_\t0\troot\t_\t_

"""


def write(path: Path, *docs: Doc) -> Path:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def read(path: Path, attribute: str = "upos", limit: int | None = None) -> LabelledCorpus:
    return read_labelled(path, attribute, label_getter(attribute), limit)


def test_conllu(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf8")
    corpus = read(path)
    assert corpus.sentences == [["De", "le", "rivage", "."], ["Va"]]
    assert corpus.labels == ["ADP", "DET", "NOUN", "PUNCT", "VERB"]
    assert corpus.words == ["De", "le", "rivage", ".", "Va"]
    assert read(path, limit=1).sentences == [["De", "le", "rivage", "."]]
    assert read(path, limit=2**63) == read(path)


def test_the_form_of_words(tmp_path: Path) -> None:
    """What spaCy knows of a word's form is the same in .conllu and in .spacy."""
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf8")
    docs = [Doc(spacy.blank("xx").vocab, words=words) for words in (["De", "le", "rivage", "."], ["Va"])]
    same = write(tmp_path / "a.spacy", *docs)
    for attribute in ("is_title", "shape", "lower", "is_punct"):
        assert read(path, attribute) == read(same, attribute)
    assert read(path, "is_title").labels == ["True", "False", "False", "False", "True"]


@pytest.mark.parametrize(
    "text",
    [
        CONLLU.replace("\t3\t", "\t_\t").replace("\t0\t", "\t_\t"),
        CONLLU.replace("\t3\tdet", "\t0\troot"),
        CONLLU.replace("\n", "\r\n"),
        CONLLU.replace("\n\n", "\n \n", 1),
        CONLLU.replace("\n\n", "\n\u00a0\n", 1),
        CONLLU.replace("4\t.", "# a comment\n4\t."),
        CONLLU + "# the end\n\n",
        CONLLU.rstrip("\n"),
    ],
    ids=[
        "no heads",
        "two roots",
        "CR LF",
        "a blank",
        "another blank",
        "a comment inside",
        "a comment at the end",
        "no line end",
    ],
)
def test_sentences_of_conllu_end_at_empty_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(text.encode())
    corpus = read(path)
    assert corpus.sentences == [["De", "le", "rivage", "."], ["Va"]]
    assert corpus.labels == ["ADP", "DET", "NOUN", "PUNCT", "VERB"]


def test_words_of_conllu_without_a_value(tmp_path: Path) -> None:
    """spaCy gives them the UPOS as XPOS, and "_" as lemma and relation. A word may be an underscore."""
    path = tmp_path / "a.conllu"
    rows = [
        "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tde\t_\tADP\t_\t_\t2\t_\t_\t_",
        "2\tle\tle\tDET\tDT\t_\t0\troot\t_\t_",
        "2.1\tx\tx\tX\tXX\t_\t_\t_\t_\t_",
        "3\t_\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_",
    ]
    path.write_text("\n".join(rows) + "\n\n" + rows[2].replace("2", "1", 1) + "\n", encoding="utf8")
    assert read(path, "tag").labels == ["", "DT", "", "DT"]
    assert read(path, "lemma").labels == ["", "le", "_", "le"]
    assert read(path, "dep").labels == ["", "ROOT", "punct", "ROOT"]
    assert read(path).labels == ["ADP", "DET", "PUNCT", "DET"]
    path.write_text(rows[1].replace("2", "0") + "\n")
    with pytest.raises(CorpusError, match="no token has a value of the attribute 'tag'"):
        read(path, "tag")


@pytest.mark.parametrize("at_a_time", [1, 200, 100_000])
def test_entities_of_conllu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    """As spaCy reads them: if a file has entities, the other words are outside of them, else nothing is known."""
    monkeypatch.setattr(probing_corpus, "_CHARACTERS", at_a_time)
    path = tmp_path / "a.conllu"
    named = CONLLU.replace("0\troot\t_\t_", "0\troot\t_\tname=U-LOC", 1)
    for text, labels in ((named, ["O", "O", "B-LOC", "O", "O"]), (CONLLU, [""] * 5)):
        path.write_text(text, encoding="utf8")
        docs = list(conllu_to_docs(text.partition("\n")[2], n_sents=1, no_print=True))
        assert [label_getter("ent")(token) for doc in docs for token in doc] == labels
        if any(labels):
            assert read(path, "ent").labels == labels
        else:
            with pytest.raises(CorpusError, match="no token has a value of the attribute 'ent'"):
                read(path, "ent")


def test_docs(tmp_path: Path) -> None:
    """Sentence boundaries are followed, whitespace is left out, and a doc without boundaries is one sentence."""
    marked = Doc(
        Vocab(),
        words=["It", " ", "rains", "Stay"],
        pos=["PRON", "SPACE", "VERB", "VERB"],
        sent_starts=[True, False, False, True],
    )
    blank = Doc(Vocab(), words=["   "])
    other = Doc(Vocab(), words=["Go", "home"], pos=["VERB", ""])
    write(tmp_path / "a.spacy", marked, blank)
    write(tmp_path / "b.spacy", other)
    corpus = read(tmp_path)
    assert corpus.sentences == [["It", "rains"], ["Stay"], ["Go", "home"]]
    assert corpus.labels == ["PRON", "VERB", "VERB", "VERB", ""]


def test_values_of_an_extension(tmp_path: Path) -> None:
    doc = Doc(Vocab(), words=["Go", "home"])
    doc.user_data["._.", "mood", 0, None] = True
    doc.user_data["._.", "mood", doc[1].idx, None] = False
    assert read(write(tmp_path / "a.spacy", doc), "_.mood").labels == ["True", "False"]


def test_damaged_annotations(tmp_path: Path) -> None:
    """spaCy takes any number as the part of speech of a token, and fails if its name is read."""
    doc = Doc(Vocab(), words=["Go"], pos=["VERB"])
    docbin = DocBin(docs=[doc])
    docbin.tokens[0][0, docbin.attrs.index(POS)] = 12345
    path = tmp_path / "a.spacy"
    docbin.to_disk(path)
    with pytest.raises(CorpusError, match=r"a\.spacy: damaged"):
        read(path)
    assert read(path, "text").labels == ["Go"]


def test_refusals(tmp_path: Path) -> None:
    doc = Doc(Vocab(), words=["Go"], tags=["VB"])
    tagged = write(tmp_path / "tagged.spacy", doc)
    with pytest.raises(CorpusError, match=r"tagged\.spacy: no token has a value of the attribute 'upos'"):
        read(tagged)
    for empty in (write(tmp_path / "none.spacy"), write(tmp_path / "blank.spacy", Doc(Vocab(), words=[" "]))):
        with pytest.raises(CorpusError, match="no words"):
            read(empty)
    with pytest.raises(CorpusError, match=r"gone: no such file\. Expected an annotated corpus"):
        read(tmp_path / "gone")
    text = tmp_path / "a.txt"
    text.write_text("a")
    with pytest.raises(CorpusError, match=r"a\.txt: not a \.spacy or \.conllu file"):
        read(text)
    tagged.write_bytes(tagged.read_bytes()[:-4])
    with pytest.raises(CorpusError, match=r"tagged\.spacy: damaged"):
        read(tagged, "tag")
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tword\n\n")
    with pytest.raises(
        CorpusError, match=r"bad\.conllu, the sentence at line 1: .* 10 columns divided by tabs: '1\\tword'"
    ):
        read(bad)
    bad.write_text(CONLLU.replace("4\t.", "x\t."))
    with pytest.raises(CorpusError, match=r"bad\.conllu, the sentence at line 1: .*'x'\. Correct or remove it"):
        read(bad)
    bad.write_text(CONLLU.replace("VERB", "FOO"))
    with pytest.raises(CorpusError, match=r"bad\.conllu, the sentence at line 9: .*FOO"):
        read(bad)
    bad.write_text(f"{CONLLU}1\tx\0\n\n")
    with pytest.raises(
        CorpusError, match=r"bad\.conllu, the sentence at line 11: a NUL character\. Correct or remove it"
    ):
        read(bad)
