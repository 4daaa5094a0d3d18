"""The section on biLMs tuned on a task's text: figures against those worked out by hand, and damaged files."""

import json
from pathlib import Path

import pytest
from run_results import add_run

from scripts.pages.run_files import AllRuns, read_runs
from scripts.pages.tuned_tables import tuned_parts
from scripts.runs.experiments import TASKS
from scripts.runs.tuned_tasks import tuned_result
from spacy_elmo.errors import CommandError


def entities(f_score: float) -> dict[str, float]:
    return {"ents_f": f_score, "ents_p": 0.5, "ents_r": 0.5}


def perplexity(forward: float, backward: float) -> dict[str, object]:
    return {"forward": forward, "backward": backward, "without_unknown": {"forward": 2 * forward}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Broad Twitter's text and SNLI's were read; two networks of the first were trained."""
    facts = {"commit": "abc123", "machine": "a processor", "bilm": "fff"}
    for name in ("ner", "entailment"):
        path = tuned_result(tmp_path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        sides = {"before": perplexity(400.0, 900.0), "after": perplexity(81.0, 100.0)}
        path.write_text(json.dumps({**sides, "tokens": 1_250_000, "minutes": 2.5, **facts}), encoding="utf-8")
    for name, score, dev in (("ner/baseline", 0.6, 0.7), ("ner/elmo", 0.7, 0.8), ("tuned_ner/tuned", 0.76, 0.82)):
        add_run(tmp_path, name, entities(score), dev=entities(dev))
    return tmp_path


def runs_of(project: Path) -> AllRuns:
    return [(task, read_runs(project, task, (0, 1, 2))) for task in TASKS]


def test_figures(project: Path) -> None:
    page = "\n\n".join(tuned_parts(project, (0, 1, 2), runs_of(project)))
    figures = "1.25 | 2.5 | 400.0 | 81.0 | 800.0 | 162.0"
    assert f"| Entities, Broad Twitter | {figures} |  |  |" in page
    assert f"| Entailment, SNLI | {figures} | 72.1 | 16.8 |" in page
    assert "| Entities, Broad Twitter | F1 | 60.0 | 70.0 | 76.0 | 25.0 % | 40.0 % | 80.0 | 82.0 | 1, 1, 1 |" in page
    assert "commit abc123; a processor; `en_mini` fff." in page
    assert "SST-5 |" not in page  # its text was not read
    assert "Not measured when this page was written: Entities, WNUT-17; Entities, Worldwide Newswire; Tags" in page
    assert "Scores of the test part in %, means over the runs (commit abc123; a processor, 2 cores), and" in page
    assert "Whether" not in page  # there is one run of each


def test_several_runs(project: Path) -> None:
    """Deviations of 1 point, and means that are 1 point apart: which 2.78 * sqrt(2 / 3) = 2.27 points would tell."""
    for name, mean in (("ner/elmo", 0.70), ("tuned_ner/tuned", 0.71)):
        for seed in range(3):
            add_run(project, name, entities(mean + (seed - 1) / 100), seed)
    page = "\n\n".join(tuned_parts(project, (0, 1, 2), runs_of(project)))
    line = "Whether [x; ELMo] and [x; tuned] differ on the test part by more than seeds make likely"
    assert f"{line} (Student's t-test, 5 %): no for Entities, Broad Twitter." in page


def test_perplexities_alone(project: Path) -> None:
    (project / "results/tuned_ner/tuned/seed-0.json").unlink()
    page = "\n\n".join(tuned_parts(project, (0, 1, 2), runs_of(project)))
    assert "| Entailment, SNLI | 1.25 |" in page
    assert "error cut" not in page


def test_nothing_was_tuned(tmp_path: Path) -> None:
    add_run(tmp_path, "ner/elmo", entities(0.7))
    assert tuned_parts(tmp_path, (0,), runs_of(tmp_path)) == []


def test_damaged_files(project: Path) -> None:
    tuned_result(project, "ner").write_text('{"before": {}}', encoding="utf-8")
    with pytest.raises(CommandError, match=r"ner\.json: can't be used \(KeyError.*run it again"):
        tuned_parts(project, (0,), runs_of(project))
