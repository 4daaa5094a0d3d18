"""Which runs are trained again: those whose settings, corpora or biLM changed."""

import json
from pathlib import Path

import pytest
from spacy.util import load_config

from scripts.runs import train_runs
from scripts.runs.experiments import TASKS
from scripts.runs.train_runs import curve, fingerprint, networks_of, overrides_for, read_run, seeds_of
from spacy_elmo.errors import CommandError

CONFIG = """
[paths]
train = "{folder}/train.spacy"

[components]

[components.elmo]
factory = "elmo"

[components.elmo.model]
@architectures = "spacy-elmo.BiLM.v1"
weight_file = null

[training]
seed = 0
"""


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    (tmp_path / "train.spacy").write_bytes(b"corpus")
    (tmp_path / "weights.hdf5").write_bytes(b"weights")
    path = tmp_path / "x.cfg"
    path.write_text(CONFIG.format(folder=tmp_path.as_posix()))
    return path


def test_seeds() -> None:
    assert seeds_of(" 0 12  3") == [0, 12, 3]
    for text in ("", "0,1", "-1", "one"):
        with pytest.raises(CommandError, match="--seeds"):
            seeds_of(text)
    for text in ("0 1 0", "00 0"):
        with pytest.raises(CommandError, match="Expected each once"):
            seeds_of(text)
    assert overrides_for(3, {"a.b": 1}) == {"a.b": 1, "system.seed": 3, "training.seed": 3}


def test_networks() -> None:
    assert networks_of(" elmo baseline", TASKS[0]) == ["elmo", "baseline"]
    assert networks_of("all", TASKS[0]) == list(TASKS[0].networks)
    for text in ("", "top", "elmo,baseline"):  # "top" is of the ablations
        with pytest.raises(CommandError, match=r"--networks.*Expected some of baseline, elmo"):
            networks_of(text, TASKS[0])


def test_curve(tmp_path: Path) -> None:
    rows = [{"epoch": 0, "step": step, "score": score, "losses": {}} for step, score in ((0, 0.0), (100, 0.123456))]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert curve(tmp_path / "log.jsonl") == [(0, 0.0), (100, 0.1235)]


def test_fingerprint(config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = [fingerprint(load_config(config_path))]
    assert fingerprint(load_config(config_path)) == marks[0]
    marks.append(fingerprint(load_config(config_path, {"training.seed": 1})))
    (tmp_path / "train.spacy").write_bytes(b"other")
    marks.append(fingerprint(load_config(config_path)))
    own = {"components.elmo.model.weight_file": str(tmp_path / "weights.hdf5")}
    marks.append(fingerprint(load_config(config_path, own)))
    (tmp_path / "weights.hdf5").write_bytes(b"other")
    marks.append(fingerprint(load_config(config_path, own)))
    monkeypatch.setattr(train_runs.bilms, "paths", lambda name: (str(config_path), str(tmp_path / "weights.hdf5")))
    marks.append(fingerprint(load_config(config_path)))  # another embedded biLM
    assert len(set(marks)) == len(marks)


@pytest.mark.slow
def test_a_trained_run_stays_and_a_failed_one_says_so(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "seed-0"
    output.mkdir()
    mark = fingerprint(load_config(config_path, {"training.seed": 0}, interpolate=True))
    (output / "model-best").mkdir()
    run = {"fingerprint": mark, "seconds": 1.0, "commit": "", "machine": "", "dev": {}}
    (output / "run.json").write_text(json.dumps(run))
    train_runs.train(config_path, output, {"training.seed": 0}, -1)
    assert (output / "run.json").exists()
    with pytest.raises(CommandError, match="training failed"):  # the config has no pipeline, and another seed is new
        train_runs.train(config_path, output, {"training.seed": 1}, -1)
    assert json.loads((output / "run.json").read_text()) == run  # what was there is there again
    assert (output / "model-best").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["seed-0"]

    def stop(*arguments: object, **settings: object) -> None:
        output.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(train_runs.subprocess, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        train_runs.train(config_path, output, {"training.seed": 1}, -1)
    assert (output / "model-best").is_dir()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fingerprint": 1}'])
def test_a_damaged_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CommandError, match=r"run\.json: can't be used.*train again"):
        read_run(tmp_path / "run.json")
