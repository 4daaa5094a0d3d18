"""What is kept of a run of pretraining, and folders that are none."""

import json
import shutil
from pathlib import Path

import pytest
from run_cases import row

from scripts.bilms.record_run import learning_folder, main
from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.run.metrics import append_row

FACTS = {"bilm": "en_mini", "title": "run 9", "command": "python -m x", "machine": "a processor", "before": 7}
SETTINGS = {"training.streams": 16}


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    for step in (10, 240):
        append_row(folder / "metrics.jsonl", row(step, 200 - step / 3))
    (folder / "run.json").write_text(json.dumps({"settings": SETTINGS}), encoding="utf-8")
    return folder


def test_record(run: Path) -> None:
    main(run, "en_mini_9", **FACTS)
    record = json.loads((learning_folder(Path()) / "en_mini_9.json").read_text(encoding="utf-8"))
    assert record["evaluations"] == [[10 * 5_120, 196.67], [240 * 5_120, 120.0]]
    assert record["minutes"] == 2.0  # 240 steps of half a second
    assert record["tokens_before"] == 7
    assert record["settings"] == SETTINGS
    assert {name: record[name] for name in FACTS if name != "before"} == {
        name: value for name, value in FACTS.items() if name != "before"
    }


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl"])
def test_no_run(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(CommandError, match=rf"{name} can't be used .* Expected the folder of a run of pretrain"):
        main(run, "en_mini_9", **FACTS)
    assert not learning_folder(Path()).exists()


@pytest.mark.parametrize("text", ["[]", "{}", '{"settings": 1}', "{"])
def test_damaged_run(run: Path, text: str) -> None:
    (run / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match=r"run\.json can't be used"):
        main(run, "en_mini_9", **FACTS)


def test_empty_folder(run: Path) -> None:
    shutil.rmtree(run)
    with pytest.raises(CommandError, match=r"Expected the folder of a run of pretrain"):
        main(run, "en_mini_9", **FACTS)
