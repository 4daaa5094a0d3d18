"""Which runs are scored: those that have no result, or the result of another training."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from scripts.runs import evaluate_runs
from scripts.runs.evaluate_runs import facts_of_training, load_run, main, require_measures
from scripts.runs.experiments import TASKS
from spacy_elmo.errors import CommandError

RUN = {
    "fingerprint": "abc",
    "seconds": 150.0,
    "gpu_id": -1,
    "commit": "1234567-dirty",
    "machine": "a processor, 2 cores",
    "dev": {"ents_f": 0.5, "ner_loss": 12.5, "per_type": {}},
}


@pytest.fixture
def scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fingerprints of the runs that were scored. The scores are made up."""
    runs: list[str] = []

    def measure(task: object, folder: Path, run: dict[str, Any]) -> dict[str, Any]:
        runs.append(run["fingerprint"])
        return {**facts_of_training(run), "tests": {"test": {"ents_f": 0.4}}}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluate_runs, "measure", measure)
    return runs


def write_run(**changed: object) -> None:
    path = Path("training/ner/elmo/seed-0/run.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RUN | changed))


def test_a_run_is_scored_once(scored: list[str]) -> None:
    write_run()
    main("ner")
    main("ner")
    assert scored == ["abc"]
    result = json.loads(Path("results/ner/elmo/seed-0.json").read_text())
    assert (result["minutes"], result["dev"]) == (2.5, {"ents_f": 0.5, "ner_loss": 12.5})


@pytest.mark.parametrize(
    "changed", [{"fingerprint": "abd"}, {"dev": {"ents_f": 0.5, "ner_loss": 12.6}}, {"seconds": 180.0}], ids=str
)
def test_a_run_that_was_trained_anew_is_scored_anew(changed: dict[str, object], scored: list[str]) -> None:
    """Also with the same settings, as in a clone that has the results of others."""
    write_run()
    main("ner")
    write_run(**changed)
    main("ner")
    assert len(scored) == 2
    expected = facts_of_training(RUN | changed)
    result = json.loads(Path("results/ner/elmo/seed-0.json").read_text())
    assert {name: result[name] for name in expected} == expected


def test_another_test_part(scored: list[str]) -> None:
    """What was scored on is a part of the result, unless it was not recorded."""
    write_run()
    Path("corpus/ner").mkdir(parents=True)
    Path("corpus/ner/test.spacy").write_bytes(b"a")
    main("ner")
    result = Path("results/ner/elmo/seed-0.json")
    recorded = json.loads(result.read_text()) | {"test_files": {"test": hashlib.md5(b"a").hexdigest()}}
    result.write_text(json.dumps(recorded))
    main("ner")
    assert len(scored) == 1
    Path("corpus/ner/test.spacy").write_bytes(b"b")
    main("ner")
    assert len(scored) == 2


def test_a_damaged_result_is_made_again(scored: list[str]) -> None:
    write_run()
    main("ner")
    Path("results/ner/elmo/seed-0.json").write_text("{")
    main("ner")
    assert len(scored) == 2


def test_nothing_was_trained(scored: list[str]) -> None:
    with pytest.raises(CommandError, match="train first"):
        main("ner")
    assert not scored


def test_a_test_part_without_the_annotations_of_the_task() -> None:
    with pytest.raises(CommandError, match=r"test\.spacy: its docs give no F1, recall"):
        require_measures(TASKS[0], {"speed": 1.0, "ents_p": 0.5}, Path("corpus/test.spacy"))
    scores = dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.5)
    assert require_measures(TASKS[0], scores, Path("corpus/test.spacy")) == scores


def test_a_run_without_a_pipeline(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"model-best: can't be used .* train again"):
        load_run(tmp_path)
