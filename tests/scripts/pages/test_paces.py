"""How soon ELMo learns: figures against those worked out by hand."""

from pathlib import Path

from run_results import add_run

from scripts.pages.paces import pace_of, pace_parts, updates_until
from scripts.pages.run_files import read_runs
from scripts.runs.experiments import TASKS


def entities(f_score: float) -> dict[str, float]:
    return {"ents_f": f_score, "ents_p": 0.5, "ents_r": 0.5}


def test_how_soon(tmp_path: Path) -> None:
    assert updates_until([(0, 0.1), (100, 0.5), (200, 0.6)], 0.5) == 100
    assert updates_until([(0, 0.1)], 0.5) is None
    curves = {
        "baseline": [[(0, 0.0), (100, 0.5), (200, 0.6), (300, 0.6)], [(0, 0.0), (400, 0.7)], [(0, 0.9)]],
        "elmo": [[(0, 0.0), (100, 0.7)], [(0, 0.0), (100, 0.6), (300, 0.7)], [(0, 0.8)]],  # the last never reaches 0.9
    }
    for network, of_seeds in curves.items():
        for seed, curve in enumerate(of_seeds):
            add_run(tmp_path, f"ner/{network}", entities(0.5), seed, curve=curve)
    add_run(tmp_path, "ner_wnut17/elmo", entities(0.5))
    task = TASKS[0]
    of_tasks = [(one, read_runs(tmp_path, one, (0, 1, 2))) for one in (task, TASKS[1])]
    heading, _, table, others = pace_parts(of_tasks)
    assert others == "Not recorded for Entities, WNUT-17."
    assert heading == "## How soon"
    assert table.splitlines()[-1] == f"| {task.title} | 300 | 200 | 100 | 2 of 3 |"  # (200 + 400) / 2, (100 + 300) / 2


def test_runs_without_curves_have_no_pace(tmp_path: Path) -> None:
    add_run(tmp_path, "ner/baseline", entities(0.5))
    add_run(tmp_path, "ner/elmo", entities(0.5))
    assert pace_parts([(TASKS[0], read_runs(tmp_path, TASKS[0], (0,)))]) == []


def test_a_network_that_never_improved_has_no_pace(tmp_path: Path) -> None:
    """spacy train scores the networks once before the first update."""
    for network in ("baseline", "elmo"):
        add_run(tmp_path, f"ner/{network}", entities(0.0), curve=[(0, 0.0), (10, 0.0)])
    assert pace_of(read_runs(tmp_path, TASKS[0], (0,))) is None
