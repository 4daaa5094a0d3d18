"""African languages: what is left out of a text, and what its words are."""

import json
import random
import subprocess
import unicodedata
from pathlib import Path

import pytest
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from scripts import assets
from scripts.languages import texts, trees

ENTITIES = 'Marais O\nBarack B-PER\nObama I-PER\n. O\n\nn O\n"""" O\nụlọ O\n"""" O\nUgandà B-LOC\n\n'


def words_of(docs: Path) -> list[list[str]]:
    return [[word.text for word in doc] for doc in DocBin().from_disk(docs).get_docs(Vocab())]


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("Obama, W. Bush? \u2018Yan kallo ma\u2019aikata.", ["Obama , W . Bush ?", "'Yan kallo ma'aikata ."]),
        ("\u201cCOVID\u201319\u201d 1.5 bang' mar 'Esan South'", ["\" COVID - 19 \" 1 . 5 bang' mar 'Esan South '"]),
        ("gbo\u0323\u0301 me\u0301ta .Na hazina.na", ["gbọ\u0301 méta .", "Na hazina . na"]),
        (" \u200b ", []),
    ],
)  # fmt: skip
def test_words_and_sentences(line: str, sentences: list[str]) -> None:
    assert [" ".join(words) for words in texts.sentences_of(line)] == sentences


def test_no_sentence_of_a_part_and_no_piece_of_one_stays() -> None:
    drawn = random.Random(0)
    held = [[drawn.choice(["aba", "Báb", "ca,", "dà"]) for _ in range(drawn.randint(1, 16))] for _ in range(60)]
    is_one = texts.without(held)
    letters = ["".join(words).lower().replace("á", "a").replace("à", "a").replace(",", "") for words in held]
    for words, own in zip(held, letters):
        upper = ["-", " ".join(words).upper(), "!"]
        assert is_one(upper)
        if len(own) >= 20:
            assert is_one(["Kabla", *upper])
            start = drawn.randint(0, len(own) - 20)
            assert is_one([own[start : drawn.randint(start + 20, len(own))]])
    for _ in range(500):
        other = drawn.choice(["xyz", "uvw"]) + "".join(drawn.choices("abcd", k=drawn.randint(0, 60)))
        assert is_one([other]) == any(own in other for own in letters if len(own) >= 20)


def test_texts_and_corpora_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "lacuna/a.txt": "Huko nyuma. Marais Barack Obama.\n1\tHUKO, nyuma!\n",
        "masakhane_news/a.tsv": "category\theadline\ttext\turl\nsport\tHabari\t\"Moja.\nMbili tatu.\"\tx\n",
        "bible/b.xml": "<a><seg>\nKatika mwanzo\n</seg><seg/></a>",
        "lacuna/b.csv": 'Title,Text\nsiku,"leo, kesho"\n',
        **{f"{texts.NER}/{texts.ENTITIES}/aaa/{part}.txt": ENTITIES for part in texts.PARTS[1:]},
        f"{texts.NER}/{texts.ENTITIES}/aaa/train.txt": ENTITIES.replace("Obama", "Jr"),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    rows = [
        f"{name.split('/')[1][0] * 3}\t{name.replace('/', chr(9))}\tnone" for name in files if texts.NER not in name
    ]
    (tmp_path / "sources.tsv").write_text("\n".join(["language\trepository\tpath\tlicence", *rows]), encoding="utf-8")
    monkeypatch.setattr(texts, "SOURCES", tmp_path / "sources.tsv")
    monkeypatch.setattr(texts, "ANNOTATED", ["aaa"])
    (tmp_path / "git").mkdir()
    (tmp_path / "lacuna/b.csv").rename(tmp_path / "git/b.csv")
    for command in ("init -q", "add b.csv", "-c user.name=a -c user.email=a@b.c commit -q -m x"):
        subprocess.run(["git", "-C", str(tmp_path / "git"), *command.split()], check=True)
    monkeypatch.setitem(assets.REPOSITORIES, "lacuna", (str(tmp_path / "git"), "HEAD"))
    out = tmp_path / "out"
    texts.main(tmp_path, out)
    assert (out / "text/aaa.txt").read_text(encoding="utf-8").splitlines() == [
        "Huko nyuma .", "Habari", "Moja .", "Mbili tatu .", "Marais Barack Jr .",
    ]  # fmt: skip
    assert (out / "text/bbb.txt").read_text(encoding="utf-8").splitlines() == [
        "Katika mwanzo", "Title", "Text", "siku", "leo , kesho",
    ]  # fmt: skip
    assert json.loads((out / "counts.json").read_text(encoding="utf-8"))["aaa"] == {
        "sentences": 5, "left out": 2, "words": 13, "bytes a word": 3.54, "words of more than 48 bytes": 0,
    }  # fmt: skip
    assert len((out / "all.txt").read_text(encoding="utf-8").splitlines()) == 10
    (doc, igbo) = DocBin().from_disk(out / "aaa/test.spacy").get_docs(Vocab())
    assert [(one.text, one.label_) for one in (*doc.ents, *igbo.ents)] == [("Barack Obama", "PER"), ("Ugandà", "LOC")]
    assert words_of(out / "aaa/train.spacy") == [["Marais", "Barack", "Jr", "."], ["n'ụlọ", '"', "Ugandà"]]


def test_texts_and_treebanks_are_written_alike() -> None:
    drawn = random.Random(0)
    for _ in range(200):  # Greek words, of which the marks of the first letter stand before it
        letters = "".join(chr(drawn.choice([*range(0x3B1, 0x3C2), *range(0x391, 0x3A2)])) for _ in range(4))
        marks = drawn.choice("\u0313\u0314") + drawn.choice(["", "\u0300", "\u0301", "\u0342"])
        right = f" {letters[0]}{marks}{letters[1:]}, "
        assert trees.alike(f" {marks}{letters}, ") == trees.alike(right) == unicodedata.normalize("NFC", right)
    assert trees.alike("\u1fbf\xb7 \u05e9\u05c1\u05b8\u05dc\u05be\u200e\u05dc") == "': \u05e9\u05dc-\u05dc"
    assert trees.alike("\u201ex\u201d \xabmeg\xadállt\xbb") == '"x" "megállt"'


def test_paragraphs_of_a_novel_and_of_numbered_lines(tmp_path: Path) -> None:
    (novel := tmp_path / "a.xml").write_text(
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><p>no</p></teiHeader>'
        '<text n="\u201e\u201d"><body><head>I</head>'
        "<p>One <hi>\u201etwo\u201d</hi></p></body></text></TEI>",
        encoding="utf8",
    )
    assert list(trees.paragraphs_of(novel)) == ["I", 'One "two"']
    (lines := tmp_path / "a.tess").write_text("<x 1> One di-\n<x 2> vided\n", encoding="utf8")
    assert [text.split() for text in trees.paragraphs_of(lines)] == [["One", "divided"]]
