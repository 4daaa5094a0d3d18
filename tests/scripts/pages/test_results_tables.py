"""What the tables of the page share: anchors, and which networks differ by more than seeds make likely."""

from pathlib import Path

import pytest
from run_results import add_run

from scripts.pages.results_tables import anchor_of, apart_line, ends_line, seeds_lines, table
from scripts.pages.run_files import read_runs
from scripts.runs.experiments import TASKS


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("How soon", "how-soon"),
        ("Tags, morphology and dependencies, UD English EWT", "tags-morphology-and-dependencies-ud-english-ewt"),
        ("Answers, XQuAD (English)", "answers-xquad-english"),
        ("Entities, WNUT-17", "entities-wnut-17"),
    ],
)
def test_anchors(title: str, anchor: str) -> None:
    assert anchor_of(title) == anchor


@pytest.mark.parametrize("row", [["a"], ["a", "b", "c"], ["a", "b|c"], ["a", "b\n\n# c"]])
def test_rows_that_break_a_table(row: list[str]) -> None:
    with pytest.raises(ValueError, match=r"a row has|a text has"):
        table(["x", "y"], [["1", "2\\|3"], row])


def test_differences() -> None:
    """Deviations of 1 and three runs each: means must differ by 2.78 * sqrt(2 / 3), which is 2.27."""
    one = [0.59, 0.60, 0.61]
    pairs = [("a, b", one, [0.612, 0.622, 0.632]), ("c", one, [0.613, 0.623, 0.633]), ("d", [0.6], [0.7])]
    assert apart_line("two differ", pairs) == (
        "Whether two differ by more than seeds make likely (Student's t-test, 5 %): yes for c. No for a, b. There are "
        "too few runs to tell for d."
    )
    assert apart_line("two differ", pairs[:1]).endswith("(Student's t-test, 5 %): no for a, b.")
    assert apart_line("two differ", pairs[2:]) == ""


def test_networks_that_differ(tmp_path: Path) -> None:
    for network, f1 in (("baseline", 0.60), ("elmo", 0.70), ("random", 0.601)):
        for seed in range(3):
            scores = {"ents_f": f1 + seed / 1000, "ents_p": 0.5, "ents_r": 0.5}
            add_run(tmp_path, f"ner/{network}", scores, seed)
    (line,) = seeds_lines(TASKS[0], read_runs(tmp_path, TASKS[0], (0, 1, 2)))
    assert "Whether two networks differ in F1 by more" in line
    random = "[x; ELMo] and [x; biLM with random weights]"
    assert line.endswith(f"yes for [x; ELMo] and x alone; {random}.")


def test_runs_that_might_gain(tmp_path: Path) -> None:
    curves = {"baseline": [(0, 0.1), (10, 0.5), (20, 0.4)], "elmo": [(0, 0.1), (10, 0.5), (20, 0.6)]}
    for network, curve in curves.items():
        add_run(tmp_path, f"ner/{network}", {"ents_f": 0.5, "ents_p": 0.5, "ents_r": 0.5}, curve=curve)
    line = ends_line(read_runs(tmp_path, TASKS[0], (0,)))
    assert line == (
        "At the last evaluation, 1 of 1 runs of [x; ELMo] had their best score: they might gain by longer training."
    )
    assert ends_line(read_runs(tmp_path, TASKS[1], (0,))) == ""
