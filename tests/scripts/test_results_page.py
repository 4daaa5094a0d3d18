"""docs/results.md: its figures against those worked out by hand, and what it says where runs are missing."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from experiments import TASKS
from results import write_results
from results_tables import error_cut, spread

from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.coreference.scorer import score_coreference

BASELINE = (0.60, 0.62, 0.64)  # mean 62, deviation 2
ELMO = (0.70, 0.70, 0.73)  # mean 71, deviation sqrt(3): the cut is 1 - 29 / 38 = 23.7 %
LISTENER = {"@architectures": "spacy-elmo.Listener.v1", "width": 256, "upstream": "elmo"}
MIX = {"@layers": "spacy-elmo.ScalarMix.v1"}
WEIGHTS = (0.2, 0.3, 0.5)


def add_run(project: Path, task: str, kind: str, seed: int, scores: dict[str, Any], seconds: float) -> Path:
    metrics = project / "metrics" / task / kind / f"seed-{seed}.json"
    metrics.parent.mkdir(parents=True, exist_ok=True)
    metrics.write_text(json.dumps(scores))
    folder = project / "training" / task / kind / f"seed-{seed}"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"seconds": seconds}))
    return folder


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with a mix of known weights and gamma."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": LISTENER, "mix": MIX}
    tagger = nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}})
    tagger.add_label("X")
    nlp.initialize()
    (node,) = (node for node in tagger.model.walk() if node.name == "scalar_mix")
    node.set_param("w", np.log(np.array(WEIGHTS, np.float32)) + 7)  # softmax does not see a constant
    node.set_param("gamma", np.array([1.25], np.float32))
    folder = tmp_path_factory.mktemp("pipeline") / "model-best"
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path, pipeline: Path) -> Path:
    """All baselines and ELMo runs of Broad Twitter, but two of the random ones, and one run of SST-5."""
    for kind, values, seconds in (("baseline", BASELINE, 60.0), ("elmo", ELMO, 90.0), ("random", (0.65,), 30.0)):
        for seed, value in enumerate(values):
            scores = {"ents_f": value, "ents_p": 0.5, "ents_r": 0.5, "ents_per_type": {}, "speed": 1.0}
            add_run(tmp_path, "ner", kind, seed, scores, seconds * (seed + 1))
    shutil.copytree(pipeline, tmp_path / "training/ner/elmo/seed-1/model-best")
    add_run(tmp_path, "textcat", "elmo", 0, {"cats_micro_f": 0.5}, 6.0)
    return tmp_path


@pytest.mark.slow
def test_figures(project: Path) -> None:
    output = project / "docs" / "results.md"
    missing = write_results(project, output, (0, 1, 2))
    page = output.read_text(encoding="utf-8")
    assert "| F1 | without ELMo | 62.00 ± 2.00 (60.00 to 64.00) |  | 3 |" in page
    assert f"| F1 | with ELMo | 71.00 ± {math.sqrt(3):.2f} (70.00 to 73.00) | 23.7 % | 3 |" in page
    assert "| F1 | with a biLM of random weights | 65.00 | 7.9 % | 1 |" in page
    assert "| precision | with ELMo | 50.00 ± 0.00 (50.00 to 50.00) | 0.0 % | 3 |" in page
    assert "| with ELMo | 3.0 | 1.5 to 4.5 | 3 |" in page
    assert "| with ELMo | 1 | tagger | mix | 0.200, 0.300, 0.500 | 1.250 |" in page
    assert "| accuracy | with ELMo | 50.00 |  | 1 |" in page  # no baseline to compare with
    assert "- `metrics/ner/random/seed-1.json`" in page
    assert project / "metrics/ner_wnut17/baseline/seed-0.json" in missing
    assert project / "metrics/ner/elmo/seed-2.json" not in missing
    pictures = {path.name for path in output.parent.glob("*.png")}
    assert pictures == {"results_ner.png", "results_ner_weights.png", "results_textcat.png"}
    assert all(f"({name})" in page for name in pictures)


def test_of_one_run_no_deviation() -> None:
    assert spread([0.5]) == "50.00"
    assert error_cut([1.0], [1.0]) is None


def test_no_runs(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="train and evaluate first"):
        write_results(tmp_path, tmp_path / "docs/results.md", (0,))
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"ents_f": null, "ents_p": 0, "ents_r": 0}', '{"ents_p": 0.5}'])
def test_damaged_metrics(project: Path, text: str) -> None:
    (project / "metrics/ner/elmo/seed-0.json").write_text(text)
    with pytest.raises(CommandError, match=r"elmo/seed-0\.json.*ents_f"):
        write_results(project, project / "docs/results.md", (0, 1, 2))
    assert not (project / "docs").exists()


def test_measures_are_spacys() -> None:
    keys = {measure.key for task in TASKS for measure in task.measures}
    scored: dict[str, Any] = {}
    spacy.blank("en")  # makes spaCy look for the factories of other packages
    for name in ("ner", "tagger", "morphologizer", "parser", "answers", "entailment", "semantic_roles"):
        scored |= spacy.Language.get_factory_meta(name).default_score_weights
    scored |= score_coreference([])
    assert keys - {"cats_micro_f"} <= scored.keys()
