"""Words a second: each network is measured with its own corpus, and ELMo computes anew in each round."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.runs import speed_of_runs
from spacy_elmo.errors import CommandError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline with ELMo and one without, in the place of trained ones."""
    folders = [tmp_path / "training" / name / "seed-0" for name in ("ner/baseline", "alternatives/short_bilm")]
    for folder in folders:
        folder.mkdir(parents=True)
    nlp = spacy.blank("en")
    nlp.to_disk(folders[0] / "model-best")
    nlp.add_pipe("elmo", config={"cache_mb": 64})
    nlp.to_disk(folders[1] / "model-best")
    corpus = tmp_path / "corpus" / "ner" / "test.spacy"
    corpus.parent.mkdir(parents=True)
    DocBin(docs=[spacy.blank("en")("It rains.")]).to_disk(corpus)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_speed(project: Path) -> None:
    speed_of_runs.main("ner/baseline alternatives/short_bilm", rounds=1, threads=1)
    for name in ("ner/baseline", "alternatives/short_bilm"):
        facts = json.loads((project / "results" / name / "speed.json").read_text(encoding="utf-8"))
        assert facts["words_per_second"] > 0
        assert (facts["threads"], facts["rounds"]) == (1, 1)


@pytest.mark.slow
def test_no_cache(project: Path) -> None:
    nlp = speed_of_runs.load(project / "training" / "alternatives" / "short_bilm" / "seed-0" / "model-best")
    assert nlp.get_pipe_config("elmo")["cache_mb"] == 0
    assert nlp("It rains.")._.elmo.shape[0] == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ner/elmo", "train first"),
        ("ner/all", "--networks"),
        ("ner", "--networks"),
        ("", "no networks"),
        ("nothing/elmo", "the task is"),
    ],
)
def test_what_is_not_there(project: Path, name: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        speed_of_runs.main(name)
    assert not (project / "results").exists()
