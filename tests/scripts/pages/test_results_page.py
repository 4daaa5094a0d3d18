"""docs/results.md: its figures against those worked out by hand, and what it says if runs are missing."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
from run_results import add_run

from scripts.pages.results_page import write_results
from scripts.runs.experiments import TASKS
from scripts.runs.facts_of_runs import bilm_mark
from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.coreference.scorer import score_coreference

ROOT = Path(__file__).parents[3]
BASELINE = (0.60, 0.62, 0.64)  # mean 62, deviation 2
ELMO = (0.70, 0.70, 0.73)  # mean 71, deviation sqrt(3): the cut is 1 - 29 / 38 = 23.7 %
MIX = {"component": "tagger", "place": "input", "source": "*", "w": [0.0, 0.0, 0.0]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """All baselines and ELMo runs of Broad Twitter, but two of the random ones, and one run of SST-5."""
    for name, values, minutes in (("baseline", BASELINE, 1.0), ("elmo", ELMO, 1.5), ("random", (0.65,), 0.5)):
        for seed, value in enumerate(values):
            scores = {"ents_f": value, "ents_p": 0.5, "ents_r": 0.5, "speed": 1.0}
            first = (0.1, 0.2, 0.3)[seed]  # of the weights
            mix = MIX | {"weights": [first, 0.3, 0.7 - first], "gamma": 1.0 + seed}
            add_run(tmp_path, f"ner/{name}", scores, seed, minutes=minutes * (seed + 1), mixes=[mix] * (name == "elmo"))
    add_run(tmp_path, "textcat/elmo", {"cats_micro_f": 0.5})
    for name, speed in (("baseline", 5000), ("elmo", 2000)):
        (tmp_path / "results" / "ner" / name / "speed.json").write_text(
            json.dumps({"words_per_second": speed, "commit": "abc123", "machine": "a processor"})
        )
    return tmp_path


@pytest.mark.slow
def test_figures(project: Path) -> None:
    output = project / "docs" / "results.md"
    entities = dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.6)
    add_run(project, "ablations_newswire/elmo_3", {}, tests={"dev": entities})
    add_run(project, "ner_newswire/baseline", entities, dev=entities)
    missing = write_results(project, output, (0, 1, 2))
    page = output.read_text(encoding="utf-8")
    assert "| Entities, Broad Twitter | F1 | 62.0 | 71.0 | 23.7 % | yes |  | 21.0 %, CoNLL-2003 | 3 |" in page
    assert "- ELMo removes 24 % of the errors on average, from 24 % (Entities, Broad Twitter) to" in page
    assert "a biLM of random weights leaves 8 % fewer errors on average over 1 task, from" in page
    assert "as a share of that of x alone: 40 % (Entities, Broad Twitter); two threads" in page
    share = "with 3 % of that of Entities, Worldwide Newswire, [x; ELMo] has 60.0, and x alone with all of it 60.0 (the"
    assert share in page
    assert '`python -m spacy project run ner . --vars.networks "baseline elmo random"`; a processor' in page
    assert "[Entities, Broad Twitter](#entities-broad-twitter); [Entities, WNUT-17]" in page
    assert "| F1 | x alone | 62.00 ± 2.00 (60.00 to 64.00) |  | 3 |" in page
    assert f"| F1 | [x; ELMo] | 71.00 ± {math.sqrt(3):.2f} (70.00 to 73.00) | 23.7 % | 3 |" in page
    assert "| F1 | [x; biLM with random weights] | 65.00 | 7.9 % | 1 |" in page
    assert "| precision | [x; ELMo] | 50.00 ± 0.00 (50.00 to 50.00) | 0.0 % | 3 |" in page
    assert "| [x; ELMo] | 2 to 4 | 12,345 | 6.8 | 1,000 to 3,000 | abc123 |" in page
    assert "| tagger | input | 0.200, 0.300, 0.500 | 2.000 |" in page  # means over the runs
    assert "| accuracy | [x; ELMo] | 50.00 |  | 1 |" in page  # no baseline to compare with
    assert "`results/textcat/baseline/seed-0.json`" in page
    assert project / "results/ner_wnut17/baseline/seed-0.json" in missing
    random = [path.name for path in missing if "random" in path.parts]
    assert random == ["seed-1.json", "seed-2.json"]  # some runs of it are there
    assert not any("ner" in path.parts and "elmo" in path.parts for path in missing)
    pictures = {path.name for path in output.parent.glob("*.png")}
    names = ("summary", "ner", "weights", "ablations_newswire")
    assert pictures == {f"results_{name}.png" for name in names}
    assert all(f"({name})" in page for name in pictures)


@pytest.mark.slow
def test_weights_that_were_trained_on(project: Path) -> None:
    output, scores = project / "docs" / "results.md", dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.6)
    add_run(project, "ner_wnut17/elmo", scores, bilm="0123456789ab")
    write_results(project, output, (0, 1, 2))
    page = output.read_text(encoding="utf-8")
    assert "- [x; ELMo] had earlier weights of `en_mini` on Entities, WNUT-17." in page
    assert "`; a processor, 2 cores; `en_mini` 0123456789ab." in page
    assert f"those of the package have {bilm_mark()}." in page
    for task in ("ner", "ner_wnut17"):
        add_run(project, f"{task}/vectors_elmo", scores, bilm="0123456789ab")
    write_results(project, output, (0, 1, 2))
    line = "- [x with static vectors; ELMo] had earlier weights of `en_mini` on all its 2 tasks."
    assert line in output.read_text(encoding="utf-8")
    for task in ("ner", "ner_wnut17"):
        add_run(project, f"{task}/vectors_elmo", scores, bilm=bilm_mark())
    add_run(project, "ner_wnut17/elmo", scores, bilm=bilm_mark())
    write_results(project, output, (0, 1, 2))
    assert "had earlier weights" not in output.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_larger_bilm(project: Path) -> None:
    """28 / 38 of the errors of x alone are left with it, 29 / 38 with en_mini."""
    add_run(project, "ner/midi", {"ents_f": 0.72, "ents_p": 0.5, "ents_r": 0.5, "speed": 1.0})
    write_results(project, project / "docs/results.md", (0, 1, 2))
    page = (project / "docs/results.md").read_text(encoding="utf-8")
    assert "The same measures with the larger biLM" in page
    assert "| Entities, Broad Twitter | 62.0 | 71.0 | 72.0 | 23.7 % | 26.3 % | 3, 3, 1 |" in page


@pytest.mark.slow
def test_static_vectors(project: Path) -> None:
    """Broad Twitter alone has all four networks: 24 / 38 of the errors of x alone are left with both."""
    for task, measure in (("ner", "ents_f"), ("ner_wnut17", "ents_f")):
        for network, score in (("vectors", 0.67), ("vectors_elmo", 0.76)):
            scores = {measure: score, "ents_p": 0.5, "ents_r": 0.5, "speed": 1.0}
            add_run(project, f"{task}/{network}", scores)
    write_results(project, project / "docs/results.md", (0, 1, 2))
    page = (project / "docs/results.md").read_text(encoding="utf-8")
    cells = "62.0 | 67.0 | 71.0 | 76.0 | 13.2 % | 23.7 % | 36.8 % | 3, 1, 3, 1"
    assert f"| Entities, Broad Twitter | {cells} |" in page
    assert page.count("| 3, 1, 3, 1 |") == 1
    line = "remove 13 % of the errors over 1 task. ELMo removes 27 % of the errors that they leave over 2 tasks, from"
    assert f"- Static vectors (floret) of Wikipedia, in x, {line}" in page
    assert "| Entities, Broad Twitter | F1 | 62.0 | 71.0 | 23.7 % | yes | 27.3 % | 21.0 %, CoNLL-2003 | 3 |" in page
    add_run(project, "ner/vectors", dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.75))
    write_results(project, project / "docs/results.md", (0, 1, 2))
    page = (project / "docs/results.md").read_text(encoding="utf-8")
    assert "They have the higher mean on Entities, Broad Twitter. ELMo removes" in page


@pytest.mark.slow
def test_weights_that_differ(project: Path) -> None:
    """Then vectors with and without ELMo can't be compared."""
    for network, bilm in (("vectors", ""), ("vectors_elmo", "0123456789ab")):
        add_run(project, f"ner/{network}", dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.7), bilm=bilm)
    for seed, value in enumerate(ELMO):
        add_run(project, "ner/elmo", dict.fromkeys(("ents_f", "ents_p", "ents_r"), value), seed, bilm="ba9876543210")
    write_results(project, project / "docs/results.md", (0, 1, 2))
    page = (project / "docs/results.md").read_text(encoding="utf-8")
    assert "| Entities, Broad Twitter † | 62.0 | 70.0 | 71.0 | 70.0 |" in page
    assert "†: the two networks with ELMo had different weights" in page
    assert "in x, remove 21 % of the errors over 1 task.\n" in page  # of both, nothing


