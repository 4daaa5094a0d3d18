"""The pages that scripts write are those of results/, and their figures agree with sums by hand."""

import math
from pathlib import Path
from statistics import mean, variance
from typing import Any

import pytest

from scripts.bilms.latin import TREEBANKS
from scripts.pages.results_page import LATIN, LATIN_NETWORKS, Runs, apart, entities, latin, main, mixes_line, trees
from scripts.pages.scale_tables import hours, tables
from scripts.runs.experiments import TASKS

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_that_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    main(tmp_path / "results.md", "0 1 2")
    made = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert made == (ROOT / "docs/results.md").read_text(encoding="utf-8"), "python -m scripts.pages.results_page"
    for plot in ("results_summary.png", "results_pretraining.png"):
        assert (tmp_path / plot).stat().st_size > 10_000


def test_latin_without_a_network_that_was_not_trained_on_each_treebank() -> None:
    networks = {"x alone": 0.5, "[x; ELMo]": 0.75}
    keys = [(f"{treebank}/{name}/seed-0", score) for treebank in TREEBANKS for name, score in networks.items()]
    keys.append((f"{next(iter(TREEBANKS))}/{LATIN_NETWORKS[1]}/seed-0", 0.6))
    head, *_, last = latin({key: {"scores": dict.fromkeys(LATIN, score)} for key, score in keys})["latin"].splitlines()
    assert head == "| treebank | x alone | [x; ELMo] | runs of each |"
    assert last.split(" | ")[2] == "50.0, 50.0, 50.0, 50.0, 50.0"


ORIGIN = {"commit": "1234567", "machine": "a machine"}


def test_trees_of_languages_of_which_one_lacks_a_network() -> None:
    text = {"trees": 900, "words": 2_000_000, "bytes": 9_000_000, "tokens": 12_000_000, "minutes": 61.4}
    records: dict[str, Any] = {"hu/text": text, "he/text": text}
    for key, score in (("hu/x alone", 0.5), ("hu/[x; ELMo]", 0.6), ("he/x alone", 0.6), ("he/x with vectors", 0.7)):
        records[f"{key}/seed-0"] = {**ORIGIN, "scores": {"morph_acc": 0.9, "dep_las": score}}
    made = trees(records)
    assert made["trees_source"] == "commit 1234567; a machine"
    *_, hungarian, hebrew, last = made["trees"].splitlines()
    assert hungarian == "| Hungarian | 900 | 2.0 | 4.5 | 12 | 61 | 90.0, 50.0 |  | 90.0, 60.0 |  | 1 |"
    assert hebrew == "| Hebrew | 900 | 2.0 | 4.5 | 12 | 61 | 90.0, 60.0 | 90.0, 70.0 |  |  | 1 |"
    assert last.split(" | ")[-4:-1] == ["25.0 (1)", "20.0 (1)", ""]


def test_entities_of_languages_beside_published_figures() -> None:
    runs = {"swa/x": (88.0, 90.0), "swa/[x; one for all]": (91.0,), "sna/x": (90.0,), "sna/[x; one for all]": (91.0,)}
    records: dict[str, Any] = {"swa/one for all": {"tokens": 17}}
    for key, scores in runs.items():
        for seed, score in enumerate(scores):
            records[f"{key}/seed-{seed}"] = {**ORIGIN, "test": score, "megabytes": 6.6, "minutes": 9.4}
    made = entities(records)
    assert made["entities_source"] == "commit 1234567; a machine"
    head, _, swahili, _, errors, *_ = made["entities"].splitlines()
    assert head.startswith("| language | x | [x; one for all] | multilingual BERT |")
    assert swahili == "| Swahili | 89.0 (2) | 91.0 (1) | 92.1 | 92.2 | 92.5 | 92.5 |"
    assert errors.split(" | ")[2] == "14.1 (2)"  # of 2 / 11 and 1 / 10


def test_figures_of_a_task_by_hand() -> None:
    def run(score: float, curve: list[tuple[int, float]], gamma: float) -> dict[str, object]:
        mix = {"component": "ner", "place": "input", "weights": [gamma / 4, 1 - gamma / 4], "gamma": gamma}
        return {"tests": {"test": {"ents_f": score}}, "curve": curve, "mixes": [mix]}

    records = {
        "baseline/seed-0": run(0.6, [(0, 0.0), (100, 0.5), (200, 0.4)], 1.0),
        "elmo/seed-0": run(0.7, [(0, 0.0), (50, 0.4), (75, 0.6)], 1.0),
        "elmo/seed-1": run(0.8, [], 2.0),
    }
    runs = Runs(TASKS[0], records, (0, 1))
    assert runs.cut() == pytest.approx(0.375)  # 40 % of errors become 25 %
    assert runs.pace() == (100, 75, 100, "1 of 1")
    assert mixes_line(runs) == "Mixes: ner, input: 0.375, 0.625; gamma 1.500."


@pytest.mark.parametrize(("difference", "found"), [(0.022, False), (0.023, True)])
def test_apart(difference: float, found: bool) -> None:
    """Deviations of 1 and three runs each: means must differ by 2.78 * sqrt(2 / 3), which is 2.27."""
    one = [0.59, 0.60, 0.61]
    assert apart(one, [value + difference for value in one]) is found
    assert apart(one, [0.7]) is None


def test_apart_of_unequal_numbers() -> None:
    """The pooled variance weighs each network by its degrees of freedom: 3 runs and 2. Student's t is 3.18."""
    one, other = [0.50, 0.60, 0.70], [0.80, 0.81]
    pooled = (2 * variance(one) + variance(other)) / 3
    to_least = mean(one) + 3.18 * math.sqrt(pooled * (1 / 3 + 1 / 2)) - mean(other)
    assert apart(one, [value + to_least + 1e-6 for value in other]) is True
    assert apart(one, [value + to_least - 1e-6 for value in other]) is False


def test_the_page_on_scale_has_the_tables() -> None:
    page = (ROOT / "docs/scale.md").read_text(encoding="utf8")
    for one in tables():
        assert one in page, "make the tables again: python -m scripts.pages.scale_tables"
    rate = 1 / (2 / 6_009 + 10e-6)  # of a core
    assert hours(1e9, 10, "en_core", "float32", 2062) == (pytest.approx(1e9 / (160 * rate) / 3600), "cores")
    assert hours(1e12, 1000, "en_core", "float32", 1000) == (pytest.approx(1e12 / 1e7 / 3600), "shared storage")
    assert hours(1e9, 1, "en_core", "bfloat16", 10_000) == (pytest.approx(1e9 / 5e4 / 3600), "disk")
