"""The biLM that is tuned on a task's text: it learns the text, its files are official, and nothing is half-written."""

import json
from pathlib import Path

import pytest
import spacy
from commands import run
from spacy.tokens import DocBin

from scripts.embeddings import tune_bilm
from scripts.embeddings.tune_bilm import main, tune
from spacy_elmo.errors import CommandError
from spacy_elmo.formats import read_options, read_weights

ROOT = Path(__file__).parents[3]
SMALL = "--bilm.lstm.dim 16 --bilm.lstm.projection_dim 8 --bilm.char_cnn.filters [[1,4],[2,8]] --vocabulary.size 20"
RUN = "--training.streams 4 --training.steps 5 --training.softmax.kind full --training.schedule.warmup_steps 2"
# by default so small a text is scored after each update, which takes most of the time
TUNING = "--training.epochs 5 --training.streams 2 --training.steps 5 --evaluation.every 40"


def write_docs(path: Path, sentence: str, times: int) -> Path:
    nlp = spacy.blank("en")
    docs = [spacy.tokens.Doc(nlp.vocab, words=sentence.split()) for _ in range(times)]
    DocBin(docs=docs).to_disk(path)
    return path


@pytest.mark.slow
def test_the_text_is_learned(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("it rains in the valley\nthe old town sleeps until noon\n" * 50, encoding="utf-8")
    run("elmo", "pretrain", ROOT / "configs/pretrain.cfg", tmp_path / "run", "--paths.train", text, *SMALL.split(),
        "--training.total_tokens", "200", "--paths.heldout", "null", *RUN.split())  # fmt: skip
    train = write_docs(tmp_path / "train.spacy", "the town sleeps in the old valley", 40)
    dev = write_docs(tmp_path / "dev.spacy", "the valley sleeps in the old town", 4)
    output, start = tmp_path / "tuned", str(tmp_path / "run" / "model-last")
    (output / "old").mkdir(parents=True)
    measured = tune(train, dev, output, tuple(TUNING.split()), start)
    assert sorted(path.name for path in output.iterdir()) == ["options.json", "weights.hdf5"]
    assert read_weights(output / "weights.hdf5", read_options(output / "options.json"))
    before, after = measured["before"], measured["after"]
    assert after["mean"] < before["mean"] / 1.2
    printed = run("elmo", "evaluate", start, dev, "--json")
    assert before == json.loads(printed)["zero_state"]
    assert measured["tokens"] > 5 * 40 * 7
    assert [path.name for path in tmp_path.glob("tmp*")] == []


def test_the_best_model_is_kept_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that write other models: model-best is moved, after it was scored."""
    calls = []

    def command(*arguments: str, output: bool = False) -> str:
        calls.append(arguments[0])
        if arguments[0] == "pretrain":
            for name in ("model-best", "model-last"):
                folder = Path(arguments[2]) / name
                folder.mkdir(parents=True)
                for file in ("options.json", "weights.hdf5"):
                    (folder / file).write_text(f"{name} {file}", encoding="utf-8")
            (Path(arguments[2]) / "metrics.jsonl").write_text('{"tokens": 7}\n', encoding="utf-8")
        return json.dumps({"zero_state": {"model": Path(arguments[1]).name}}) if output else ""

    monkeypatch.setattr(tune_bilm, "run_elmo", command)
    measured = tune(tmp_path / "train.spacy", tmp_path / "dev.spacy", tmp_path / "new" / "tuned", bilm="mine")
    assert calls == ["evaluate", "init-pretrain-config", "pretrain", "evaluate"]
    assert (measured["before"], measured["after"]) == ({"model": "mine"}, {"model": "model-best"})
    files = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "new" / "tuned").iterdir()}
    assert files == {name: f"model-best {name}" for name in ("options.json", "weights.hdf5")}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tuned"]


@pytest.mark.slow
def test_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    with pytest.raises(CommandError, match=r"the command failed.*elmo evaluate"):
        tune(tmp_path / "none.spacy", tmp_path / "none.spacy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_unknown_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=r"the task is 'x'\. Expected one of ner, ner_wnut17"):
        main(["ner", "x"])
    assert not any(tmp_path.iterdir())
