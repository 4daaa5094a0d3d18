"""spaCy's own commands on a pipeline with elmo."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from commands import run
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_elmo.errors import NotEmbeddedError, UnusedLayersWarning

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
BASE = """
[nlp]
lang = "en"
pipeline = ["sentencizer", "elmo"]

[components]

[components.sentencizer]
factory = "sentencizer"

[components.elmo]
factory = "elmo"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds base.cfg, full.cfg filled from it, model assembled from that on golden files, and texts.spacy."""
    folder = tmp_path_factory.mktemp("spacy")
    (folder / "base.cfg").write_text(BASE, encoding="utf8")
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["We", "sat", "on", "the", "bank", "."], sent_starts=[True] + [False] * 5)] * 10
    DocBin(docs=docs).to_disk(folder / "texts.spacy")
    run("init", "fill-config", str(folder / "base.cfg"), str(folder / "full.cfg"))
    files = [
        f"--components.elmo.model.{setting}={GOLDEN / name}"
        for setting, name in (("options_file", "options.json"), ("weight_file", "weights.hdf5"))
    ]
    run("assemble", folder / "full.cfg", folder / "model", *files)
    return folder


@pytest.fixture(scope="module")
def listening(folder: Path) -> Path:
    """A config whose components listen, to the layers at the input and at the output of their networks."""
    path = folder / "tasks.cfg"
    run("elmo", "init-config", "--pipeline", "tagger,ner", "--optimize", "accuracy", path)
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["Ada", "sat", "."], tags=["N", "V", "P"], ents=["B-PER", "O", "O"])
    DocBin(docs=[doc] * 5).to_disk(folder / "gold.spacy")
    return path


def test_debug_model(listening: Path) -> None:
    gold = listening.parent / "gold.spacy"
    command = ["debug", "model", listening, "ner", "-P2", "--paths.train", gold, "--paths.dev", gold]
    result = CliRunner().invoke(app, [str(argument) for argument in command])
    override = "--nlp.after_pipeline_creation", '{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}'
    assert isinstance(result.exception, NotEmbeddedError)
    told = str(result.exception)
    assert f"or spacy pretrain, which run a component alone, add {override[0]} '{override[1]}'" in told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedLayersWarning)  # spaCy runs the elmo pipe too, when ner is initialised
        assert "model looks good" in run(*command, *override)


def test_assembled_pipelines_work(folder: Path) -> None:
    nlp = spacy.load(folder / "model")
    doc = nlp("We sat. On the bank.")
    assert doc._.elmo.shape == (7, 32)
    np.testing.assert_allclose(nlp("We sat.")._.elmo, doc._.elmo[:3], rtol=0, atol=1e-5)


# A pipeline trained on [x; ELMo] by spaCy's own commands

SENTENCES = ["Ann sat on the bank", "Bob left Rome", "Rome likes Ann", "The bank left Bob"]
NAMES = {"Ann": "PERSON", "Bob": "PERSON", "Rome": "GPE"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds gold.spacy, config.cfg by init-config, and out/model-best, trained for 40 steps."""
    trained = tmp_path_factory.mktemp("trained")
    nlp = spacy.blank("en")
    gold = DocBin()
    for _ in range(10):
        for sentence in SENTENCES:
            doc = nlp.make_doc(sentence)
            doc.ents = [Span(doc, t.i, t.i + 1, NAMES[t.text]) for t in doc if t.text in NAMES]
            for token in doc:
                token.tag_ = "NAME" if token.text in NAMES else "WORD"
            gold.add(doc)
    gold.to_disk(trained / "gold.spacy")
    run("elmo", "init-config", str(trained / "config.cfg"), "--pipeline", "tagger,ner")
    run("train", trained / "config.cfg", "--output", trained / "out", *settings(trained))
    return trained


def settings(trained: Path) -> list[str]:
    paths = [f"--paths.{name}={trained / 'gold.spacy'}" for name in ("train", "dev")]
    return [*paths, "--training.max_steps=40", "--training.eval_frequency=20"]


def test_it_has_learnt(trained: Path) -> None:
    doc = spacy.load(trained / "out" / "model-best")("Bob sat on Ann")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Bob", "PERSON"), ("Ann", "PERSON")]
    run("evaluate", trained / "out/model-best", trained / "gold.spacy", "--output", trained / "metrics.json")
    scores = json.loads((trained / "metrics.json").read_text(encoding="utf8"))
    assert scores["tag_acc"] == scores["ents_f"] == 1.0
    output = run("debug", "data", trained / "config.cfg", *settings(trained), code=1)
    assert "Pipeline can be initialized with data" in output
    assert "Low number of examples" in output  # which is why it exits with 1


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # spaCy leaves it to the garbage collector to close its files
def test_package(trained: Path) -> None:
    """An installed package brings us along."""
    run("package", trained / "out" / "model-best", trained, "--build", "none", "--name", "with_elmo")
    assert "spacy-elmo" in (trained / "en_with_elmo-0.0.0" / "meta.json").read_text(encoding="utf8")
