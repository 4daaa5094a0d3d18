"""`elmo embed`, through spaCy's own app."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import spacy
from spacy.cli._util import app
from typer.testing import CliRunner, Result

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo import ElmoEmbedder

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
FILES = ("--options-file", str(GOLDEN / "options.json"), "--weight-file", str(GOLDEN / "weights.hdf5"))
LINES = ["the cat sat .", "a dog ran", "the cat sat .", "yes"]


def invoke(*arguments: object, code: int = 0, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(app, ["elmo", "embed", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    return result


def run(*arguments: object, code: int = 0, stdin: bytes | None = None) -> str:
    return " ".join(invoke(*arguments, code=code, stdin=stdin).output.split())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf8")
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "vectors.hdf5"


@pytest.fixture(scope="module")
def embedder() -> ElmoEmbedder:
    return ElmoEmbedder(GOLDEN / "options.json", GOLDEN / "weights.hdf5")


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: dataset[()] for name, dataset in file.items() if name != "sentence_to_index"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_progress_bar(output: Path, embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    embedder.embed_lines(LINES, output, progress=True)
    assert "4/4" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    embedder.embed_lines(LINES, output, progress=True)


def test_the_options_of_allennlps_command(text: Path, output: Path, embedder: ElmoEmbedder) -> None:
    """AllenNLP 0.9 declares --vocab-path, and reads it nowhere. Its logs have no carriage returns."""
    options = ["--all", "--vocab-path", output.parent / "vocab.txt", "--file-friendly-logging", "--cuda-device", -1]
    options += ["--include-package", "first.library", "--include-package", "second"]
    shown = invoke(text, output, *options, *FILES).output
    assert "\r" not in shown
    assert any("4/4" in line for line in shown.splitlines())
    assert "--vocab-path is not used, as in AllenNLP" in " ".join(shown.split())
    assert "--include-package is not used: first.library, second is not imported" in " ".join(shown.split())
    assert not (output.parent / "vocab.txt").exists()
    for number, vectors in enumerate(embedder.embed_batch([line.split() for line in LINES])):
        np.testing.assert_allclose(arrays_in(output)[str(number)], vectors, atol=1e-5)


@pytest.mark.parametrize("option", ["--all", "--top", "--average", None])
def test_formats(text: Path, output: Path, embedder: ElmoEmbedder, option: str | None) -> None:
    result = invoke(text, output, *FILES, *([option] if option else []), "--batch-size", 3)
    assert "4 sentences," in " ".join(result.stdout.split())
    assert "\r" not in result.stderr  # no progress bar if it is not a terminal
    found = arrays_in(output)
    assert sorted(found) == ["0", "1", "2", "3"]
    for i, line in enumerate(LINES):
        layers = embedder.embed_sentence(line.split())
        expected = {"--top": layers[-1], "--average": layers.mean(0)}.get(option or "", layers)
        np.testing.assert_allclose(found[str(i)], expected, atol=1e-5)
    with h5py.File(output) as file:
        assert json.loads(file["sentence_to_index"][0]) == {"the cat sat .": "2", "a dog ran": "1", "yes": "3"}


def test_the_embedded_bilm(text: Path, output: Path) -> None:
    run(text, output, "--forget-sentences", "--cuda-device", -1)
    assert arrays_in(output)["0"].shape == (3, 4, 256)
    with h5py.File(output) as file:
        assert "sentence_to_index" not in file


def test_standard_input_and_sentence_keys(output: Path, embedder: ElmoEmbedder) -> None:
    stdin = "\ufeffnaïve words\r\n東京 .\r\n".encode()
    run("-", output, *FILES, "--use-sentence-keys", "--top", stdin=stdin)
    found = arrays_in(output)
    assert set(found) == {"naïve words", "東京 ."}
    np.testing.assert_allclose(found["東京 ."], embedder.embed_sentence(["東京", "."])[-1], atol=1e-5)
    assert "standard input: line 2 is not UTF-8" in run("-", output, *FILES, stdin=b"a\n\xff\n", code=1)


def test_stateful(text: Path, output: Path) -> None:
    run(text, output, *FILES, "--stateful", "--batch-size", 2)
    embedder = ElmoEmbedder(GOLDEN / "options.json", GOLDEN / "weights.hdf5", stateful=True)
    expected = list(embedder.embed_sentences([line.split() for line in LINES], 2))
    found = arrays_in(output)
    for i, array in enumerate(expected):
        np.testing.assert_allclose(found[str(i)], array, atol=1e-5)
    assert np.abs(found["0"] - found["2"]).max() > 1e-3


def test_precision(text: Path, output: Path, embedder: ElmoEmbedder) -> None:
    run(*FILES, "--precision", "auto", text, output)
    exact = embedder.embed_batch([line.split() for line in LINES])
    for name, array in arrays_in(output).items():
        assert np.linalg.norm(array - exact[int(name)]) <= 0.02 * np.linalg.norm(exact[int(name)])
    said = run(*FILES, "--precision", "fp16", text, output, code=1)
    assert "fp16" in said
    assert "float32, bfloat16, auto" in said


def test_another_language_is_told(text: Path, output: Path) -> None:
    warning = "--lang is de, but the biLM was trained on the language en"
    assert warning in run(text, output, "--lang", "de")
    for options in ([], ["--lang", "en"], ["--lang", "xx"], ["--lang", "de", *FILES]):  # these files have no card
        output.unlink()
        assert "was trained on" not in run(text, output, *options)


def test_cut_words_are_told(text: Path, output: Path) -> None:
    text.write_text("a " + "b" * 60 + "\nc " + "d" * 60)
    assert "tokens with more than 48 bytes, of which the biLM did not see the rest: 2" in run(text, output, *FILES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "foo"), "engine is 'foo'. Expected one of local, ray"),
        (("--address", "auto"), "address is 'auto'"),
        (("--workers", 2), "is one file, which one process writes"),
    ],
)
def test_processes_of_one_file_are_refused(text: Path, output: Path, options: tuple[object, ...], message: str) -> None:
    assert message in run(text, output, *options, *FILES, code=1)
    assert not output.exists()


def test_empty_lines_are_told(text: Path, output: Path, tmp_path: Path) -> None:
    """The datasets are numbered without them."""
    text.write_text("a b.\n\n \na dog.\n")
    warning = "texts without a word, such as empty lines, which were left out: 2"
    assert warning in run(text, output, "--lang", "en", "--quiet", *FILES)
    assert sorted(arrays_in(output)) == ["0", "1"]
    assert arrays_in(output)["1"].shape[1] == 3  # a, dog, .
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": ""}\n{"tokens": []}\n{"text": "b"}\n')
    assert warning in run(tmp_path / "a.jsonl", output, *FILES)
    text.write_text("a b.\nc d.\n")
    assert "without a word" not in run(text, output, "--lang", "en", *FILES)
    text.write_text("a b.\n\nc d.\n")
    told = run(text, output, *FILES, code=1)
    assert "these lines are empty: 2" in told
    assert "give --lang CODE" in told
    assert "texts without a word, such as empty lines, which were left out: 1" in run(text, output, "-l", "en", *FILES)


# Pipelines


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved pipelines: with no elmo pipe, with one, and with two."""
    folder = tmp_path_factory.mktemp("pipelines")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(folder / "none")
    files = {"options_file": str(GOLDEN / "options.json"), "weight_file": str(GOLDEN / "weights.hdf5")}
    nlp.add_pipe("elmo", config={"model": files})
    nlp.to_disk(folder / "one")
    nlp.add_pipe("elmo", name="second", config={"attr": "second"})
    nlp.to_disk(folder / "two")
    return folder


