"""spaCy's own commands on a pipeline with elmo."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from commands import in_fresh_environment, run, run_process
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin
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
    run_process("assemble", folder / "full.cfg", folder / "model", *files)
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


@pytest.mark.parametrize("component", ["tagger", "ner"])
def test_debug_model(listening: Path, component: str) -> None:
    gold = listening.parent / "gold.spacy"
    command = ["debug", "model", listening, component, "-P2", "--paths.train", gold, "--paths.dev", gold]
    result = CliRunner().invoke(app, [str(argument) for argument in command])
    override = "--nlp.after_pipeline_creation", '{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}'
    assert isinstance(result.exception, NotEmbeddedError)
    told = str(result.exception)
    assert f"or spacy pretrain, which run a component alone, add {override[0]} '{override[1]}'" in told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedLayersWarning)  # spaCy runs the elmo pipe too, when ner is initialised
        assert "model looks good" in run(*command, *override)


def test_fill_config_writes_every_setting(folder: Path) -> None:
    config = spacy.util.load_config(folder / "full.cfg")
    settings = dict(config["components"]["elmo"])
    assert settings.pop("factory") == "elmo"
    assert settings == Language.get_factory_meta("elmo").default_config


def test_assembled_pipelines_work(folder: Path) -> None:
    nlp = spacy.load(folder / "model")
    doc = nlp("We sat. On the bank.")
    assert doc._.elmo.shape == (7, 32)
    np.testing.assert_allclose(nlp("We sat.")._.elmo, doc._.elmo[:3], rtol=0, atol=1e-5)


def test_debug_config(folder: Path) -> None:
    texts = str(folder / "texts.spacy")
    output = run("debug", "config", str(folder / "full.cfg"), f"--paths.train={texts}", f"--paths.dev={texts}")
    assert "Config validation" in output
    broken = folder / "broken.cfg"
    broken.write_text((folder / "full.cfg").read_text(encoding="utf8").replace("store =", "stoer ="), encoding="utf8")
    output = run("debug", "config", str(broken), f"--paths.train={texts}", f"--paths.dev={texts}", code=1)
    assert "Config validation" in output
    assert "elmo -> stoer" in output, output[:600]


def test_info_and_find_function(folder: Path) -> None:
    assert "['sentencizer', 'elmo']" in run("info", str(folder / "model"))
    for start, registry, name in (
        (run, "architectures", "spacy-elmo.BiLM.v1"),
        (run_process, "span_getters", "spacy-elmo.windows.v1"),  # nothing of ours is imported there before
    ):
        assert f"Found registered function '{name}'" in start("find-function", name, "-r", registry)


def test_benchmark_speed(folder: Path) -> None:
    sizes = ("--batches", "30", "--batch-size", "2", "-w", "1")
    assert "Mean:" in run("benchmark", "speed", folder / "model", folder / "texts.spacy", *sizes)


def test_package(folder: Path) -> None:
    code = "import spacy; print(spacy.load('en_with_elmo')('We sat on the bank .')._.elmo.sum())"
    printed = in_fresh_environment(folder / "model", folder, code)
    expected = spacy.load(folder / "model")("We sat on the bank .")._.elmo.sum()
    assert float(printed) == pytest.approx(float(expected), abs=1e-4)
