"""A saved pipeline holds its biLM and gives the same bits."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import ElmoError

GOLDEN = Path(__file__).parents[1] / "golden" / "random_b"
TEXT = "Stick to the river bank ."


@pytest.fixture
def nlp(tmp_path: Path) -> Language:
    """A pipeline on files that are gone by the time the tests reload it."""
    shutil.copytree(GOLDEN, tmp_path / "files")
    nlp = spacy.blank("en")
    files = {
        name: str(tmp_path / "files" / path)
        for name, path in (("options_file", "options.json"), ("weight_file", "weights.hdf5"))
    }
    nlp.add_pipe("elmo", config={"model": files})
    nlp.initialize()
    shutil.rmtree(tmp_path / "files")
    return nlp


def assert_same(a: Language, b: Language) -> None:
    assert (a(TEXT)._.elmo_layers == b(TEXT)._.elmo_layers).all()


def test_to_disk_needs_no_other_file(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "saved")
    assert_same(nlp, spacy.load(tmp_path / "saved"))


def test_to_bytes(nlp: Language) -> None:
    config = nlp.config
    other = spacy.blank("en").from_config(config).from_bytes(nlp.to_bytes())
    assert_same(nlp, other)


def test_component_to_disk(nlp: Language, tmp_path: Path) -> None:
    nlp.get_pipe("elmo").to_disk(tmp_path / "elmo")
    other = spacy.blank("en")
    other.add_pipe("elmo").from_disk(tmp_path / "elmo")
    assert_same(nlp, other)


def test_never_used_pipelines_save_too(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.to_disk(tmp_path / "saved")
    assert_same(nlp, spacy.load(tmp_path / "saved"))


def test_a_loaded_pipeline_obeys_its_config(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "saved")
    other = spacy.load(tmp_path / "saved", config={"components.elmo.model.stateful": True})
    assert other.get_pipe("elmo").model.attrs["settings"].stateful


def test_pickle(nlp: Language) -> None:
    assert_same(nlp, pickle.loads(pickle.dumps(nlp)))


@pytest.mark.slow
def test_pickle_of_a_pipeline_never_used_works_in_a_fresh_process(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "files")
    nlp = spacy.blank("en")
    names = {"options_file": "options.json", "weight_file": "weights.hdf5"}
    nlp.add_pipe("elmo", config={"model": {key: str(tmp_path / "files" / name) for key, name in names.items()}})
    (tmp_path / "nlp.pickle").write_bytes(pickle.dumps(nlp))
    shutil.rmtree(tmp_path / "files")
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))('a b')._.elmo.shape)"
    command = [sys.executable, "-c", code, str(tmp_path / "nlp.pickle")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "(2, 64)"


def test_a_used_pipe_loads_a_biLM_of_another_width(nlp: Language, tmp_path: Path) -> None:
    nlp.get_pipe("elmo").to_disk(tmp_path / "elmo")
    other = spacy.blank("en")
    other.add_pipe("elmo")
    assert other("a")._.elmo.shape == (1, 256)
    other.get_pipe("elmo").from_disk(tmp_path / "elmo")
    assert_same(nlp, other)


def test_missing_files_leave_nothing_half_written(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"options_file": "gone.json", "weight_file": "gone.hdf5"}})
    with pytest.raises(ElmoError, match=r"gone\.json"):
        nlp.get_pipe("elmo").to_disk(tmp_path / "elmo")
    assert not (tmp_path / "elmo").exists()


@pytest.mark.parametrize("damage", [b"", b"no msgpack at all", None])
def test_a_damaged_saved_pipeline_says_so(nlp: Language, tmp_path: Path, damage: bytes | None) -> None:
    nlp.to_disk(tmp_path / "saved")
    shim = nlp.get_pipe("elmo").model.shims[0]
    data = shim.to_bytes()
    with pytest.raises(ElmoError, match="the saved biLM is damaged or incomplete"):
        shim.from_bytes(data[: len(data) // 2] if damage is None else damage)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["layers", "layers_float16", "mix"])
def test_docs_survive(store: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"store": store})
    doc = nlp(TEXT)
    docbin = DocBin(store_user_data=True)
    docbin.add(doc)
    copies = [
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        pickle.loads(pickle.dumps(doc)),
        doc.copy(),
        *DocBin().from_bytes(docbin.to_bytes()).get_docs(nlp.vocab),
    ]
    for copy in copies:
        np.testing.assert_array_equal(copy._.elmo, doc._.elmo)


def test_damaged_bytes_are_refused(nlp: Language) -> None:
    shim = nlp.get_pipe("elmo").model.shims[0]
    other = pickle.loads(pickle.dumps(shim))
    other.unfreeze().lstm.layers[0].bias.data[0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"the saved biLM: lstm\.layers\.0\.bias holds 1 values that are NaN"):
        shim.from_bytes(other.to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"no msgpack at all", b"\x81\xa5model\xc0", None])
def test_damaged_folders_and_bytes(nlp: Language, tmp_path: Path, damage: bytes | None) -> None:
    nlp.to_disk(tmp_path / "saved")
    path = tmp_path / "saved" / "elmo" / "model"
    path.write_bytes(path.read_bytes()[:1000] if damage is None else damage)
    with pytest.raises(ElmoError, match="the saved biLM is damaged or incomplete"):
        spacy.load(tmp_path / "saved")
    if damage:
        with pytest.raises(ElmoError, match="the saved biLM is damaged or incomplete"):
            nlp.get_pipe("elmo").from_bytes(damage)
