"""README.md of a trained model."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_cases import CONFIG, FACTS, RUN, SCORE, SHA256, TRAIN
from thinc.api import Config

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining.config_file import to_config
from spacy_elmo.pretraining.evaluating import card, write_card
from spacy_elmo.pretraining.metrics import InitFacts

GOLDEN = Path(__file__).parents[2] / "golden" / "random_a"


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| (.*?) \| (.*) \|$", text, re.MULTILINE))


def test_sizes_and_training() -> None:
    found = rows(card(FACTS))
    assert found["LSTM"] == "dim 512, projection 128, layers a direction: 2"
    assert found["character encoder"] == "dim 16; filters: 32 of 1, 64 of 3 characters; relu; highway layers: 1"
    assert found["vectors"] == "3 layers of 256"
    assert found["parameters"] == "2,999,888, without the softmax"
    assert found["language"] == "en"
    assert found["tokens seen"].startswith("52,400 of one direction")
    assert found["tokens seen"].endswith("2.50 epochs in 11 updates")
    assert found["time"] == "2.50 hours, processes: 2"
    assert re.fullmatch(r"spacy-elmo \d+\.\S+, torch \d+\.\S+", found["versions"])


def test_a_tuned_bilm() -> None:
    tuned = RUN._replace(init=InitFacts("/home/someone/model", SHA256, "de"))
    text = card(FACTS._replace(run=tuned))
    found = rows(text)
    assert found["tuned from"].startswith(f"`model`, SHA-256 of its weights {SHA256}. ")
    assert found["language"] == "en"  # that of the tokenizer
    assert 'spacy.blank("en")' in text
    text = card(FACTS._replace(run=tuned, language=None))
    assert rows(text)["language"] == "de, that of the biLM it was tuned from; words were separated by blanks"
    assert 'spacy.blank("de")' in text
    text = card(FACTS._replace(run=RUN._replace(init=InitFacts("en_mini", None, None)), language=None))
    assert rows(text)["tuned from"].startswith("`en_mini`. ")
    assert rows(text)["language"].startswith("not told;")
    assert "tuned from" not in rows(card(FACTS))


def test_perplexities() -> None:
    assert SCORE.predictions == 1_000
    assert math.isclose(math.exp(SCORE.loss[0] / 1_000), 2**7, rel_tol=1e-9)
    text = card(FACTS)
    found = rows(text)
    assert [found[name] for name in ("forward", "backward", "mean")] == ["128.0", "512.0", "256.0"]
    assert "Of 50 held-out sentences, each from the zero state, by the full softmax: 1,000 predictions" in text
    assert "2.00% of the tokens are outside the vocabulary" in text


def test_data() -> None:
    text = card(FACTS)
    found = rows(text)
    expected = f"`train.txt`, 1,000 sentences, 20,000 tokens, bad lines left out: 12, SHA-256 of its sentences {SHA256}"
    assert found["training text"] == expected
    assert found["held-out text"] == r"`held\|out*.txt`, 50 sentences, 950 tokens"
    assert "covers 98.70% of the training text's tokens" in text
    assert "- train.txt, line 1,234: not UTF-8\n- b.txt, line 5: a NUL\n" in text
    quiet = replace(TRAIN, n_bad=0, bad=())
    text = card(FACTS._replace(run=RUN._replace(train=quiet, coverage=None)))
    assert "left out" not in text
    assert "covers" not in text


def test_no_folder_is_named() -> None:
    assert "/home" not in card(FACTS)
    assert "someone" not in card(FACTS)


def test_settings_are_all_there() -> None:
    block = re.findall(r"```ini\n(.*?)```", card(FACTS), re.DOTALL)[0]
    expected = to_config(CONFIG)
    expected["paths"] |= {"train": "train.txt", "heldout": "held|out*.txt", "init": "model"}
    assert Config().from_str(block) == expected


@pytest.mark.parametrize("language", ["en", None])
def test_what_it_says_of_spacy_runs(language: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(tmp_path, FACTS._replace(language=language))
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(GOLDEN / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (tmp_path / "README.md").read_text(encoding="utf8"), re.DOTALL)[0]
    assert code.count("\n") == 3
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["nlp"]("a b")._.elmo.shape == (2, 32)


def test_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "README.md").mkdir()
    with pytest.raises(CheckpointError, match="is a folder"):
        write_card(tmp_path, FACTS)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_file_name_that_is_no_utf8(tmp_path: Path) -> None:
    source = replace(TRAIN, source="t\udce9.txt")
    write_card(tmp_path, FACTS._replace(run=RUN._replace(train=source)))
    assert "t\\udce9.txt" in (tmp_path / "README.md").read_text(encoding="utf8")
