"""What mixes have learnt: read from a pipeline, and logged in training."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import files
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as spacy_train
from tasks import add_task, elmo_block, examples, tok2vec, train, with_tasks
from thinc.api import Config

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.mixes import build_mix_logger, learned_mixes


def test_components_and_places() -> None:
    nlp = with_tasks("tagger", block=tok2vec(output=True))
    add_task(nlp, "senter", elmo_block("elmo"))
    own = tok2vec()
    own["elmo"]["source"] = {"@architectures": "spacy-elmo.BiLM.v1", "width": 32} | files("random_a")["model"]
    add_task(nlp, "ner", own)
    add_task(nlp, "morphologizer", {"@layers": "concatenate.v1", "*": {"a": elmo_block(), "b": elmo_block()}})
    assert learned_mixes(nlp) == []  # nothing is initialised yet
    train(nlp, 1)
    assert [(mix.component, mix.place, mix.source) for mix in learned_mixes(nlp)] == [
        ("tagger", "input", "*"),
        ("tagger", "output", "*"),
        ("senter", "mix", "elmo"),
        ("ner", "input", "biLM"),
        ("morphologizer", "mix 1", "*"),
        ("morphologizer", "mix 2", "*"),
    ]


def test_values() -> None:
    nlp = with_tasks("tagger", block=tok2vec(output=True))
    train(nlp, 1)
    tok2vec_model = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    for ref, w, gamma in (("elmo", [0.0, 1.0, -1.0], 0.5), ("output_elmo", [2.0, 0.0, 0.0], -3.0)):
        mix = tok2vec_model.get_ref(ref).layers[1]
        mix.set_param("w", np.array(w, "f"))
        mix.set_param("gamma", np.array([gamma], "f"))
    first, second = learned_mixes(nlp)
    e = np.exp([0.0, 1.0, -1.0])
    assert first.weights == pytest.approx(e / e.sum(), abs=1e-6)
    assert (first.w, first.gamma, first.place) == ([0.0, 1.0, -1.0], 0.5, "input")
    assert second.weights == pytest.approx([0.7869, 0.1065, 0.1065], abs=1e-4)
    assert (second.gamma, second.place) == (-3.0, "output")
    with nlp.select_pipes(disable="tagger"):
        assert learned_mixes(nlp) == [first, second]


def run(tmp_path: Path, logger: dict[str, Any]) -> str:
    """`spacy train` for some steps; what it prints."""
    nlp = with_tasks("tagger", block=tok2vec(output=True))
    data = str(tmp_path / "train.spacy")
    DocBin(docs=[example.reference for example in examples(nlp)]).to_disk(data)
    optimizer = {"@optimizers": "Adam.v1", "use_averages": False}  # saved are the averages
    training = {"max_steps": 20, "eval_frequency": 10, "logger": logger, "optimizer": optimizer}
    config = Config(nlp.config).merge({"paths": {"train": data, "dev": data}, "training": training})
    started = init_nlp(config.interpolate())
    printed = io.StringIO()
    (tmp_path / "out").mkdir()
    spacy_train(started, tmp_path / "out", stdout=printed, stderr=printed)
    return printed.getvalue()


@pytest.mark.slow
def test_logger_prints_the_mixes(tmp_path: Path) -> None:
    printed = run(tmp_path, {"@loggers": "spacy-elmo.MixLogger.v1"})
    lines = [line for line in printed.splitlines() if "gamma" in line]
    assert len(lines) == 2 * 3
    assert lines[0] == "  tagger input: 0.333 0.333 0.333, gamma 1.000"
    assert "TAG_ACC" in printed


@pytest.mark.slow
def test_logger_writes_and_wraps(tmp_path: Path) -> None:
    seen: list[Any] = []

    @spacy.registry.loggers("collects.v1")
    def collects() -> Any:
        def setup(nlp: Any, stdout: Any, stderr: Any) -> Any:
            return lambda info: seen.append(info), lambda: seen.append("end")

        return setup

    file = tmp_path / "mixes.jsonl"
    file.write_text("an earlier run's\n")
    settings = {"logger": {"@loggers": "collects.v1"}, "output_file": str(file)}
    printed = run(tmp_path, {"@loggers": "spacy-elmo.MixLogger.v1"} | settings)
    assert "gamma" not in printed
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 10, 20]
    assert {(mix["component"], mix["place"]) for mix in rows[0]["mixes"]} == {("tagger", "input"), ("tagger", "output")}
    saved = learned_mixes(spacy.load(tmp_path / "out" / "model-last"))
    for logged, mix in zip(rows[-1]["mixes"], saved):
        assert (logged["component"], logged["place"]) == (mix.component, mix.place)
        assert [*logged["weights"], *logged["w"], logged["gamma"]] == pytest.approx([*mix.weights, *mix.w, mix.gamma])
    assert len(seen) == 22
    assert seen[-1] == "end"
    assert [info is not None for info in seen[:3]] == [True, False, False]
    scores = seen[20]["other_scores"]
    assert scores["elmo_tagger_output_gamma"] == saved[1].gamma
    assert [scores[f"elmo_tagger_input_w{k}"] for k in range(3)] == saved[0].weights
    assert "tag_acc" in scores


def test_a_path_that_can_not_be_written(tmp_path: Path) -> None:
    logger = build_mix_logger(output_file=str(tmp_path / "none" / "x.jsonl"))
    with pytest.raises(CommandError, match="output_file"):
        logger(with_tasks("tagger"), io.StringIO(), io.StringIO())
