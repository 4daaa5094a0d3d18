"""The section on the biLMs: its figures against records made by hand, and damaged records."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.pages.bilm_tables import bilm_parts
from spacy_elmo.errors import CommandError

FACTS = {"command": "python -m x en_mini en_midi", "commit": "abc123", "machine": "a processor", "minutes": 12.4}
BYTES = {"weights.hdf5": 6_364_730, "softmax.hdf5": 7_495_820}
TEXTS = {"wikipedia": 63.17, "novels": 55.04, "newswire": 124.8, "tweets": 325.0}


def result(perplexity: float = 63.17) -> dict[str, Any]:
    texts = {
        name: {"sentences": 1000, "tokens": 20_000, "perplexity": value, "without_unknown": 1.0}
        for name, value in (TEXTS | {"wikipedia": perplexity}).items()
    }
    parts = {"weights": "0123456789ab", "parameters": 5_600_000, "bytes": BYTES}
    return {**parts, "perplexities": texts, "tags": [0.8834, 0.942, 0.933, 0.94]}


def add(project: Path, name: str, measured: Any) -> None:
    path = project / "results" / "bilms" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(FACTS | {"result": measured}), encoding="utf-8")


def test_both_bilms(tmp_path: Path) -> None:
    assert bilm_parts(tmp_path) == []
    add(tmp_path, "en_mini", result())
    page = "\n".join(bilm_parts(tmp_path))
    assert "| perplexity, Wikipedia: 1,000 sentences, 20,000 words | 63.2 |" in page
    assert "- `python -m x en_mini en_midi`; commit abc123; a processor; 12 minutes" in page
    assert "Fewer bits" not in page
    add(tmp_path, "en_midi", result(50.46))
    page = "\n".join(bilm_parts(tmp_path))
    assert "|  | `en_mini` | `en_midi` |" in page
    assert "| perplexity, Wikipedia: 1,000 sentences, 20,000 words | 63.2 | 50.5 |" in page
    assert "| perplexity, tweets: 1,000 sentences, 20,000 words | 325.0 | 325.0 |" in page
    assert "| weights.hdf5, MB | 6.4 | 6.4 |" in page
    assert "| tags, layer 0 | 88.3 | 88.3 |" in page
    assert "| tags, the mean of the layers | 94.0 | 94.0 |" in page


def test_sentences_that_are_left_out(tmp_path: Path) -> None:
    """A record from before they were counted has none."""
    counted = result()
    counted["perplexities"]["tweets"]["left_out"] = 2
    add(tmp_path, "en_mini", result())
    assert "left out" not in "\n".join(bilm_parts(tmp_path))
    add(tmp_path, "en_midi", counted)
    assert "because a word of theirs is empty or has blanks: 2 of tweets." in "\n".join(bilm_parts(tmp_path))


def test_fewer_bits(tmp_path: Path) -> None:
    copy = {"setting": "--bits 8", "bytes": BYTES, "layer_changes": [0.0163, 0.0235, 0.0275], "perplexity": 61.5}
    whole = {"weights": "0123", "bytes": {name: 3 * size for name, size in BYTES.items()}, "perplexity": 61.4}
    tags = {"tags": [0.5, 0.6, 0.7, 0.8]}
    add(tmp_path, "bits", whole | tags | {"copies": [copy | tags]})
    page = "\n".join(bilm_parts(tmp_path))
    assert "| as it was trained | 19.1 | 22.5 |  |  |  | 61.4 | 50.0, 60.0, 70.0, 80.0 |" in page
    assert "| `--bits 8` | 6.4 | 7.5 | 1.6 % | 2.4 % | 2.8 % | 61.5 | 50.0, 60.0, 70.0, 80.0 |" in page
    assert page.startswith("## The biLMs\n### Fewer bits\n")


def test_different_texts(tmp_path: Path) -> None:
    other = result()
    other["perplexities"]["novels"]["tokens"] += 1
    add(tmp_path, "en_mini", result())
    add(tmp_path, "en_midi", other)
    with pytest.raises(CommandError, match=r"en_mini and en_midi were measured on different texts of novels"):
        bilm_parts(tmp_path)


@pytest.mark.parametrize("name", ["en_midi", "bits"])
def test_damaged_records(tmp_path: Path, name: str) -> None:
    add(tmp_path, name, {"bytes": {}})
    with pytest.raises(CommandError, match=r"can't be used \(KeyError.*run it again"):
        bilm_parts(tmp_path)
