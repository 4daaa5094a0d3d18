"""`elmo weights`, through spaCy's own app: tables, JSON and pictures of mixes whose parameters are set by hand."""

import json
import math
import shutil
import sys
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
import spacy
from pipelines import files
from tasks import add_task, tok2vec, train, with_tasks

PARAMETERS = {  # component and place: w and gamma
    ("tagger", "input"): ([0.0, math.log(2.0), 0.0], 0.5),
    ("tagger", "output"): ([-50.0, 0.0, -50.0], 2.0),
    ("ner", "input"): ([1.0, 1.0, 1.0], -1.25),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with two listeners and an ner with a biLM of its own; their mixes as in PARAMETERS."""
    nlp = with_tasks("tagger", block=tok2vec(output=True, upstream="elmo"))
    own = tok2vec()
    own["elmo"]["source"] = {"@architectures": "spacy-elmo.BiLM.v1", "width": 32} | files("random_a")["model"]
    add_task(nlp, "ner", own)
    train(nlp, steps=0)
    for (name, place), (w, gamma) in PARAMETERS.items():
        network = next(node for node in nlp.get_pipe(name).model.walk() if node.has_ref("elmo"))
        mix = network.get_ref({"input": "elmo", "output": "output_elmo"}[place]).layers[1]
        mix.set_param("w", np.array(w, "f"))
        mix.set_param("gamma", np.array([gamma], "f"))
    path = tmp_path_factory.mktemp("weights") / "model"
    nlp.to_disk(path)
    return path


run = partial(commands.run, "elmo", "weights")
error = partial(run, code=1)


def test_the_table(saved: Path) -> None:
    output = run(saved)
    for row in (
        "component place source layer 0 layer 1 layer 2 gamma",
        "tagger input elmo 0.250 0.500 0.250 0.500",
        "tagger output elmo 0.000 1.000 0.000 2.000",
        "ner input biLM 0.333 0.333 0.333 -1.250",
    ):
        assert row in output


def test_json_is_alone_and_holds_the_parameters(saved: Path, tmp_path: Path) -> None:
    mixes = json.loads(run(saved, "--json", "--plot", tmp_path / "weights.png"))
    assert [(mix["component"], mix["place"]) for mix in mixes] == list(PARAMETERS)
    assert [mix["source"] for mix in mixes] == ["elmo", "elmo", "biLM"]
    for mix, (w, gamma) in zip(mixes, PARAMETERS.values()):
        np.testing.assert_allclose(mix["w"], w, rtol=1e-6)
        assert mix["gamma"] == gamma
        exponentials = [math.exp(x) for x in w]
        np.testing.assert_allclose(mix["weights"], np.divide(exponentials, sum(exponentials)), rtol=0, atol=1e-6)


def test_what_the_picture_shows(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (drawn.append(self), savefig(self, *a, **k)))
    output = run(saved, "--plot", tmp_path / "weights.png")
    assert "weights.png: the picture of it" in output
    assert [path.name for path in tmp_path.iterdir()] == ["weights.png"]
    assert (tmp_path / "weights.png").read_bytes().startswith(b"\x89PNG")
    axes = drawn[0].axes[0]
    texts = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
    assert [texts[0, k] for k in range(3)] == ["0.25", "0.50", "0.25"]
    assert [texts[2, k] for k in range(3)] == ["0.33", "0.33", "0.33"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["tagger, input", "tagger, output", "ner, input"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["layer 0", "layer 1", "layer 2"]
    (gammas,) = axes.child_axes
    assert [label.get_text() for label in gammas.get_yticklabels()] == ["gamma 0.50", "gamma 2.00", "gamma -1.25"]
    np.testing.assert_allclose(axes.images[0].get_array()[0], [0.25, 0.5, 0.25], atol=1e-6)


@pytest.mark.slow
def test_pictures_that_cannot_be_drawn(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.png").write_text("mine", encoding="utf8")
    assert "no earlier command of this kind" in error(saved, "--plot", tmp_path / "mine.png")
    assert "does not exist" in error(saved, "--plot", tmp_path / "no" / "weights.png")
    assert "'doc' can't be drawn" in error(saved, "--plot", tmp_path / "weights.doc")
    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "--plot needs matplotlib" in error(saved, "--plot", tmp_path / "weights.png")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"mine.png": "mine"}


@pytest.mark.slow
def test_what_has_no_mix(saved: Path, tmp_path: Path) -> None:
    trained = tmp_path / "out" / "model-best"
    trained.parent.mkdir()
    spacy.blank("en").to_disk(trained)
    shutil.copytree(saved, tmp_path / "cut")
    (tmp_path / "cut" / "ner" / "moves").write_bytes(b"\xff")
    for path, told in (
        (trained, "no mix of a biLM's layers in the components (none)"),
        (trained.parent, "the folder that spacy train wrote pipelines to. Expected one of them: give"),
        (tmp_path / "cut", "can't be loaded ("),
        ("no_such_package", "no_such_package: can't be loaded ("),
        ("en_core", "en_core: the name of a biLM. Expected a saved pipeline"),
    ):
        assert told in error(path)
