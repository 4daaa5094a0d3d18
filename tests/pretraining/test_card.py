"""README.md of a trained model."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_cases import SCORE, run_of
from thinc.api import Config

from spacy_elmo.pretraining.card import write_card
from spacy_elmo.pretraining.config import PathSettings, to_config
from spacy_elmo.pretraining.folder import Run
from spacy_elmo.pretraining.vocabulary import Vocabulary

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
SHA256 = "0123456789abcdef" * 4


def card(run: Run, folder: Path) -> str:
    write_card(folder, run, step=11, seconds=9_000.0, score=SCORE)
    return (folder / "README.md").read_text(encoding="utf8")


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| (.*?) \| (.*) \|$", text, re.MULTILINE))


def test_sizes_and_training(tmp_path: Path) -> None:
    found = rows(card(run_of(tmp_path, "en", processes=2), tmp_path))
    assert found["LSTM"] == "dim 512, projection 128, layers a direction: 2"
    assert found["character encoder"] == "dim 16; filters: 32 of 1, 64 of 3 characters; relu; highway layers: 1"
    assert found["vectors"] == "3 layers of 256"
    assert found["parameters"] == "2,406,384, without the softmax"
    assert found["vocabulary"].startswith("5,000 words to predict")
    assert found["language"] == "en"
    # 11 updates of 256 streams and 20 steps; 21,000 tokens with </S>
    assert found["tokens seen"] == "56,320 of one direction, `</S>` counted: 2.68 epochs in 11 updates"
    assert found["time"] == "2.50 hours, processes: 2"
    assert re.fullmatch(r"spacy-elmo \d+\.\S+, torch \d+\.\S+", found["versions"])
    assert "tuned from" not in found


def test_a_tuned_bilm(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(GOLDEN, model)
    (model / "README.md").write_text("| language | de |\n", encoding="utf8")
    tuned = run_of(tmp_path, "en", str(model), init_sha256=SHA256)
    text = card(tuned, tmp_path)
    found = rows(text)
    assert found["tuned from"].startswith(f"`model`, SHA-256 of its weights {SHA256}. ")
    assert found["language"] == "en"  # that of the tokenizer
    assert 'spacy.blank("en")' in text
    text = card(run_of(tmp_path, None, str(model)), tmp_path)
    assert rows(text)["tuned from"].startswith("`model`. ")
    assert rows(text)["language"] == "de, that of the biLM it was tuned from; words were separated by blanks"
    assert 'spacy.blank("de")' in text
    shutil.rmtree(model)
    assert rows(card(run_of(tmp_path, None, str(model)), tmp_path))["language"].startswith("not told;")


def test_perplexities(tmp_path: Path) -> None:
    assert SCORE.predictions == 1_000
    assert math.isclose(math.exp(SCORE.loss[0] / 1_000), 2**7, rel_tol=1e-9)
    text = card(run_of(tmp_path), tmp_path)
    found = rows(text)
    assert [found[name] for name in ("forward", "backward", "mean")] == ["128.0", "512.0", "256.0"]
    assert "Of 50 held-out sentences, each from the zero state, by the full softmax: 1,000 predictions" in text
    assert "2.00% of the tokens are outside the vocabulary" in text


def test_data(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    text = card(run, tmp_path)
    assert rows(text)["training text"] == (
        "`train.txt`, 1,000 sentences, 20,000 tokens, bad lines left out: 2, SHA-256 of its sentences "
        f"{run.train.meta.sha256}"
    )
    assert rows(text)["held-out text"].startswith(r"`held\|out*.txt`, 50 sentences, 950 tokens, SHA-256 of")
    assert "covers 98.70% of the training text's tokens" in text
    assert re.search(r"- train\.txt, line 7: .*UTF-8.*\n- train\.txt, line 9: ", text)
    train, heldout = run.train.cut(0.1)
    cut = replace(
        run,
        config=replace(run.config, paths=PathSettings(run.config.paths.train)),
        train=train,
        heldout=heldout,
        vocabulary=Vocabulary(run.vocabulary.words),
    )
    text = card(cut, tmp_path)
    assert rows(text)["held-out text"] == "`train.txt`, 100 sentences, 2,000 tokens, bad lines left out: 2"
    assert "covers" not in text


@pytest.mark.parametrize(
    ("repeated", "told"),
    [
        (0, ", 0 (0.00%) are in the training text too, word for word."),
        (3, ", 3 (6.00%) are in the training text too, word for word, which makes the perplexity"),
        (None, None),
    ],
)
def test_repeated_sentences(tmp_path: Path, repeated: int | None, told: str | None) -> None:
    text = card(run_of(tmp_path, repeated=repeated), tmp_path)
    assert ("in the training text too" in text) == (told is not None)
    assert told is None or f"Of all 50 held-out sentences{told}" in text


def test_settings_are_all_there_and_no_folder_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path, init=f"{tmp_path}/model/")
    text = card(run, tmp_path)
    assert tmp_path.name not in text
    expected = to_config(run.config)
    expected["paths"] |= {"train": "train.txt", "heldout": "held|out*.txt", "init": "model"}
    assert Config().from_str(re.findall(r"```ini\n(.*?)```", text, re.DOTALL)[0]) == expected


def test_what_it_says_of_spacy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = card(run_of(tmp_path, None), tmp_path)
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(GOLDEN / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    assert code.count("\n") == 3
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["nlp"]("a b")._.elmo.shape == (2, 32)
