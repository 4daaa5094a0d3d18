"""The parts of docs/results.md on ablations: figures against those worked out by hand."""

from pathlib import Path

import pytest
from run_results import add_run

from scripts.pages.ablation_tables import ablation_parts, least_shares, with_earlier_ablations
from scripts.pages.run_files import read_runs
from scripts.runs.experiments import TASKS
from scripts.runs.facts_of_runs import bilm_mark

SCORES = {
    "ablations_newswire/baseline": 0.70,
    "ablations_newswire/elmo": 0.80,
    "ablations_newswire/top": 0.785,
    "ablations_newswire/output": 0.81,
    "ablations_newswire/baseline_10": 0.30,
    "ablations_newswire/elmo_10": 0.55,
    "ablations_newswire/elmo_1": 0.25,
}


def entities(f_score: float) -> dict[str, float]:
    return {"ents_f": f_score, "ents_p": 0.5, "ents_r": 0.5}


@pytest.mark.slow
def test_ablations(tmp_path: Path) -> None:
    for name, score in SCORES.items():
        add_run(tmp_path, name, {}, tests={"dev": entities(score)})
    parts = ablation_parts(tmp_path, tmp_path / "results.md", (0, 1, 2))
    page = "\n\n".join(parts)
    assert page.startswith("## One change at a time")
    assert "2,000 updates" in page
    assert "| x alone | 70.0 | 50.0 | 50.0 | -10.0 | 7 |" in page
    assert "| [x; ELMo] | 80.0 | 50.0 | 50.0 |  | 7 |" in page
    assert "| the top layer alone, gamma learned | 78.5 | 50.0 | 50.0 | -1.5 | 7 |" in page
    assert "| ELMo at the output alone | 81.0 | 50.0 | 50.0 | +1.0 | 7 |" in page
    assert "| 1 % |  | 25.0 |" in page
    assert "| 10 % | 30.0 | 55.0 |" in page
    assert "| 100 % | 70.0 | 80.0 |" in page
    assert "| 3 %" not in page
    assert "One run of [x; ELMo]: how much another seed changes a score was not measured" in page
    assert (tmp_path / "results_ablations_newswire.png").stat().st_size > 1000
    assert "EWT" not in page  # no runs of it


def test_seeds_of_elmo(tmp_path: Path) -> None:
    """80, 82 and 81 of ELMo: mean 81, deviation 1. A run differs from such a mean by sqrt(1 + 1 / 3) deviations.

    Student's t of 5 % for 2 degrees of freedom is 4.30.
    """
    for name, score in SCORES.items():
        add_run(tmp_path, name, {}, tests={"dev": entities(score)})
    for seed, score in ((1, 0.82), (2, 0.81)):
        add_run(tmp_path, "ablations_newswire/elmo", {}, seed, tests={"dev": entities(score)})
    page = "\n\n".join(ablation_parts(tmp_path, tmp_path / "results.md", (0, 1, 2)))
    assert "| x alone | 70.0 | 50.0 | 50.0 | -11.0 | 7 |" in page
    assert "| [x; ELMo], mean of 3 runs | 81.0 | 50.0 | 50.0 |  | 7 |" in page
    assert "The 3 runs of [x; ELMo] have a deviation of 1.00; that of" in page
    assert "one run differ from their mean by 5.0 or more" in page
    assert "two single runs by 6.1." in page  # sqrt(2) deviations
    assert "Only this network differs from [x; ELMo] by more: x alone." in page
    assert "| 100 % | 70.0 | 81.0 |" in page
    add_run(tmp_path, "ablations_newswire/elmo", {}, 2, tests={"dev": entities(0.81)}, bilm="0123456789ab")
    page = "\n\n".join(ablation_parts(tmp_path, tmp_path / "results.md", (0, 1, 2)))
    assert "| [x; ELMo], mean of 2 runs | 81.0 |" in page  # the third one had other weights


def test_the_least_share(tmp_path: Path) -> None:
    """x alone that is trained to its end counts, which has 0.74 in the mean: more than after 2,000 updates."""
    for name, score in SCORES.items():
        add_run(tmp_path, name, {}, tests={"dev": entities(score)})
    newswire = next(task for task in TASKS if task.name == "ner_newswire")
    assert least_shares(tmp_path, [(newswire, read_runs(tmp_path, newswire, (0, 1)))]) == []
    for seed, score in enumerate((0.72, 0.76)):
        add_run(tmp_path, "ner_newswire/baseline", entities(0.1), seed, dev=entities(score))
        add_run(tmp_path, "ner_newswire/elmo", entities(0.1), seed, dev=entities(0.9))
    all_runs = [(newswire, read_runs(tmp_path, newswire, (0, 1)))]
    (one,) = least_shares(tmp_path, all_runs)
    assert (one.task.name, one.share) == ("ablations_newswire", 100)
    assert (one.elmo, one.alone) == pytest.approx((0.8, 0.74))
    add_run(tmp_path, "ablations_newswire/elmo_10", {}, tests={"dev": entities(0.74)})
    assert least_shares(tmp_path, all_runs)[0].share == 10
    page = "\n".join(ablation_parts(tmp_path, tmp_path / "results.md", (0,), all_runs))
    assert "on the whole part, x alone has 74.0, and [x; ELMo] 90.0 (development part; means" in page


def test_earlier_weights(tmp_path: Path) -> None:
    add_run(tmp_path, "ablations_newswire/elmo", {}, tests={"dev": entities(0.8)}, bilm=bilm_mark())
    assert not with_earlier_ablations(tmp_path)
    add_run(tmp_path, "ablations_newswire/elmo", {}, tests={"dev": entities(0.8)}, bilm="0123456789ab")
    assert with_earlier_ablations(tmp_path)


def test_no_ablations(tmp_path: Path) -> None:
    assert ablation_parts(tmp_path, tmp_path / "results.md", (0, 1, 2)) == []
    assert least_shares(tmp_path, []) == []
