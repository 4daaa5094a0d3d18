"""What fewer bits cost a small biLM: the copies are those of `elmo pack`, and change more with fewer bits.

With 5 and with 4 bits the layers of so small a biLM may change alike.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import run
from embedded_case import TEXT, model_of

from scripts.bilms import measure_bits
from scripts.bilms.measure_bits import layer_changes, main
from scripts.bilms.measures import bilm_result_of
from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import ElmoError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf8")
    model_of().save(tmp_path / "files")
    return tmp_path


def test_copies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(measure_bits, "SENTENCES", 3)
    monkeypatch.setattr(measure_bits, "EMBEDDED", 2)
    monkeypatch.setattr(measure_bits, "check_corpora", lambda: None)
    monkeypatch.setattr(measure_bits, "tag_accuracies", lambda model: asked.append(model) or [0.5])
    main(Path("files"), Path("text.txt"))
    result = json.loads(bilm_result_of(folder, "bits").read_text(encoding="utf-8"))["result"]
    copies = result["copies"]
    assert [copy["setting"] for copy in copies] == [
        "--mantissa-bits 10",
        "--bits 8",
        "--bits 6",
        "--bits 5",
        "--bits 4",
    ]
    assert len(asked) == 6
    run("elmo", "pack", "files", "packed", "--bits", "6")
    assert copies[2]["bytes"] == {
        name: Path("packed", name).stat().st_size for name in ("weights.hdf5", "softmax.hdf5")
    }
    printed = json.loads(run("elmo", "evaluate", "packed", "text.txt", "--json"))
    assert copies[2]["perplexity"] == pytest.approx(printed["zero_state"]["mean"], rel=1e-6)
    for layer in range(3):
        changes = [copy["layer_changes"][layer] for copy in copies]
        assert 0 < changes[0] < changes[1] < changes[2] < min(changes[3:])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("files", r"text\.txt: 3 sentences\. Expected 1000 or more"),
        ("none", r"none: no such folder\. Expected the folder of a biLM with its softmax"),
    ],
)
def test_what_can_not_be_measured(folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, reason: str) -> None:
    monkeypatch.setattr(measure_bits, "check_corpora", lambda: None)
    with pytest.raises(ElmoError, match=reason):
        main(Path(model), Path("text.txt"))
    assert not (folder / "results").exists()


def test_layer_changes() -> None:
    """The norm of all tokens' changes, not the mean of their norms."""
    sentences = [["the", "dog"], ["it", "sat", "."]]
    run("elmo", "pack", "files", "packed", "--bits", "4")
    expected = []
    for layer in range(3):
        total = np.zeros(2)
        for sentence in sentences:
            before = ElmoEmbedder("files").embed_sentence(sentence)[layer].astype(np.float64)
            after = ElmoEmbedder("packed").embed_sentence(sentence)[layer].astype(np.float64)
            total += ((after - before) ** 2).sum(), (before**2).sum()
        expected.append((total[0] / total[1]) ** 0.5)
    assert layer_changes(Path("files"), Path("packed"), sentences) == pytest.approx(expected, rel=1e-4)
