"""Paragraphs that a text contains are found, however it was split into words, and scored apart."""

import json
from pathlib import Path

import pytest
import spacy
from run_results import add_run
from spacy.tokens import DocBin
from spacy.training import Example

from scripts.pages.read_tables import read_parts
from scripts.pages.run_files import read_runs
from scripts.runs.experiments import TASKS, folder_of
from scripts.runs.read_paragraphs import fragments, main, read_ones, read_paragraphs_of
from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.answers import make_question

READ = "The cat, which nobody knew, sat on the old mat for a long time. It slept."
NEW = "A dog ran through the wide park on every morning of that week. It barked."
ANSWERS = next(task for task in TASKS if task.name == "answers")


def test_fragments() -> None:
    assert list(fragments("A b-c, d e f g h!")) == ["a b c d e f g h"]
    assert list(fragments("a b c d e f g h i"))[1] == "b c d e f g h i"
    assert list(fragments("a b c")) == []


def test_what_was_read(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(
        "It rained .\nThe cat , which nobody knew , sat on the old mat for a long time .\n", encoding="utf8"
    )
    assert read_ones([READ, NEW, "Too short."], [text]) == {READ}
    other = tmp_path / "other.txt"
    other.write_text("a dog ran through the wide park on a sunday\n", encoding="utf8")  # 1 of its 7 fragments
    assert read_ones([READ, NEW], [text, other]) == {READ, NEW}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test part of three questions, and a run of both networks: the same pipeline."""
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("answers")
    asked = [("Where did it sit?", READ, "mat"), ("Who sat?", READ, "cat"), ("Who ran?", NEW, "dog")]
    docs = [make_question(nlp, question, text, [(text.index(answer), answer)]) for question, text, answer in asked]
    Path("corpus/answers").mkdir(parents=True)
    DocBin(docs=docs).to_disk("corpus/answers/test.spacy")
    nlp.initialize(lambda: [Example(make_question(nlp, asked[0][0], READ), docs[0])])
    for network in ("baseline", "elmo"):
        folder = folder_of(Path(), "answers", network, 0)
        folder.mkdir(parents=True)
        nlp.to_disk(folder / "model-best")
        run = {"fingerprint": network, "seconds": 1.0, "commit": "", "machine": "", "dev": {}}
        (folder / "run.json").write_text(json.dumps(run))
    Path("text.txt").write_text(READ, encoding="utf8")
    return tmp_path


def test_scores(project: Path) -> None:
    main([Path("text.txt")], seeds="0")
    record = json.loads(read_paragraphs_of(project).read_text(encoding="utf-8"))
    assert record["command"].endswith("read_paragraphs text.txt --networks 'baseline elmo' --seeds 0")
    result = record["result"]
    assert result["runs"] == {"baseline": ["baseline"], "elmo": ["elmo"]}
    assert (result["paragraphs"], result["read"]) == (2, 1)
    assert result["questions"] == {"read": 2, "others": 1}
    for part, docs in (("read", slice(0, 2)), ("others", slice(2, 3))):
        nlp = spacy.load("training/answers/elmo/seed-0/model-best")
        golds = list(DocBin().from_disk("corpus/answers/test.spacy").get_docs(nlp.vocab))[docs]
        examples = [
            Example(make_question(nlp, gold.spans["question"][0].text, gold.spans["context"][0].text), gold)
            for gold in golds
        ]
        (found,) = result["scores"]["elmo"][part]
        assert found["answers_f1"] == pytest.approx(nlp.evaluate(examples)["answers_f1"])


def test_table(tmp_path: Path) -> None:
    path = read_paragraphs_of(tmp_path)
    path.parent.mkdir(parents=True)
    scores = {"read": [{"answers_f1": 0.5}, {"answers_f1": 0.7}], "others": [{"answers_f1": 0.2}, {"answers_f1": 0.4}]}
    better = {"read": [{"answers_f1": 0.7}], "others": [{"answers_f1": 0.65}]}
    result = {"paragraphs": 9, "read": 4, "questions": {"read": 1234, "others": 7}}
    result["scores"] = {"baseline": scores, "elmo": better}
    result["runs"] = {"baseline": ["answers/baseline/0", "answers/baseline/1"], "elmo": ["answers/elmo/0"]}
    for network, count in (("baseline", 2), ("elmo", 1)):
        for seed in range(count):
            add_run(tmp_path, f"answers/{network}", {"answers_f1": 0.5, "answers_em": 0.5}, seed)
    runs = read_runs(tmp_path, ANSWERS, (0, 1))
    record = {"command": "a command", "commit": "abc123", "machine": "a", "minutes": 2.4, "result": result}
    path.write_text(json.dumps(record), encoding="utf-8")
    text, rows = read_parts(tmp_path, ANSWERS, runs)
    assert text.startswith("Of the 9 paragraphs of the test part, `en_mini` has read 4,")
    assert "| that it has read | 1,234 | 60.0 | 70.0 | 25.0 % |" in rows
    assert "| that it has not read | 7 | 30.0 | 65.0 | 50.0 % |" in rows
    assert read_parts(tmp_path, TASKS[0], runs) == []
    path.write_text(json.dumps(record | {"result": result | {"questions": {"read": 0, "others": 7}}}))
    assert "that it has read" not in read_parts(tmp_path, ANSWERS, runs)[1]
    assert "| 20.0 | 65.0 |" in read_parts(tmp_path, ANSWERS, read_runs(tmp_path, ANSWERS, (0,)))[1]
    add_run(tmp_path, "answers/elmo", {"answers_f1": 0.5, "answers_em": 0.5}, fingerprint="another")
    (note,) = read_parts(tmp_path, ANSWERS, read_runs(tmp_path, ANSWERS, (0, 1)))
    assert "is of other runs" in note
    path.write_text("{}")
    with pytest.raises(CommandError, match=r"answers\.json: can't be used.*run it again"):
        read_parts(tmp_path, ANSWERS, runs)


def test_what_is_missing(project: Path) -> None:
    with pytest.raises(CommandError, match="seed-1"):
        main([Path("text.txt")])
    Path("corpus/answers/test.spacy").unlink()
    with pytest.raises(CommandError, match="no such file"):
        main([Path("text.txt")], seeds="0")
    assert not (project / "results").exists()
