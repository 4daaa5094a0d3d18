"""Saved pipelines hold their biLM and give the same bits; damaged or hostile ones leave the pipe as it was."""

import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from pipelines import pipeline
from spacy.language import Language
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain

from spacy_elmo.errors import ElmoError, WeightsError
from spacy_elmo.pipeline.elmo import ElmoPipe

GOLDEN = Path(__file__).parents[1] / "golden"
TEXT = "Stick to the river bank ."
Change = Callable[[dict[str, Any]], object]


def make(name: str) -> tuple[Language, ElmoPipe]:
    nlp = pipeline(name)
    nlp.initialize()
    return nlp, nlp.get_pipe("elmo")


make_once = cache(make)


@cache
def unchanged() -> bytes:
    return make_once("random_a")[1].to_bytes()


@pytest.fixture(scope="module")
def saved() -> bytes:
    return make("random_b")[1].to_bytes()


def opened(saved: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The three messages: the pipe's, in it the model's, in it the biLM's."""
    pipe = srsly.msgpack_loads(saved)
    model = srsly.msgpack_loads(pipe["model"])
    return pipe, model, srsly.msgpack_loads(model["shims"][0][0])


def closed(pipe: dict[str, Any], model: dict[str, Any], bilm: dict[str, Any]) -> bytes:
    model["shims"][0][0] = srsly.msgpack_dumps(bilm)
    pipe["model"] = srsly.msgpack_dumps(model)
    return srsly.msgpack_dumps(pipe)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipes") / "pipe"
    make_once("random_a")[1].to_disk(path)
    return path


def assert_refused(data: bytes, folder: Path) -> None:
    """As bytes, and as a folder: the pipe stays as it was."""
    _, pipe = make_once("random_a")
    before = unchanged()
    (folder / "model").write_bytes(srsly.msgpack_loads(data)["model"])
    for load in (lambda: pipe.from_bytes(data), lambda: pipe.from_disk(folder)):
        with pytest.raises(ElmoError, match="the saved biLM"):
            load()
        assert pipe.to_bytes() == before
    assert gc.isenabled()


def test_undamaged(saved: bytes) -> None:
    nlp, pipe = make("random_a")
    pipe.from_bytes(closed(*opened(saved)))
    assert pipe.to_bytes() == saved
    assert (nlp(TEXT)._.elmo_layers == make_once("random_b")[0](TEXT)._.elmo_layers).all()


BIAS = "lstm.layers.0.bias"


@pytest.mark.parametrize(
    "change",
    [
        lambda bilm: bilm.pop("options"),
        lambda bilm: bilm.pop("arrays"),
        lambda bilm: bilm.update(more=1),
        lambda bilm: bilm.update(arrays=[1]),
        lambda bilm: bilm.update(options=[1]),
        lambda bilm: bilm["options"].pop("lstm"),
        lambda bilm: bilm["options"]["lstm"].update(dim="16"),
        lambda bilm: bilm["options"]["lstm"].update(dim=np.arange(3)),
        lambda bilm: bilm["options"]["lstm"].update(n_layers=np.int64(2)),
        lambda bilm: bilm["options"]["char_cnn"].update(filters=[[1, 2]] * 65),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS].astype(">f4")[:, :-1]}),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS].astype(np.float64)}),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS].tolist()}),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS] * np.float32("nan")}),
        lambda bilm: bilm["arrays"].update({BIAS: None}),
        lambda bilm: bilm["arrays"].pop(BIAS),
        lambda bilm: bilm["arrays"].update({"more": bilm["arrays"][BIAS]}),
        lambda bilm: bilm["arrays"].update({BIAS: {"b": 1}}),
        lambda bilm: bilm["arrays"].update({f"a{i}": i for i in range(2000)}),
    ],
)
def test_damaged_biLMs(change: Change, saved: bytes, folder: Path) -> None:
    pipe, model, bilm = opened(saved)
    change(bilm)
    assert_refused(closed(pipe, model, bilm), folder)


def test_the_other_byte_order(saved: bytes) -> None:
    pipe, model, bilm = opened(saved)
    bilm["arrays"] = {name: array.astype(">f4") for name, array in bilm["arrays"].items()}
    loaded = make("random_a")[1].from_bytes(closed(pipe, model, bilm))
    assert loaded.to_bytes() == saved


