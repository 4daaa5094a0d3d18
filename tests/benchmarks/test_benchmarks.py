"""Each benchmark says how it is run; limits, tables, the peers' protocol and hashes are worked out by hand."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from embedded_case import TEXT, model_of

from benchmarks import allennlp_perplexity, same_bits, tokens_per_second, without_parts
from benchmarks.common import Measured, Rounds, options_of
from benchmarks.tokens_per_second import MATRICES, VECTORS, Side, rows_of
from spacy_elmo.formats import batch_to_ids_array

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HELPERS = ("__init__", "common", "peers", "peer_worker")
MODEL = model_of()
QUIET, BUSY = 0.02, 1.4  # cores of other processes
ENGINE, PIPE = Side("the engine", "float32"), Side("nlp.pipe", "float32")
ONE, OTHER = Side("simple_elmo", "float32", "elmo"), Side("AllenNLP", "float32", "elmo")
ROBERTA = Side("RoBERTa-base", "float32", "other")
LIMITS = [Side(name, "float32", "limit") for name in (MATRICES, VECTORS)]


@pytest.mark.parametrize("name", sorted({path.stem for path in BENCHMARKS.glob("*.py")} - set(HELPERS)))
def test_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name}").main()
    assert ended.value.code == 0
    command = "benchmarks/same_bits.py" if name == "same_bits" else f"-m benchmarks.{name}"
    assert f"python {command}" in capsys.readouterr().out


@pytest.mark.parametrize("patch", [patch for patches in without_parts.OFF.values() for patch in patches])
def test_what_is_switched_off_is_there(patch: Callable[[], AbstractContextManager[object]]) -> None:
    with patch():
        pass


def test_operations_of_the_original_size(monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_of("original")
    # two directions and layers of (512 + 512) x 16384 and 4096 x 512
    assert tokens_per_second.lstm_flop(options) == 2 * 75_497_472
    # 8,808,448 in the convolutions, four highway matrices of 2048 x 2048, 2048 x 512
    assert tokens_per_second.encoder_flop(options) == 2 * (8_808_448 + 16_777_216 + 1_048_576)
    monkeypatch.setattr(tokens_per_second, "LARGE", 100)
    monkeypatch.setattr(tokens_per_second, "median_seconds", lambda run, seconds: 2e6 / 204.263424e6)
    # each word distinct: 204 MFLOP a token; none: 151
    assert tokens_per_second.matrix_limit(options, "float32", 10, 10, 1.0) == pytest.approx(1)
    assert tokens_per_second.matrix_limit(options, "float32", 10, 0, 1.0) == pytest.approx(204.263424 / 150.994944)


def quiet(*rates: float) -> Rounds:
    return [Measured(value, QUIET) for value in rates]


def test_rows_have_medians_and_ratios_of_the_same_round() -> None:
    sides = {
        ENGINE: quiet(300, 400, 500),
        ONE: quiet(100, 100, 250),
        PIPE: quiet(270, 380, 450),
        OTHER: quiet(90, 120, 95),
        ROBERTA: quiet(50, 50, 50),
        LIMITS[0]: quiet(600, 500, 1000),
        LIMITS[1]: quiet(400, 500, 625),
    }
    rows = rows_of(32, sides)
    assert [one["what"] for one in rows] == [side.title for side in (ENGINE, PIPE, ONE, OTHER, ROBERTA)]
    engine, pipe, one = rows[:3]
    assert engine["tokens/s"] == "400"
    assert engine["times the faster ELMo peer"] == "3.00 (2.00 to 4.00)"
    assert engine["times RoBERTa-base"] == "8.00 (6.00 to 10.00)"
    assert engine["of the matrix limit"] == "50% (50% to 80%)"
    assert engine["of the matrix-vector rate"] == "80% (75% to 80%)"
    assert engine["of the engine"] == ""
    assert pipe["of the engine"] == "90% (90% to 95%)"
    assert one["times the faster ELMo peer"] == ""


def test_disturbed_rounds_are_left_out_if_there_are_others() -> None:
    series = [Measured(1, BUSY), *quiet(5, 7)]
    found = rows_of(8, {ENGINE: series, ONE: quiet(2, 2, 2)})[0]
    assert found["tokens/s"] == "6"
    assert found["times the faster ELMo peer"] == "3.00 (2.50 to 3.50)"
    assert found["others' cores"] == "1.40, 1 of 3 rounds disturbed"
    found = rows_of(8, {ENGINE: series[:1], ONE: quiet(2)})[0]
    assert found["times the faster ELMo peer"] == "0.50, disturbed"


WORKER = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from pathlib import Path
from peer_worker import serve

def embed(part):
    print("a library's noise")
    assert len(part) <= 2
    return np.array([[len(word) for word in sentence] for sentence in part], float)

load = lambda folder, sentences, largest, threads: (embed, dict(n=len(sentences), given=[largest, threads]))
serve(load, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


def test_protocol_of_the_peers(tmp_path: Path) -> None:
    sentences = [["a", "bank"], ["the", "bank"], ["it", "rains"]]
    (tmp_path / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    file = tmp_path / "first vectors.npy"
    command = [sys.executable, "-c", WORKER.format(folder=str(BENCHMARKS)), str(tmp_path), "2", "1"]
    orders = f"first 2 {file}\nrun 3 2\n"
    result = subprocess.run(command, input=orders, capture_output=True, text=True, encoding="utf8", check=True)
    about, saved, ran = map(json.loads, result.stdout.splitlines())
    assert about == {"n": 3, "given": [2, 1]}
    assert saved == {"saved": True}
    assert ran["seconds"] > 0
    assert np.load(file).tolist() == [[1, 4], [3, 4]]


def activations(folder: Path, sentences: Sequence[Sequence[str]]) -> Iterator[npt.NDArray[np.float64]]:
    """As AllenNLP's worker gives them, by our own network."""
    for sentence in sentences:
        with torch.no_grad():
            output = MODEL.bilm(torch.from_numpy(batch_to_ids_array([sentence], 20)), MODEL.bilm.lstm.zero_state(1))
        yield output.layers[-1, 0, : len(sentence) + 2].double().numpy()


def test_perplexities_on_our_own_activations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allennlp_perplexity, "activations", activations)
    MODEL.save(tmp_path / "files")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    for n, sentences in ((2, 2), (100, 3)):
        ours, theirs = allennlp_perplexity.compare(str(tmp_path / "files"), tmp_path / "text.txt", n)
        assert ours.sentences == sentences
        assert theirs == pytest.approx(list(ours.perplexities), rel=1e-6)
        assert not np.isclose(theirs[0], theirs[1])


@pytest.mark.slow
def test_same_bits_tell_other_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = same_bits.sentences(3, 0)
    found = same_bits.layers_of(tmp_path, "mini", words, 2)
    assert found == same_bits.layers_of(tmp_path, "mini", words, 2)
    assert found != same_bits.layers_of(tmp_path, "mini", words[:2], 2)
    assert same_bits.digest(np.float32([1])) != same_bits.digest(np.float64([1]))
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"layers": found, "gone": "x"}), encoding="utf8")
    assert same_bits.compare({"layers": found}, other) == 0
    assert same_bits.compare({"layers": "another"}, other) == 1
    assert "DIFFERENT: layers" in capsys.readouterr().out
