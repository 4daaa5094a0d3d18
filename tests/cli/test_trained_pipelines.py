"""A pipeline trained on [x; ELMo] by spaCy's own commands: `spacy train` in processes of its own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import spacy
from commands import in_fresh_environment, run, run_process
from spacy.tokens import DocBin, Span

pytestmark = pytest.mark.slow

SENTENCES = ["Ann sat on the bank", "Bob left Rome", "Rome likes Ann", "The bank left Bob"]
NAMES = {"Ann": "PERSON", "Bob": "PERSON", "Rome": "GPE"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds gold.spacy, config.cfg by init-config, and out/model-best, trained for 40 steps."""
    folder = tmp_path_factory.mktemp("trained")
    nlp = spacy.blank("en")
    gold = DocBin()
    for _ in range(10):
        for sentence in SENTENCES:
            doc = nlp.make_doc(sentence)
            doc.ents = [Span(doc, t.i, t.i + 1, NAMES[t.text]) for t in doc if t.text in NAMES]
            for token in doc:
                token.tag_ = "NAME" if token.text in NAMES else "WORD"
            gold.add(doc)
    gold.to_disk(folder / "gold.spacy")
    run("elmo", "init-config", str(folder / "config.cfg"), "--pipeline", "tagger,ner")
    run_process("train", folder / "config.cfg", "--output", folder / "out", *settings(folder))
    return folder


def settings(folder: Path, steps: int = 40) -> list[str]:
    gold = str(folder / "gold.spacy")
    paths = [f"--paths.train={gold}", f"--paths.dev={gold}"]
    return [*paths, f"--training.max_steps={steps}", "--training.eval_frequency=20"]


def test_it_has_learnt(folder: Path) -> None:
    doc = spacy.load(folder / "out" / "model-best")("Bob sat on Ann")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Bob", "PERSON"), ("Ann", "PERSON")]
    assert [token.tag_ for token in doc] == ["NAME", "WORD", "WORD", "NAME"]


def test_evaluate_and_benchmark_accuracy(folder: Path) -> None:
    model, gold, metrics = (str(folder / name) for name in ("out/model-best", "gold.spacy", "metrics.json"))
    run("evaluate", model, gold, "--output", metrics)
    scores = json.loads(Path(metrics).read_text(encoding="utf8"))
    assert scores["tag_acc"] == scores["ents_f"] == 1.0
    assert "NER F 100.00" in run("benchmark", "accuracy", model, gold)


def test_benchmark_speed(folder: Path) -> None:
    model, gold = str(folder / "out" / "model-best"), str(folder / "gold.spacy")
    assert "Mean:" in run("benchmark", "speed", model, gold, "--batches", "30", "--batch-size", "2", "-w", "1")


def test_debug_data(folder: Path) -> None:
    output = run("debug", "data", folder / "config.cfg", *settings(folder), code=1)
    assert "Pipeline can be initialized with data" in output
    assert "Low number of examples" in output  # which is why it exits with 1


def test_assemble_from_sources(folder: Path) -> None:
    source = str(folder / "out" / "model-best")
    text = '[nlp]\nlang = "en"\npipeline = ["elmo", "ner"]\n\n[components]\n'
    text += "".join(f'\n[components.{name}]\nsource = "{source}"\n' for name in ("elmo", "ner"))
    (folder / "sourced.cfg").write_text(text, encoding="utf8")
    run("assemble", str(folder / "sourced.cfg"), str(folder / "sourced"))
    doc = spacy.load(folder / "sourced")("Bob sat on Ann")
    assert [ent.text for ent in doc.ents] == ["Bob", "Ann"]


def test_weights(folder: Path) -> None:
    picture = folder / "weights.png"
    printed = run("elmo", "weights", str(folder / "out" / "model-best"), "--json", "--plot", str(picture))
    assert {mix["component"] for mix in json.loads(printed)} == {"tagger", "ner"}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_package(folder: Path) -> None:
    code = "import spacy; print([ent.text for ent in spacy.load('en_with_elmo')('Bob sat on Ann').ents])"
    assert in_fresh_environment(folder / "out" / "model-best", folder, code).strip() == "['Bob', 'Ann']"


def weights_of(model: Path) -> list[Any]:
    nlp = spacy.load(model)
    nodes = [node for name in ("tagger", "ner") for node in nlp.get_pipe(name).model.walk()]
    return [node.get_param(name).tobytes() for node in nodes for name in node.param_names if node.has_param(name)]


def test_runs_that_share_a_cache(folder: Path) -> None:
    """One is killed while it fills the file; two at once fill it and read it; a later one finds all: equal weights."""
    cache = folder / "layers.cache"
    more = [*settings(folder, 10), f"--components.elmo.cache_file={cache}"]

    def start(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "spacy", "train", str(folder / "config.cfg"), "--output", str(folder / name)]
        return subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    killed = start("killed")
    for _ in range(600):
        if cache.exists() or killed.poll() is not None:
            break
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    both = [start("one"), start("two")]
    assert [process.wait() for process in both] == [0, 0]
    run("train", folder / "config.cfg", "--output", folder / "later", *more)
    one, two, later = (weights_of(folder / name / "model-last") for name in ("one", "two", "later"))
    assert one == two == later