@pytest.mark.slow
def test_random_weights_that_change_nothing(project: Path) -> None:
    for network, score in (("baseline", 0.500), ("elmo", 0.6), ("random", 0.501)):
        add_run(project, f"ner_wnut17/{network}", {"ents_f": score, "ents_p": 0.5, "ents_r": 0.5})
    write_results(project, project / "docs/results.md", (0, 1, 2))
    page = (project / "docs/results.md").read_text(encoding="utf-8")
    ends = "from as many errors (Entities, WNUT-17) to 8 % fewer errors (Entities, Broad Twitter)."
    assert f"a biLM of random weights leaves 4 % fewer errors on average over 2 tasks, {ends}" in page


@pytest.mark.slow
def test_the_published_results_of_one_seed(tmp_path: Path) -> None:
    """`project run ner . --vars.seeds 0` ends with this page."""
    write_results(ROOT, tmp_path / "results.md", (0,))
    assert "`en_mini` has read 110" in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_no_runs(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="train and evaluate first"):
        write_results(tmp_path, tmp_path / "docs/results.md", (0,))
    assert not (tmp_path / "docs").exists()


def test_a_copied_result(project: Path) -> None:
    folder = project / "results" / "ner"
    shutil.copy(folder / "elmo" / "seed-0.json", folder / "baseline" / "seed-1.json")
    with pytest.raises(CommandError, match=r"ner/elmo/seed-0\.json is the result of results/ner/baseline/seed-1\.json"):
        write_results(project, project / "docs/results.md", (0, 1, 2))
    assert not (project / "docs").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"minutes": "x"},
        {"words_per_second": -1},
        {"megabytes": math.inf},
        {"megabytes": 10**400},
        {"commit": 5},
        {"dev": {"ents_f": 93}},
        {"dev": []},
        {"tests": {"test": {"ents_f": True, "ents_p": 0.5, "ents_r": 0.5}}},
        {"tests": {"test": {"ents_f": "0.5", "ents_p": 0.5, "ents_r": 0.5}}},
        {"mixes": [MIX | {"weights": [], "gamma": 1.0}]},
        {"mixes": [MIX | {"weights": [0.5, 0.3, 0.2], "gamma": 1.0, "component": None}]},
    ],
)
def test_impossible_values(project: Path, changed: dict[str, Any]) -> None:
    path = project / "results/ner/elmo/seed-0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(CommandError, match=r"elmo/seed-0\.json.*evaluate again"):
        write_results(project, project / "docs/results.md", (0, 1, 2))