NODE = {"index": 0, "name": "elmo_bilm", "dims": {"nO": 64}, "refs": {}}


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.pop("nodes"),
        lambda model: model.update(more=[]),
        lambda model: model.update(nodes={}),
        lambda model: model["nodes"].append(NODE),
        lambda model: model.update(nodes=[None]),
        lambda model: model.update(nodes=[NODE | {"index": 1}]),
        lambda model: model.update(nodes=[NODE | {"name": 5}]),
        lambda model: model.update(nodes=[NODE | {"name": "elmo_bilM"}]),
        lambda model: model.update(nodes=[NODE | {"dims": {"nO": 65}}]),
        lambda model: model.update(nodes=[NODE | {"dims": {"nO": -64}}]),
        lambda model: model.update(nodes=[NODE | {"dims": {"nO": 64, "nP": 1}}]),
        lambda model: model.update(nodes=[NODE | {"dims": None}]),
        lambda model: model.update(nodes=[NODE | {"refs": {"a": 0}}]),
        lambda model: model.update(attrs=[{"settings": srsly.msgpack_dumps(1)}]),  # it would replace the settings
        lambda model: model.update(attrs=[{"a": 1}]),
        lambda model: model.update(params=[{"W": np.zeros(3)}]),
        lambda model: model.update(params=[{"W": "x"}]),
        lambda model: model.update(shims=[[]]),
        lambda model: model.update(shims=[[b""]]),
        lambda model: model.update(shims=[["text"]]),
        lambda model: model.update(shims=[model["shims"][0] * 2]),
    ],
)
def test_damaged_models(change: Change, saved: bytes, folder: Path) -> None:
    pipe, model, _ = opened(saved)
    change(model)
    assert_refused(srsly.msgpack_dumps(pipe | {"model": srsly.msgpack_dumps(model)}), folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"model": "text"},
        {"modem": b""},
        {"vocab": b""},
        {"vocab": srsly.msgpack_dumps({"strings": "{", "vectors": b"", "lookups": b""})},
        {"vocab": srsly.msgpack_dumps({"vectors": b"\x93NUMPY"})},
        {"vocab": 5},
    ],
)
def test_damaged_pipes(changes: dict[str, object], saved: bytes) -> None:
    nlp, pipe = make_once("random_a")
    before, strings = pipe.to_bytes(), len(nlp.vocab.strings)
    with pytest.raises(WeightsError, match="the saved biLM is damaged"):
        pipe.from_bytes(srsly.msgpack_dumps(srsly.msgpack_loads(saved) | changes))
    assert (pipe.to_bytes(), len(nlp.vocab.strings)) == (before, strings)
    assert gc.isenabled()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: None,
    "folder": Path.mkdir,
    "fifo": os.mkfifo,
    "garbage": lambda path: path.write_bytes(b"\x93NUMPY\1\0v\0{'descr': '''"),
}


@pytest.mark.parametrize(
    ("name", "damages"),
    [
        ("model", "gone folder fifo garbage"),
        ("vocab/vectors", "folder garbage"),
        ("vocab/strings.json", "garbage"),
        ("vocab/lookups.bin", "garbage"),
    ],
)
def test_damaged_folders(name: str, damages: str, tmp_path: Path) -> None:
    _, pipe = make_once("random_a")
    before = pipe.to_bytes()
    for damage in damages.split():
        folder = tmp_path / damage
        make_once("random_b")[1].to_disk(folder)
        (folder / name).unlink()
        DAMAGES[damage](folder / name)
        with pytest.raises(WeightsError, match="the saved biLM is damaged"):
            pipe.from_disk(folder)
        assert pipe.to_bytes() == before


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nothing"):
        make_once("random_a")[1].from_disk(tmp_path / "nothing")


@pytest.mark.slow
def test_parts_that_are_left_out(saved: bytes, tmp_path: Path) -> None:
    nlp, pipe = make("random_b")
    nlp.vocab.strings.add("a word of the saved vocab")
    pipe.to_disk(tmp_path / "pipe")
    for exclude, has_word, has_model in [(["vocab"], False, True), (["model", "cfg"], True, False), ([], True, True)]:
        for load in (
            lambda into, exclude: into.from_bytes(pipe.to_bytes(), exclude=exclude),
            lambda into, exclude: into.from_disk(tmp_path / "pipe", exclude=exclude),
        ):
            other, into = make("random_a")
            assert load(into, iter(exclude)) is into
            assert ("a word of the saved vocab" in other.vocab.strings) is has_word
            assert (into.model.get_dim("nO") == pipe.model.get_dim("nO")) is has_model


