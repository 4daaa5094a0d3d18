"""What the tables of the page share: anchors, and which networks differ by more than seeds make likely."""

from pathlib import Path

import pytest
from run_results import add_run

from scripts.pages.results_tables import anchor_of, apart_line
from scripts.pages.run_files import read_runs
from scripts.runs.experiments import TASKS

ELMO, MIDI = "[x; ELMo]", "[x; ELMo] with en_midi"


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


def test_differences(tmp_path: Path) -> None:
    """Deviations of 1 and three runs each: means must differ by 2.78 * sqrt(2 / 3), which is 2.27."""
    means = {"ner": (60, 62.2), "ner_wnut17": (60, 62.3), "ner_newswire": (60, 70)}
    tasks = [task for task in TASKS if task.name in means]
    for task in tasks:
        for network, mean in zip(("elmo", "midi"), means[task.name]):
            for seed in range(1 if task.name == "ner_newswire" else 3):
                f1 = (mean + seed - 1) / 100
                scores = {"ents_f": f1, "ents_p": 0.5, "ents_r": 0.5}
                add_run(tmp_path, f"{task.name}/{network}", scores, seed)
    all_runs = [(task, read_runs(tmp_path, task, (0, 1, 2))) for task in tasks]
    assert apart_line(all_runs, "elmo", "midi") == (
        f"{ELMO} and {MIDI} differ by more than seeds make likely (Student's t-test, 5 %) on Entities, WNUT-17. "
        "They do not on Entities, Broad Twitter. There are too few runs to tell on Entities, Worldwide Newswire."
    )
    assert apart_line(all_runs[:1], "elmo", "midi").startswith(f"{ELMO} and {MIDI} differ by")
    assert "on no task." in apart_line(all_runs[:1], "elmo", "midi")
    assert apart_line(all_runs[2:], "elmo", "midi") == ""
