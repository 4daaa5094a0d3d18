"""The section on the layers: its figures against results made by hand, and what it says if some are missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.inside.inside_neighbours import WORDS, read_words
from scripts.pages.inside_tables import JUDGED, finding, inside_parts, neighbour_parts, read_verdicts
from spacy_elmo.errors import CommandError

ROOT = Path(__file__).parents[3]
FACTS = {"command": "x", "commit": "abc123", "machine": "a processor", "bilm": "0123456789ab", "minutes": 1.4}


def layers(*values: tuple[float, float]) -> list[dict[str, Any]]:
    """Trained and random accuracies of the layers, F1 half of them."""
    names = ("trained", "random")
    return [
        {"layer": "mean" if number == 3 else number}
        | {name: {"accuracy": one, "f1": one / 2} for name, one in zip(names, both)}
        for number, both in enumerate(values)
    ]


def add(project: Path, name: str, result: Any) -> None:
    path = project / "results" / "inside" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(FACTS | {"result": result}), encoding="utf-8")


def found(word: str, number: int) -> dict[str, Any]:
    return {"cosine": 0.5, "number": number, "before": ["b|", "c"], "word": word, "after": ["d", "_e"]}


NEIGHBOURS = {
    "layer": 2,
    "tokens": 1234,
    "sentences": 99,
    "words": [
        {
            "word": "bank",
            "static": [{"cosine": 0.5, "word": "banks"}, {"cosine": 0.4, "word": "tank"}],
            "senses": [
                {"sense": "money", "sentence": "A bank lends .", "neighbours": [found("bank", 1), found("lender", 2)]},
                {"sense": "river", "sentence": "On the bank .", "neighbours": [found("bank", 1), found("shore", 3)]},
            ],
        }
    ],
}
VERDICTS = {
    ("bank", "money", 1, "bank"): True,
    ("bank", "money", 2, "lender"): True,
    ("bank", "river", 1, "bank"): False,
    ("bank", "river", 3, "shore"): True,
}


def test_probes_and_senses(tmp_path: Path) -> None:
    majority = {"accuracy": 0.5, "f1": 0.25}
    four = layers((0.6, 0.1), (0.9, 0.2), (0.8, 0.3), (0.85, 0.4))
    add(tmp_path, "probe_tag", {"attribute": "tag", "majority": majority, "layers": four})
    add(tmp_path, "probe_ent", {"attribute": "ent", "majority": majority, "layers": four})

    def senses(first: float) -> dict[str, Any]:
        rows = [{"layer": layer, "f1": first + 0.01 * i} for i, layer in enumerate((0, 1, 2, "mean"))]
        return {"instances": 1234, "not_in_training": 5, "first_sense": {"f1": first}, "layers": rows}

    add(tmp_path, "senses", {"tests": [{"test": "corpus/senses/a.tsv"} | senses(0.3)], "all": senses(0.4)})
    page = "\n\n".join(inside_parts(tmp_path))
    assert "commit abc123; a processor; `en_mini` 0123456789ab; 4 minutes in all" in page
    assert "| fine tags (XPOS), UD English EWT | 50.0 | 60.0 | 90.0 | 80.0 | 85.0 | 97.3 | 96.8 |" in page
    assert "| entities, Broad Twitter | 25.0 | 30.0 | 45.0 | 40.0 | 42.5 |  |  |" in page
    assert "| entities, Broad Twitter | 5.0 | 10.0 | 15.0 | 20.0 |" in page  # random weights
    assert "| word senses, SemCor | 40.0 | 40.0 | 41.0 | 42.0 | 43.0 | 67.4 | 69.0 |" in page
    assert "|  | a | all |" in page
    assert "| instances | 1,234 | 1,234 |" in page
    assert "| layer 2 | 32.0 | 42.0 |\n| mean of the layers | 33.0 | 43.0 |" in page
    assert "Layer 1 is better for fine tags (XPOS), UD English EWT (by 10.0); entities, Broad Twitter (by 5.0)." in page
    assert "Layer 2 is better for word senses, SemCor (by 1.0). In the paper" in page
    assert "What needs no layer" not in page
    assert "Missing when this page was written: `results/inside/probe_upos.json`, `results/inside/neighbours." in page


def test_equal_layers() -> None:
    found = finding([["x", "3.1", "2.0", "3.0", "3.0", "4.0"]])
    assert "Layers 1 and 2 are alike for x. In" in found
    assert found.endswith("What needs no layer is better than both for x.")


def test_neighbours() -> None:
    parts = neighbour_parts(NEIGHBOURS, VERDICTS)
    assert "1,234 words in 99 sentences" in " ".join(parts[0].split())
    assert "Of all 4, 3 are\nright; for 0 of the 1 words" in parts[1]
    assert "Of the 2 sentences,\n1 have one right neighbour at most." in parts[1]
    _, _, first, second = parts[2].splitlines()
    assert first == (
        "| banks, tank | money | A **bank** lends . | b\\| c **bank** d \\_e<br>b\\| c **lender** d \\_e | 2 of 2 |"
    )
    assert second.startswith("|  | river | On the **bank** . |")
    assert second.endswith("| 1 of 2 |")


def test_neighbours_that_nobody_judged_have_no_verdicts() -> None:
    parts = neighbour_parts(NEIGHBOURS, {})
    assert len(parts) == 2
    assert "right" not in parts[1]


def test_judged_neighbours_are_those_that_were_found() -> None:
    result = json.loads((ROOT / "results/inside/neighbours.json").read_text(encoding="utf-8"))["result"]
    assert [one["word"] for one in result["words"]] == [one.word for one in read_words(WORDS)]
    keys = {
        (one["word"], sense["sense"], near["number"], near["word"])
        for one in result["words"]
        for sense in one["senses"]
        for near in sense["neighbours"]
    }
    assert keys == read_verdicts(JUDGED).keys()


def test_nothing_was_measured(tmp_path: Path) -> None:
    assert inside_parts(tmp_path) == []


@pytest.mark.parametrize("change", [{"attribute": "upos"}, {"layers": []}, {"majority": {"accuracy": 5, "f1": 0.5}}])
def test_results_of_something_else(tmp_path: Path, change: dict[str, Any]) -> None:
    whole = {"attribute": "tag", "majority": {"accuracy": 0.5, "f1": 0.25}, "layers": layers(*[(0.5, 0.1)] * 4)}
    add(tmp_path, "probe_tag", whole)
    assert inside_parts(tmp_path)
    add(tmp_path, "probe_tag", whole | change)
    with pytest.raises(CommandError, match="Expected what `project run inside` writes"):
        inside_parts(tmp_path)


@pytest.mark.parametrize("result", [{}, {"majority": {"accuracy": 0.5}, "layers": []}, 3])
def test_damaged_results(tmp_path: Path, result: Any) -> None:
    add(tmp_path, "probe_tag", result)
    with pytest.raises(CommandError, match="Expected what `project run inside` writes"):
        inside_parts(tmp_path)
    (tmp_path / "results/inside/probe_tag.json").write_text("{", encoding="utf-8")
    with pytest.raises(CommandError, match=r"probe_tag\.json: can't be used"):
        inside_parts(tmp_path)