def test_a_users_own_model_of_other_layers_is_refused() -> None:
    def build() -> Model[Any, Any]:
        model: Model[Any, Any] = chain(Linear(3, 2), Linear(2, 3))
        model.attrs["a"] = [1]
        return model.initialize()

    pipe, other = ElmoPipe(Vocab(), build(), attr="other"), build()
    other.attrs["a"], other.name = [2], "other"
    saved, before = other.to_bytes(), pipe.model.to_bytes()
    content = srsly.msgpack_loads(saved)
    content["nodes"][2]["dims"]["nI"] = 7  # it comes last, and does not fit
    with pytest.raises(WeightsError, match="of a model with other layers"):
        pipe.from_bytes(srsly.msgpack_dumps({"model": srsly.msgpack_dumps(content)}))
    assert pipe.model.to_bytes() == before
    pipe.from_bytes(srsly.msgpack_dumps({"model": saved}))
    assert pipe.model.to_bytes() == saved


@pytest.mark.slow
def test_a_damaged_pipeline_folder_is_refused_while_spacy_loads_it(tmp_path: Path) -> None:
    make("random_b")[0].to_disk(tmp_path / "pipeline")
    shutil.copyfile(tmp_path / "pipeline" / "meta.json", tmp_path / "pipeline" / "elmo" / "model")
    with pytest.raises(WeightsError, match="the saved biLM is damaged"):
        spacy.load(tmp_path / "pipeline")


@pytest.fixture(scope="module")
def nlp(tmp_path_factory: pytest.TempPathFactory) -> Language:
    """A pipeline on files that are gone by the time the tests reload it."""
    folder = tmp_path_factory.mktemp("bilm") / "files"
    shutil.copytree(GOLDEN / "random_b", folder)
    nlp = pipeline(None, {"bilm": str(folder)})
    nlp.initialize()
    shutil.rmtree(folder)
    return nlp


def through_disk(nlp: Language, folder: Path) -> Language:
    nlp.to_disk(folder)
    return spacy.load(folder)


def through_bytes(nlp: Language, folder: Path) -> Language:
    return spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())


def through_the_component(nlp: Language, folder: Path) -> Language:
    """The other pipe has been used, with a biLM of another width."""
    nlp.get_pipe("elmo").to_disk(folder)
    other = pipeline()
    assert other("a")._.elmo.shape == (1, 32)
    other.get_pipe("elmo").from_disk(folder)
    return other


def through_pickle(nlp: Language, folder: Path) -> Language:
    loaded: Language = pickle.loads(pickle.dumps(nlp))
    return loaded


@pytest.mark.parametrize("way", [through_disk, through_bytes, through_the_component, through_pickle])
def test_a_saved_biLM_needs_no_other_file(
    nlp: Language, way: Callable[[Language, Path], Language], tmp_path: Path
) -> None:
    loaded = way(nlp, tmp_path / "saved")
    assert (loaded(TEXT)._.elmo_layers == nlp(TEXT)._.elmo_layers).all()


def test_a_pipeline_that_the_first_version_saved() -> None:
    """It trained a tiny biLM and ner on two sentences. expected.json is what the pipeline said then."""
    folder = GOLDEN / "saved_pipeline_0_1"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf8"))
    nlp = spacy.load(folder)
    doc = nlp(expected["text"])
    np.testing.assert_allclose(doc._.elmo_layers, expected["layers"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(doc._.elmo, expected["vectors"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(doc.vector, expected["doc_vector"], rtol=0, atol=2e-6)
    assert [[span.start, span.end, span.label_] for span in doc.ents] == expected["entities"]
    again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    np.testing.assert_array_equal(again(expected["text"])._.elmo_layers, doc._.elmo_layers)


def test_a_loaded_pipeline_obeys_its_config(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "saved")
    other = spacy.load(tmp_path / "saved", config={"components.elmo.model.stateful": True})
    assert other.get_pipe("elmo").model.attrs["settings"].stateful


@pytest.mark.slow
def test_pickle_of_a_pipeline_never_used_works_in_a_fresh_process(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "random_b", tmp_path / "files")
    nlp = pipeline(None, {"bilm": str(tmp_path / "files")})
    (tmp_path / "nlp.pickle").write_bytes(pickle.dumps(nlp))
    shutil.rmtree(tmp_path / "files")
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))('a b')._.elmo.shape)"
    command = [sys.executable, "-c", code, str(tmp_path / "nlp.pickle")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "(2, 64)"
