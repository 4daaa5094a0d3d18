"""What a user would take instead: the table against figures worked out by hand, and damaged files."""

import json
from pathlib import Path

import pytest
from run_results import add_run

from scripts.pages.alternatives_tables import alternatives_parts
from spacy_elmo.errors import CommandError


def write(path: Path, **facts: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts), encoding="utf-8")


SOURCE = {"commit": "abc123", "machine": "a processor, 2 cores"}


def entities(f_score: float) -> dict[str, float]:
    return {"ents_f": f_score, "ents_p": 0.5, "ents_r": 0.5}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two runs of x alone, and one of ELMo and of `spacy pretrain`."""
    for name, values in (("ner/baseline", (0.58, 0.62)), ("ner/elmo", (0.7,)), ("alternatives/pretrained", (0.64,))):
        for seed, value in enumerate(values):
            add_run(tmp_path, name, {"ents_f": value, "ents_p": 0.5, "ents_r": 0.5}, seed)
    write(tmp_path / "results" / "embeddings" / "spacy_pretrain.json", minutes=30.4, words=17_400_000, **SOURCE)
    write(tmp_path / "results" / "ner" / "baseline" / "speed.json", words_per_second=12_345, **SOURCE)
    learned = {"bilm": "en_mini", "title": "run 1", "text": "", "command": "", "tokens_before": 0, "averaged": False}
    learned |= {"machine": "EPYC, 2 cores", "minutes": 352.5, "evaluations": [[942_000_000, 64.0]]}
    write(tmp_path / "results" / "pretraining" / "en_mini_1.json", **learned)
    gpu = {"bilm": "en_midi", "machine": "NVIDIA H100", "evaluations": [[450_000_000, 51.0]]}
    write(tmp_path / "results" / "pretraining" / "en_midi.json", **learned | gpu)
    return tmp_path


def test_figures(project: Path, tmp_path: Path) -> None:
    page = "\n".join(alternatives_parts(project, tmp_path / "results.md", (0, 1, 2)))
    assert "| x alone |  |  | 60.00 ± 2.83 (58.00 to 62.00) |  | 6.8 | 12,345 |" in page
    assert (
        "| x initialised by `spacy pretrain` | 30 | 17 | 64.00 | 10.0 % | 6.8 | 12,345 |" in page
    )  # x alone has that speed
    assert "| [x; ELMo] | 705 | 942 | 70.00 | 25.0 % | 6.8 |  |" in page
    assert "The best mean F1 is that of [x; ELMo]. If the score counts, take it." in page
    assert "The embeddings: commit abc123, a processor, 2 cores. Words per second: commit abc123, a proc" in page
    assert "| x with static vectors |" not in page  # it was not run
    assert (tmp_path / "results_alternatives.png").stat().st_size > 1000


def test_the_larger_bilm(project: Path, tmp_path: Path) -> None:
    """It has no minutes of a core."""
    add_run(project, "ner/midi", entities(0.75))
    page = "\n".join(alternatives_parts(project, tmp_path / "results.md", (0,)))
    assert "| [x; ELMo] with en_midi |  | 450 | 75.00 | 40.5 % | 6.8 |  |" in page
    assert "The best mean F1 is that of [x; ELMo] with en_midi." in page


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        # the standard error of the difference is sqrt(0.0002 / 2 + 0.0002 / 2) = 0.014, Student's t for it is 4.30
        (
            (0.74, 0.76),
            "x with static vectors is 5.0 points better than [x; ELMo], which may be due to the seeds. So if",
        ),
        ((0.78, 0.80), "x with static vectors is 9.0 points better than [x; ELMo]. So if speed counts, take x with"),
        ((0.60, 0.62), "[x; ELMo] is 9.0 points better than x with static vectors. The tables"),
    ],
)
def test_vectors(project: Path, tmp_path: Path, vectors: tuple[float, float], said: str) -> None:
    for network, scores, speed in (("elmo", (0.69, 0.71), 10_000), ("vectors", vectors, 15_000)):
        for seed, score in enumerate(scores):
            add_run(project, f"ner/{network}", entities(score), seed)
        write(project / "results" / "ner" / network / "speed.json", words_per_second=speed, **SOURCE)
    page = "\n".join(alternatives_parts(project, tmp_path / "results.md", (0, 1)))
    assert said in page
    assert ("which reads 1.5 times as many words a second as [x; ELMo]." in page) == (vectors[0] > 0.7)


def test_both(project: Path, tmp_path: Path) -> None:
    """It needs the trainings of both; of one run each, nothing is compared."""
    write(project / "results" / "embeddings" / "floret.json", minutes=29.4, words=360_000_000, **SOURCE)
    for network in ("vectors", "vectors_elmo"):
        add_run(project, f"ner/{network}", entities(0.7))
    page = "\n".join(alternatives_parts(project, tmp_path / "results.md", (0,)))
    assert "| [x with static vectors; ELMo] | 734 | 1,302 | 70.00 |" in page
    assert "There are too few runs to compare x with static vectors and [x; ELMo]." in page


def test_half_an_hour(project: Path, tmp_path: Path) -> None:
    """Vectors and a biLM of half an hour; the two best networks, which the seeds alone may put in this order."""
    for name, scores in (("ner/vectors", (0.74, 0.76)), ("alternatives/short_bilm", (0.60, 0.62))):
        for seed, score in enumerate(scores):
            add_run(project, name, entities(score), seed)
    add_run(project, "ner/elmo", entities(0.73), 1)
    page = "\n".join(alternatives_parts(project, tmp_path / "results.md", (0, 1)))
    best = "that of x with static vectors. The seeds alone may put it before [x; ELMo]. If the score counts, take one"
    assert best in page
    line = "x with static vectors is 14.0 points better than [x; a biLM of half an hour]."
    assert f"For a text of your own and half an hour: {line}" in page


def test_no_runs(tmp_path: Path) -> None:
    add_run(tmp_path, "ner/elmo", {"ents_f": 0.7, "ents_p": 0.5, "ents_r": 0.5})
    assert alternatives_parts(tmp_path, tmp_path / "results.md", (0,)) == []


@pytest.mark.parametrize("name", ["embeddings/spacy_pretrain", "ner/baseline/speed"])
def test_damaged_files(project: Path, name: str) -> None:
    (project / "results" / f"{name}.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match=r"can't be used \(KeyError.*run it again"):
        alternatives_parts(project, project / "results.md", (0,))
