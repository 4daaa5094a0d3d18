"""`elmo weights`, through spaCy's own app: tables, JSON and pictures of mixes whose parameters are set by hand."""

import json
import math
import shutil
import sys
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.training import Example

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
FILES = {"options_file": str(GOLDEN / "options.json"), "weight_file": str(GOLDEN / "weights.hdf5")}
BILM = {"@architectures": "spacy-elmo.BiLM.v1", "width": 32, **FILES}
LISTENER = {"@architectures": "spacy-elmo.Listener.v1", "width": 32, "upstream": "elmo"}
PARAMETERS = {  # component and place: w and gamma
    ("tagger", "input"): ([0.0, math.log(2.0), 0.0], 0.5),
    ("tagger", "output"): ([-50.0, 0.0, -50.0], 2.0),
    ("ner", "input"): ([1.0, 1.0, 1.0], -1.25),
}


def tok2vec(source: dict[str, Any], both: bool) -> dict[str, Any]:
    elmo = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": source, "mix": {"@layers": "spacy-elmo.ScalarMix.v1"}}
    embed = {"width": 8, "attrs": ["NORM"], "rows": [50], "include_static_vectors": False}
    encode = {"width": 8, "depth": 1, "window_size": 1, "maxout_pieces": 2}
    return {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "embed": {"@architectures": "spacy.MultiHashEmbed.v2", **embed},
        "elmo": elmo,
        "encode": {"@architectures": "spacy.MaxoutWindowEncoder.v2", **encode},
        "output_elmo": deepcopy(elmo) if both else None,
    }


def initialize(nlp: Language) -> None:
    annotations = {"tags": ["N", "V", "N"], "entities": [(0, 1, "PERSON")]}
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("I like eggs"), annotations)])


def places(nlp: Language) -> dict[tuple[str, str], Any]:
    """The Thinc layer of each mix, reached through the refs of ElmoTok2Vec."""
    found = {}
    for name in ("tagger", "ner"):
        network = next(node for node in nlp.get_pipe(name).model.walk() if node.has_ref("elmo"))
        for place, ref in (("input", "elmo"), ("output", "output_elmo")):
            if network.has_ref(ref):
                found[name, place] = next(n for n in network.get_ref(ref).walk() if n.name == "scalar_mix")
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with two listeners and an ner with a biLM of its own; their mixes as in PARAMETERS."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"model": FILES})
    nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec(LISTENER, True)}})
    nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec(BILM, False)}})
    initialize(nlp)
    mixes = places(nlp)
    assert mixes.keys() == PARAMETERS.keys()
    for key, (w, gamma) in PARAMETERS.items():
        mixes[key].set_param("w", np.array(w, "f"))
        mixes[key].set_param("gamma", np.array([gamma], "f"))
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
