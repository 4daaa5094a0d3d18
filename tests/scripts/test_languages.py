"""African languages: what is left out of a text, what its words are, and what a training records."""

import json
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
import spacy
from commands import run
from spacy.tokens import DocBin, Span
from spacy.vectors import Vectors
from spacy.vocab import Vocab

from scripts import assets
from scripts.languages import compare, texts

SMALL = "--bilm.lstm.dim 16 --bilm.lstm.projection_dim 8 --bilm.char_cnn.filters [[1,4],[2,8]]"
COMMANDS = ("init-pretrain-config", "pretrain")
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


@pytest.mark.slow
def test_bilms_and_pipelines_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, docs = spacy.blank("xx"), []  # E150: a pipeline takes vectors of its own language alone
    for text in ("Obama alikuja leo", "Leo Obama alisema"):
        doc = nlp(text)
        doc.set_ents([Span(doc, i, i + 1, "PER") for i in range(3) if doc[i].text == "Obama"])
        docs.append(doc)
    (tmp_path / "aaa").mkdir()
    (tmp_path / "text").mkdir()
    for part in texts.PARTS:
        DocBin(docs=docs).to_disk(tmp_path / f"aaa/{part}.spacy")
    for name in ("all.txt", "text/aaa.txt"):
        (tmp_path / name).write_text("".join(f"{doc.text}\n" for doc in docs * 50), encoding="utf-8")
    nlp.vocab.vectors = Vectors(data=np.ones((1, 2), "f"), keys=["Obama"])
    commands: list[str] = []

    def run_elmo(*arguments: str) -> None:
        commands.append(f"{arguments[0]} {Path(arguments[1]).stem}")
        small = SMALL.split() if arguments[0] == "pretrain" and "tuned" not in arguments[1] else []
        run("elmo", *arguments, *small)

    monkeypatch.setattr(compare, "run_elmo", run_elmo)
    monkeypatch.setattr(
        compare, "train_floret", lambda text, folder, lang: nlp.to_disk(folder if lang == nlp.lang else "")
    )
    monkeypatch.setattr(compare, "GOLD", compare.GOLD | {"training.max_steps": 20, "training.eval_frequency": 20})
    out = tmp_path / "out"
    for _ in range(2):
        compare.main(tmp_path, out, ["aaa"], seeds=1, tokens=2000)
    assert commands == [f"{command} {name}" for name in ("all", "tuned_aaa", "own_aaa") for command in COMMANDS]
    metrics = [json.loads(line) for line in (out / "all/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert 1600 < metrics[-1]["tokens"] <= 2000
    assert 'init = "' + str(out / "all/model-best") in (out / "tuned_aaa.cfg").read_text(encoding="utf-8")
    records = [json.loads(line) for line in (out / "entities.jsonl").read_text(encoding="utf-8").splitlines()]
    networks = ["x", "x with floret"]
    networks += [f"[{x}; {name}]" for name in ("one for all", "tuned", "own") for x in ("x", "x with floret")]
    assert [(one["network"], one["seed"]) for one in records] == [(name, 0) for name in networks]
    for record in records:
        assert record["dev"] == record["test"] == record["types"]["PER"] == 100
    sizes = {one["network"]: one["megabytes"] for one in records}
    assert sizes["x"] < sizes["[x; own]"] < sizes["[x with floret; own]"]
    assert not (out / "training").exists()
