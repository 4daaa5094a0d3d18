"""Damaged or hostile saved pipes end in the package's errors, and leave the pipe as it was."""

import gc
import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from spacy.language import Language
from thinc.api import Linear, Model, chain

from spacy_elmo.errors import ElmoError, WeightsError
from spacy_elmo.models.saved import load_model
from spacy_elmo.pipeline.elmo import ElmoPipe

GOLDEN = Path(__file__).parents[1] / "golden"
TEXT = "Stick to the river bank ."
Change = Callable[[dict[str, Any]], object]


def make(folder: str) -> tuple[Language, ElmoPipe]:
    nlp = spacy.blank("en")
    files = {"options_file": GOLDEN / folder / "options.json", "weight_file": GOLDEN / folder / "weights.hdf5"}
    pipe = nlp.add_pipe("elmo", config={"model": {key: str(path) for key, path in files.items()}})
    nlp.initialize()
    return nlp, pipe


make_once = cache(make)


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


def assert_refused(data: bytes, folder: Path) -> None:
    """As bytes, and as a folder: the pipe stays as it was."""
    nlp, pipe = make_once("random_a")  # it stays as it was
    vectors = nlp(TEXT)._.elmo_layers.copy()
    before = pipe.to_bytes()
    pipe.to_disk(folder)
    content = srsly.msgpack_loads(data)
    (folder / "model").write_bytes(content["model"])
    for load in (lambda: pipe.from_bytes(data), lambda: pipe.from_disk(folder)):
        with pytest.raises(ElmoError, match="the saved biLM"):
            load()
        assert pipe.to_bytes() == before
        assert (nlp(TEXT)._.elmo_layers == vectors).all()
    assert gc.isenabled()


def test_undamaged(saved: bytes) -> None:
    nlp, pipe = make("random_a")
    pipe.from_bytes(closed(*opened(saved)))
    assert pipe.to_bytes() == saved
    assert (nlp(TEXT)._.elmo_layers == make("random_b")[0](TEXT)._.elmo_layers).all()


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
        lambda bilm: bilm["arrays"].update({BIAS: None}),
        lambda bilm: bilm["arrays"].pop(BIAS),
        lambda bilm: bilm["arrays"].update({"more": bilm["arrays"][BIAS]}),
        lambda bilm: bilm["arrays"].update({BIAS: {"b": 1}}),
        lambda bilm: bilm["arrays"].update({f"a{i}": i for i in range(2000)}),
    ],
)
def test_damaged_biLMs(change: Change, saved: bytes, tmp_path: Path) -> None:
    pipe, model, bilm = opened(saved)
    change(bilm)
    assert_refused(closed(pipe, model, bilm), tmp_path / "pipe")


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
def test_damaged_models(change: Change, saved: bytes, tmp_path: Path) -> None:
    pipe, model, _ = opened(saved)
    change(model)
    assert_refused(srsly.msgpack_dumps(pipe | {"model": srsly.msgpack_dumps(model)}), tmp_path / "pipe")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"model": "text"},
        {"modem": b""},
        {"cfg": "[]"},
        {"cfg": "{"},
        {"cfg": 5},
        {"cfg": '{"a": 1, "a": 2}'},
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
    assert (pipe.to_bytes(), pipe.cfg, len(nlp.vocab.strings)) == (before, {}, strings)
    assert gc.isenabled()


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def garbage(path: Path) -> None:
    path.write_bytes(b"\x93NUMPY\1\0v\0{'descr': '''")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("model", damage) for damage in (gone, folder, fifo, garbage)),
        *(("cfg", damage) for damage in (folder, fifo, garbage)),
        *(("vocab/vectors", damage) for damage in (folder, garbage)),
        ("vocab/strings.json", garbage),
        ("vocab/lookups.bin", garbage),
    ],
)
def test_damaged_folders(name: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    _, pipe = make_once("random_a")
    before = pipe.to_bytes()
    make_once("random_b")[1].to_disk(tmp_path / "pipe")
    damage(tmp_path / "pipe" / name)
    with pytest.raises(WeightsError, match="the saved biLM is damaged"):
        pipe.from_disk(tmp_path / "pipe")
    assert pipe.to_bytes() == before


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nothing"):
        make_once("random_a")[1].from_disk(tmp_path / "nothing")


def test_parts_that_are_left_out(saved: bytes, tmp_path: Path) -> None:
    nlp, pipe = make("random_b")
    nlp.vocab.strings.add("a word of the saved vocab")
    pipe.cfg["a"] = 1
    pipe.to_disk(tmp_path / "pipe")
    (tmp_path / "pipe" / "cfg").write_text(json.dumps({"a": 1}), encoding="utf8")
    for exclude, has_cfg, has_word, has_model in [
        (["vocab"], True, False, True),
        (["model", "cfg"], False, True, False),
        ([], True, True, True),
    ]:
        for load in (
            lambda into, exclude: into.from_bytes(pipe.to_bytes(), exclude=exclude),
            lambda into, exclude: into.from_disk(tmp_path / "pipe", exclude=exclude),
        ):
            other, into = make("random_a")
            assert load(into, iter(exclude)) is into
            assert into.cfg == ({"a": 1} if has_cfg else {})
            assert ("a word of the saved vocab" in other.vocab.strings) is has_word
            assert (into.model.get_dim("nO") == pipe.model.get_dim("nO")) is has_model


def test_a_users_own_model_is_restored_too() -> None:
    def build() -> Model[Any, Any]:
        model: Model[Any, Any] = chain(Linear(3, 2), Linear(2, 3))
        model.attrs["a"] = [1]
        return model.initialize()

    model, other = build(), build()
    other.attrs["a"], other.name = [2], "other"
    saved, before = other.to_bytes(), model.to_bytes()
    content = srsly.msgpack_loads(saved)
    content["nodes"][2]["dims"]["nI"] = 7  # it comes last, and does not fit
    with pytest.raises(WeightsError, match="Attempt to change dimension"):
        load_model(model, srsly.msgpack_dumps(content))
    assert model.to_bytes() == before
    load_model(model, saved)
    assert model.to_bytes() == saved


def test_a_damaged_pipeline_folder_is_refused_while_spacy_loads_it(tmp_path: Path) -> None:
    make("random_b")[0].to_disk(tmp_path / "pipeline")
    shutil.copyfile(tmp_path / "pipeline" / "meta.json", tmp_path / "pipeline" / "elmo" / "model")
    with pytest.raises(WeightsError, match="the saved biLM is damaged"):
        spacy.load(tmp_path / "pipeline")
