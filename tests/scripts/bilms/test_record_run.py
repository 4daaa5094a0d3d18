"""What is kept of a run of pretraining, and folders that are none."""

import json
from pathlib import Path

import pytest
from run_cases import row

from scripts.bilms.record_run import learning_result_of, main
from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.metrics import append_row

FACTS = {"bilm": "en_mini", "title": "run 9", "text": "a text", "command": "python -m x", "machine": "a processor"}
CONFIG = """
[paths]
train = "/home/someone/text.txt"
init = {init}

[training]
streams = 16
average_share = 0.005
"""


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    for step in (10, 240):
        append_row(folder / "metrics.jsonl", row(step, 200 - step / 3))
    (folder / "config.cfg").write_text(CONFIG.format(init="null"), encoding="utf-8")
    return folder


def test_record(run: Path) -> None:
    main(run, "en_mini_9", **FACTS)
    text = learning_result_of(Path(), "en_mini_9").read_text(encoding="utf-8")
    assert "/home" not in text
    record = json.loads(text)
    assert record == FACTS | {
        "tokens_before": 0,
        "averaged": True,
        "minutes": 2.0,  # 240 steps of half a second
        "evaluations": [[10 * 5_120, 196.67], [240 * 5_120, 120.0]],
        "settings": {"training": {"streams": 16, "average_share": 0.005}},
    }


def test_further_run(run: Path) -> None:
    (run / "config.cfg").write_text(CONFIG.format(init='"en_mini"'), encoding="utf-8")
    with pytest.raises(CommandError, match=r"began from another biLM\. Expected --before"):
        main(run, "en_mini_9", **FACTS)
    main(run, "en_mini_9", **FACTS, before=7)
    assert json.loads(learning_result_of(Path(), "en_mini_9").read_text(encoding="utf-8"))["tokens_before"] == 7


@pytest.mark.parametrize("name", ["a/b", "../x", "known"])
def test_names(run: Path, name: str) -> None:
    main(run, "known", **FACTS)
    before = learning_result_of(Path(), "known").read_bytes()
    with pytest.raises(CommandError, match=rf"NAME is '{name}'\. Expected the name of a new file"):
        main(run, name, **FACTS | {"title": "another"})
    assert learning_result_of(Path(), "known").read_bytes() == before


@pytest.mark.parametrize("text", [None, "", "[paths]", "[training]\nstreams = 16", "x"])
def test_unusable_config(run: Path, text: str | None) -> None:
    (run / "config.cfg").unlink()
    if text is not None:
        (run / "config.cfg").write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match=r"config\.cfg can't be used .* Expected the folder of a run of pretrain"):
        main(run, "en_mini_9", **FACTS)
    assert not learning_result_of(Path(), "en_mini_9").exists()


@pytest.mark.parametrize("perplexity", [None, float("inf")])
def test_unusable_evaluations(run: Path, perplexity: float | None) -> None:
    (run / "metrics.jsonl").unlink()
    if perplexity is not None:
        append_row(run / "metrics.jsonl", row(10, perplexity))
    with pytest.raises(CommandError, match=r"metrics\.jsonl: no evaluations, or one that is infinite"):
        main(run, "en_mini_9", **FACTS)