@pytest.mark.slow
def test_pipelines(pipelines: Path, text: Path, output: Path, embedder: ElmoEmbedder) -> None:
    expected = embedder.embed_sentence(LINES[0].split())
    for arguments in ((pipelines / "one",), (pipelines / "two", "--pipe", "elmo")):
        run(text, output, "--pipeline", *arguments)
        np.testing.assert_allclose(arrays_in(output)["0"], expected, atol=1e-5)
    run(text, output, "--pipeline", pipelines / "two", "--pipe", "second")
    assert arrays_in(output)["0"].shape == (3, 4, 256)


def test_a_model_in_one_word(pipelines: Path, text: Path, output: Path, tmp_path: Path, embedder: ElmoEmbedder) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run" / "model-best")
    (tmp_path / "run" / "config.cfg").write_text("")
    for model in (GOLDEN, tmp_path / "run", pipelines / "one"):
        run(text, output, "--model", model)
        np.testing.assert_allclose(arrays_in(output)["0"], embedder.embed_sentence(LINES[0].split()), atol=1e-5)
    run(text, output, "--model", "en_mini")
    assert arrays_in(output)["0"].shape == (3, 4, 256)
    output.unlink()
    for arguments, part in (
        ((GOLDEN, "--pipeline", pipelines / "one"), "--model and --pipeline"),
        ((GOLDEN, *FILES), "--model and --options-file"),
        ((GOLDEN, "--pipe", "elmo"), "no pipeline was given"),
        ((tmp_path / "gone",), "no folder, no installed pipeline"),
        (("en_core_web_sm",), "--model is 'en_core_web_sm', which"),
        ((tmp_path,), "options.json: no such file"),
        ((pipelines / "none",), "no elmo pipe"),
    ):
        assert part in run(text, output, "--model", *arguments, code=1)
    assert list(output.parent.iterdir()) == []


