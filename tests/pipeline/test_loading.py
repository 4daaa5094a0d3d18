"""Saved pipelines hold their biLM and give the same bits; damaged or hostile ones leave the pipe as it was."""

import json
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
from pipelines import GOLDEN, pipeline
from spacy.language import Language
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain

from spacy_elmo.errors import ElmoError, WeightsError
from spacy_elmo.pipeline.elmo import ElmoPipe

TEXT = "Stick to the river bank ."
Message = dict[str, Any]
BIAS = "lstm.layers.0.bias"
NODE = {"index": 0, "name": "elmo_bilm", "dims": {"nO": 64}, "refs": {}}


def make(name: str) -> tuple[Language, ElmoPipe]:
    nlp = pipeline(name)
    nlp.initialize()
    return nlp, nlp.get_pipe("elmo")


make_once = cache(make)


def opened(saved: bytes) -> tuple[Message, Message, Message]:
    """The three messages: the pipe's, in it the model's, in it the biLM's."""
    pipe = srsly.msgpack_loads(saved)
    model = srsly.msgpack_loads(pipe["model"])
    return pipe, model, srsly.msgpack_loads(model["shims"][0][0])


def assert_refused(data: bytes) -> None:
    _, pipe = make_once("random_a")
    before = pipe.to_bytes()
    with pytest.raises(ElmoError, match="the saved biLM"):
        pipe.from_bytes(data)
    assert pipe.to_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda bilm: bilm.pop("options"),
        lambda bilm: bilm.update(more=1),
        lambda bilm: bilm.update(arrays=[1]),
        lambda bilm: bilm.update(options=[1]),
        lambda bilm: bilm["options"].pop("lstm"),
        lambda bilm: bilm["options"]["lstm"].update(dim=np.arange(3)),
        lambda bilm: bilm["options"]["char_cnn"].update(filters=[[1, 2]] * 65),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS].astype(">f4")[:, :-1]}),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS].astype(np.float64)}),
        lambda bilm: bilm["arrays"].update({BIAS: bilm["arrays"][BIAS] * np.float32("nan")}),
        lambda bilm: bilm["arrays"].update({BIAS: None}),
        lambda bilm: bilm["arrays"].pop(BIAS),
        lambda bilm: bilm["arrays"].update({"more": bilm["arrays"][BIAS]}),
    ],
)
def test_damaged_biLMs(change: Callable[[Message], object]) -> None:
    pipe, model, bilm = opened(make_once("random_b")[1].to_bytes())
    change(bilm)
    model["shims"][0][0] = srsly.msgpack_dumps(bilm)
    assert_refused(srsly.msgpack_dumps(pipe | {"model": srsly.msgpack_dumps(model)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"more": []},
        {"nodes": [None]},
        {"nodes": [NODE, NODE]},
        {"nodes": [NODE | {"name": "elmo_bilM"}]},
        {"nodes": [NODE | {"dims": {"nO": 65}}]},
        {"attrs": [{"settings": srsly.msgpack_dumps(1)}]},  # it would replace the settings
        {"params": [{"W": np.zeros(3)}]},
        {"shims": [[]]},
        {"shims": [["text"]]},
    ],
)
def test_damaged_models(changes: Message) -> None:
    pipe, model, _ = opened(make_once("random_b")[1].to_bytes())
    assert_refused(srsly.msgpack_dumps(pipe | {"model": srsly.msgpack_dumps(model | changes)}))


@pytest.mark.parametrize("changes", [{"model": None}, {"model": "text"}, {"modem": b""}, {"model": b"\x81"}])
def test_damaged_pipes(changes: Message) -> None:
    assert_refused(srsly.msgpack_dumps(srsly.msgpack_loads(make_once("random_b")[1].to_bytes()) | changes))


@pytest.mark.parametrize("name", ["model", "vocab/vectors", "vocab/strings.json", "vocab/lookups.bin"])
def test_damaged_folders(name: str, tmp_path: Path) -> None:
    pipe = make("random_a")[1]
    with pytest.raises(WeightsError, match="nothing"):
        pipe.from_disk(tmp_path / "nothing")
    make_once("random_b")[1].to_disk(tmp_path)
    (tmp_path / name).write_bytes(b"\x93NUMPY\1\0v\0{'descr': '''")
    with pytest.raises(WeightsError, match="the saved biLM is damaged"):
        pipe.from_disk(tmp_path)


def test_the_other_byte_order() -> None:
    saved = make_once("random_b")[1].to_bytes()
    pipe, model, bilm = opened(saved)
    bilm["arrays"] = {name: array.astype(">f4") for name, array in bilm["arrays"].items()}
    model["shims"][0][0] = srsly.msgpack_dumps(bilm)
    loaded = make("random_a")[1].from_bytes(srsly.msgpack_dumps(pipe | {"model": srsly.msgpack_dumps(model)}))
    assert loaded.to_bytes() == saved


@pytest.mark.slow
def test_parts_that_are_left_out(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("way", [through_disk, through_bytes, through_the_component])
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