def test_a_text_that_would_break_the_page(project: Path) -> None:
    add_run(project, "roles/elmo", {"roles_f": 0.5, "roles_p": 0.5, "roles_r": 0.5}, commit="a | b\n\n# Heading")
    with pytest.raises(CommandError, match=r"a text has a line end or a \|.*git status results"):
        write_results(project, project / "docs/results.md", (0, 1, 2))
    assert not (project / "docs").exists()


def test_pictures_of_others_stay(project: Path) -> None:
    (project / "docs").mkdir()
    for name in ("results_cat.png", "results_roles.png"):
        (project / "docs" / name).touch()
    write_results(project, project / "docs/results.md", (0, 1, 2))
    assert (project / "docs/results_cat.png").exists()
    assert not (project / "docs/results_roles.png").exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"tests": {"test": {"ents_f": null, "ents_p": 0, "ents_r": 0}}}', "{}", "NaN"]
)
def test_damaged_results(project: Path, text: str) -> None:
    (project / "results/ner/elmo/seed-0.json").write_text(text)
    with pytest.raises(CommandError, match=r"elmo/seed-0\.json.*evaluate again"):
        write_results(project, project / "docs/results.md", (0, 1, 2))
    assert not (project / "docs").exists()


def test_results_that_are_read_last(project: Path) -> None:
    output = project / "docs" / "results.md"
    write_results(project, output, (0, 1, 2))
    before = {path: path.read_bytes() for path in output.parent.iterdir()}
    add_run(project, "ner/elmo", dict.fromkeys(("ents_f", "ents_p", "ents_r"), 0.9))
    (project / "results/bilms").mkdir()
    (project / "results/bilms/bits.json").write_text("{")
    with pytest.raises(CommandError, match=r"bits\.json: can't be used"):
        write_results(project, output, (0, 1, 2))
    assert {path: path.read_bytes() for path in output.parent.iterdir()} == before


def test_measures_are_spacys() -> None:
    keys = {measure.key for task in TASKS for measure in task.measures}
    scored: dict[str, Any] = {}
    spacy.blank("en")  # makes spaCy look for the factories of other packages
    for name in ("ner", "tagger", "morphologizer", "parser", "answers", "entailment", "semantic_roles"):
        scored |= spacy.Language.get_factory_meta(name).default_score_weights
    scored |= score_coreference([])
    assert keys - {"cats_micro_f"} <= scored.keys()