def test_pipelines_that_are_refused(pipelines: Path, text: Path, output: Path) -> None:
    for arguments, part in (
        (("--pipeline", pipelines / "none"), "no elmo pipe; the pipeline has sentencizer"),
        (("--pipeline", pipelines / "two"), "several elmo pipes, elmo, second"),
        (("--pipeline", pipelines / "two", "--pipe", "third"), "--pipe is 'third'"),
        (("--pipeline", pipelines / "gone"), "can't be loaded"),
        (("--pipeline", pipelines / "one", *FILES), "--pipeline and --options"),
        (("--pipeline", pipelines / "one", *FILES[2:]), "--pipeline and --weight"),
        (("--pipe", "elmo"), "no pipeline was given"),
    ):
        assert part in run(text, output, *arguments, code=1)
    assert list(output.parent.iterdir()) == []


# Refusals


def test_other_refusals(text: Path, output: Path, tmp_path: Path) -> None:
    for arguments, part in (
        ((text, output, "--all", "--top"), "--all and --top were given together"),
        ((text, output, "--all", "--layers", "top"), "Expected one of --layers, --all, --top and --average"),
        ((tmp_path / "gone.txt", output), "no such file"),
        ((output.parent, output), "a folder without files"),
        (("-", "-", output), "- is given twice"),
        ((text, tmp_path / "gone" / "x.hdf5"), "does not exist"),
        ((text, tmp_path), "which no earlier command"),
        ((text, "/dev/null"), "is no folder. Expected the name of a folder"),
        ((text, text, "--format", "hdf5"), "the file to write are the same"),
        ((text, text), "the end of its name tells no format"),
        ((text, tmp_path / "a.npz"), "the end of its name tells no format"),
        ((text, "-"), "no vectors can be written"),
        ((text, output, "--format", "parquet"), "tells hdf5, but format"),
        ((text, output, "--workers", 2), "is one file, which one process writes"),
        ((text, output, "--sentence"), "which hdf5 can't hold"),
        ((text, output, "--dtype", "float16"), "is float32"),
        ((text, output.parent, "--stateful"), "--stateful is for one HDF5 file"),
        ((text, output.parent, "--batch-size", 3), "--batch-size is for one HDF5 file"),
        ((text, output.parent, "--layers", "bottom"), "layers is 'bottom'"),
        ((text, output, *FILES[:2]), "weight_file is not"),
        ((text, output, "--gpu-id", 99), "the GPU 99 was asked for"),
        ((text, output, "--cuda-device", 99), "the GPU 99 was asked for"),
        ((text, output, "--use-sentence-keys"), "the lines 1 and 3 are the same"),
        ((text, output, "--options-file", tmp_path / "gone.json", *FILES[2:]), "no such file"),
    ):
        assert part in run(*arguments, code=1)
    for option in ("--batch-size", "--gpu-id"):
        assert option in run(text, output, option, -2, code=2)
    text.write_text("a\n\nb\n")
    assert "these lines are empty: 2" in run(text, output, code=1)
    assert "write another file than HDF5, such as a .spacy file" in run(text, output, code=1)
    text.write_text("")
    assert "empty. Expected text" in run(text, output, code=1)
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize("option", ["--all", "--top", "--average"])
def test_a_name_without_an_end_and_the_options_of_allennlp(text: Path, output: Path, option: str) -> None:
    """AllenNLP's command writes HDF5 whatever the name is."""
    output = output.with_suffix("")
    message = run(text, output, option, *FILES, code=1)
    assert f"{option} was given, as in AllenNLP" in message
    assert "Expected --format hdf5" in message
    assert list(output.parent.iterdir()) == []
    run(text, output, option, *FILES, "--format", "hdf5")
    assert sorted(arrays_in(output)) == ["0", "1", "2", "3"]
    assert "add --format hdf5" in run(text, output.parent / "other", *FILES, "--use-sentence-keys", code=1)
    run(text, output.parent / "shards", option, *FILES, "--format", "parquet")
    assert (output.parent / "shards").is_dir()


def test_the_weights_are_not_overwritten(text: Path, tmp_path: Path) -> None:
    weights = shutil.copy(GOLDEN / "weights.hdf5", tmp_path / "weights.hdf5")
    message = run(text, weights, *FILES[:2], "--weight-file", weights, code=1)
    assert "the file to write are the same" in message


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_was_there_stays(
    text: Path, output: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    output.write_text("before")

    def fail(*arguments: object, **options: object) -> None:
        raise error() if error is KeyboardInterrupt else error("on the way")  # Ctrl-C gives no arguments

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    message = run(text, output, *FILES, code=130 if error is KeyboardInterrupt else 1)
    assert ("stopped" if error is KeyboardInterrupt else "on the way") in message
    assert output.read_text() == "before"
    assert list(output.parent.iterdir()) == [output]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped(text: Path, output: Path, number: signal.Signals) -> None:
    text.write_text("a sentence of some words\n" * 50_000)
    command = [sys.executable, "-m", "spacy", "elmo", "embed", str(text), str(output), "--average"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    deadline = time.monotonic() + 120
    while not any(output.parent.iterdir()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]
    process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, printed
    assert "Traceback" not in printed
    assert "stopped" in printed
    assert list(output.parent.iterdir()) == []
