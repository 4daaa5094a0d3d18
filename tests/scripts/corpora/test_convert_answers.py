"""Questions in several layouts become docs with right answers; a corpus is divided by paragraphs."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.corpora.convert_answers import Part, Question, choose, main, place_of, read_questions
from spacy_elmo.errors import CorpusError

CONTEXT = "In 1990 Anna went to Bonn. Bert went to Rome in 199."
ITEM = {"question": " Where did Bert go? ", "answer": "Rome"}
SQUAD = {
    "question": "Where?",
    "answers": [{"answer_start": 21, "text": "Bonn"}, {"answer_start": 18, "text": "to Bonn"}],
}
LAYOUTS = {
    "squad.json": {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [SQUAD]}]}]},
    "paragraphs.json": [{"context": CONTEXT, "qas": [ITEM]}],
    "questions.json": [{"context": CONTEXT, **ITEM}],
    "lines.jsonl": {"context": CONTEXT, "questions": [ITEM]},
}


def write(folder: Path, name: str, content: Any = None) -> Path:
    path = folder / name
    path.write_text(json.dumps(LAYOUTS[name] if content is None else content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, tmp_path: Path) -> None:
    (one,) = read_questions(write(tmp_path, name))
    if name == "squad.json":
        assert one == Question(CONTEXT, "Where?", ((21, "Bonn"), (18, "to Bonn")))
    else:
        assert one == Question(CONTEXT, "Where did Bert go?", ((None, "Rome"),))


def test_docs(tmp_path: Path) -> None:
    target = tmp_path / "corpus" / "x.spacy"
    main(target, [write(tmp_path, "squad.json"), write(tmp_path, "lines.jsonl")])
    first, second = DocBin().from_disk(target).get_docs(spacy.blank("en").vocab)
    assert [span.text for span in first.spans["answer"]] == ["Bonn", "to Bonn"]
    assert second.text == f"Where did Bert go?\n{CONTEXT}"
    assert [span.text for span in second.spans["question"]] == ["Where did Bert go?"]
    assert [span.text for span in second.spans["context"]] == [CONTEXT]
    assert second.spans["answer"].attrs["texts"] == ["Rome"]


@pytest.mark.parametrize(
    ("answer", "question", "context", "place"),
    [
        ("199", "When?", CONTEXT, CONTEXT.index("199.")),  # not in 1990
        ("went", "What did Bert do?", CONTEXT, CONTEXT.rindex("went")),
        ("went", "What did Anna do?", CONTEXT, CONTEXT.index("went")),
        ("went", "What?", CONTEXT, CONTEXT.index("went")),
        ("aa", "What?", "aaa", 0),
        ("Paris", "Where?", CONTEXT, -1),
        ("", "Where?", CONTEXT, -1),
    ],
)
def test_where_an_answer_stands(answer: str, question: str, context: str, place: int) -> None:
    assert place_of(answer, Question(context, question, ((None, answer),))) == place


def test_parts() -> None:
    contexts = [f"Text  {i}" for i in range(40)]
    questions = [Question(context, f"{i}?", ((None, "Text"),)) for context in contexts for i in (0, 1)]
    twice = Question(contexts[3], "0?", ((None, "3"),))  # asked before
    left_out = [Question("text 7 ", "", ())]
    parts = {part: choose([*questions, twice], part, left_out) for part in Part}
    dev, train = ({one.context for one in parts[part]} for part in (Part.dev, Part.train))
    digests = {context: hashlib.md5(" ".join(context.lower().split()).encode()).hexdigest() for context in contexts}
    del digests[contexts[7]]
    assert dev == set(sorted(digests, key=digests.__getitem__)[:3])
    assert train == set(digests) - dev
    assert [len(part) for part in (parts[Part.dev], parts[Part.train])] == [6, 72]
    assert twice not in parts[Part.dev] + parts[Part.train]
    assert choose([*questions, twice], None, left_out) == [
        one for one in [*questions, twice] if one.context != "Text  7"
    ]


@pytest.mark.parametrize(
    "content", [[{"question": "?"}], {"data": 1}, [1], [{"context": "", "qas": [{"question": "?"}]}]]
)
def test_bad_files(content: Any, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"bad\.json: not a file of questions"):
        main(tmp_path / "x.spacy", [write(tmp_path, "bad.json", content)])
    assert not (tmp_path / "x.spacy").exists()
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(CorpusError, match="not a file of questions"):
        main(tmp_path / "x.spacy", [tmp_path / "bad.json"])
