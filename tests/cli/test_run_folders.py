"""Commands that are given the folder of a pretraining run in the place of a model's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from embedded_case import model_of
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.pretraining.language_model import LanguageModel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a run leaves it after its first evaluation, as far as the commands look at it."""
    (tmp_path / "mine").mkdir()
    for name in ("config.cfg", "run.json", "vocabulary.txt"):
        (tmp_path / "mine" / name).write_text("", encoding="utf8")
    model_of().save(tmp_path / "mine" / "model-best")
    (tmp_path / "text.txt").write_text("the cat sat\nthe dog sat\n", encoding="utf8")
    return tmp_path / "mine"


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_info_tells_of_its_best_model(folder: Path) -> None:
    output = run("info", folder)
    assert str(folder / "model-best" / "options.json") in output
    assert "softmax one vector for each word" in output


def test_info_before_the_first_evaluation(folder: Path) -> None:
    (folder / "model-best").rename(folder / "other")
    assert "has not written all of model-best yet" in run("info", folder, code=1)


@pytest.mark.parametrize("model", [".", "model-best", "model-last"])
def test_others_before_the_first_evaluation(folder: Path, tmp_path: Path, model: str) -> None:
    (folder / "model-best").rename(folder / "other")
    text, new = tmp_path / "text.txt", tmp_path / "new"
    (tmp_path / "tune.cfg").write_text(f'[paths]\ntrain = "{text}"\ninit = "{folder / model}"\n', encoding="utf8")
    for arguments in (
        ("evaluate", folder / model, text),
        ("pack", folder / model, new),
        ("init-pretrain-config", new, "--train", text, "--init", folder / model),
        ("pretrain", tmp_path / "tune.cfg", new),
    ):
        output = run(*arguments, code=1)
        assert "has not written all of model-best yet" in output
        assert "lower evaluation.every" in output
    assert not new.exists()


def test_others_take_its_best_model(folder: Path, tmp_path: Path) -> None:
    best, text = folder / "model-best", tmp_path / "text.txt"
    scores = [json.loads(run("evaluate", model, text, "--json")) for model in (folder, best)]
    assert scores[0]["zero_state"] == scores[1]["zero_state"]
    for model, packed in ((folder, "one"), (best, "two")):
        run("pack", model, tmp_path / packed)
    for name in ("weights.hdf5", "softmax.hdf5"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_tuning_begins_with_its_best_model(folder: Path, tmp_path: Path) -> None:
    config, output = tmp_path / "tune.cfg", tmp_path / "out"
    run("init-pretrain-config", config, "--train", tmp_path / "text.txt", "--init", folder)
    run("pretrain", config, output, "--training.total_tokens", "8", "--training.optimizer.learning_rate", "1e-30")
    before, after = LanguageModel.load(folder), LanguageModel.load(output)
    assert before.words == after.words
    for name, values in before.bilm.state_dict().items():
        assert torch.equal(values, after.bilm.state_dict()[name]), name


def files_below(folder: Path) -> dict[str, bytes]:
    """All files but that of the lock, which stays where a run has been tried."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("model", ["", "model-best"])
@pytest.mark.parametrize("name", ["run.json", "config.cfg", "model-best/options.json", "model-last/old"])
def test_no_file_of_a_run_is_replaced(folder: Path, tmp_path: Path, model: str, name: str) -> None:
    (folder / "model-last").mkdir()
    (folder / "model-last" / "old").touch()
    before, text = files_below(folder), tmp_path / "text.txt"
    for arguments in (
        ("evaluate", folder / model, text, "--per-sentence", folder / name),
        ("evaluate", folder / model, text, "--per-sentence", (folder / name).with_name("new")),
        ("init-pretrain-config", folder / name, "--train", text, "--init", folder / model, "--force"),
    ):
        told = run(*arguments, code=1)
        assert "which is the folder of the model" in told or "the file to write are the same" in told
    assert files_below(folder) == before


@pytest.mark.parametrize("model", ["mine", "mine/model-best", "other"])
def test_no_biLM_is_packed_into_a_run(folder: Path, tmp_path: Path, model: str) -> None:
    before = files_below(folder)
    model_of(seed=3).save(tmp_path / "other")
    assert "the folder of a pretraining run" in run("pack", tmp_path / model, folder, "--force", code=1)
    assert files_below(folder) == before


def test_an_output_whose_links_loop(folder: Path, tmp_path: Path) -> None:
    loop, text = tmp_path / "loop", tmp_path / "text.txt"
    loop.symlink_to("loop")
    for arguments in (
        ("evaluate", folder, text, "--per-sentence", loop),
        ("init-pretrain-config", loop, "--train", text),
        ("vocab", text, loop),
    ):
        assert "can't be written (its symbolic links form a loop)" in run(*arguments, code=1)
    assert loop.is_symlink()


def restart(folder: Path, *more: str | Path, code: int = 0) -> str:
    """Begin a run anew in `folder`, of a small biLM with random weights."""
    config = folder.parent / "run.cfg"
    run("init-pretrain-config", config, "--size", "tiny", "--train", folder.parent / "text.txt", "--force")
    small = "--bilm.lstm.dim 8 --bilm.lstm.projection_dim 4 --bilm.char_cnn.filters [[1,4]] --training.total_tokens 8"
    return run("pretrain", config, folder, "--restart", *small.split(), *more, code=code)


def test_a_restart_that_would_miss_what_it_renames(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\nthe\ncat\n", encoding="utf8")
    for name in ("text.txt", "words.txt"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())
        (folder / f"to-{name}").symlink_to(tmp_path / name)
        (tmp_path / f"to-{name}").symlink_to(folder / name)
    (tmp_path / "loop").symlink_to("loop")
    before = files_below(folder)
    for setting, name in (("train", "text.txt"), ("heldout", "text.txt"), ("vocabulary", "words.txt")):
        for path in (folder / name, folder / f"to-{name}", tmp_path / f"to-{name}", f"{folder}/../{name}"):
            told = restart(folder, f"--paths.{setting}", path, code=1)
            assert "--restart would rename it, but the new run reads something that is in it" in told
        assert f"paths.{setting}" in restart(folder, f"--paths.{setting}", tmp_path / "loop", code=1)
    for source in (folder, folder.parent):
        assert "paths.train" in restart(folder, "--paths.train", source, code=1)
    assert files_below(folder) == before
    assert not (tmp_path / "mine.1").exists()
    assert "the earlier run is kept in" in restart(folder)
    assert files_below(tmp_path / "mine.1") == before


def test_a_restart_that_would_miss_its_biLM(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model-best").symlink_to(folder / "model-best")
    config = tmp_path / "tune.cfg"
    for init in (folder, folder / "model-best", tmp_path / "other"):
        run("init-pretrain-config", config, "--train", tmp_path / "text.txt", "--init", init, "--force")
        assert "reads something that is in it" in run("pretrain", config, folder, "--restart", code=1)
        assert (folder / "model-best" / "options.json").is_file()
    assert not (tmp_path / "mine.1").exists()
