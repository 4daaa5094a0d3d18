"""Names of no biLM, and folders whose files have other names: the message says what to give."""

import json
import shutil
from pathlib import Path

import pytest

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import ElmoError, OptionsWarning, SettingsError, WeightsError
from spacy_elmo.formats.names import PUBLISHED
from spacy_elmo.modules import loading
from spacy_elmo.modules.loading import embedded_files, is_packed, load_arrays, load_options


@pytest.mark.parametrize("name", ["5.5B", "large", "portuguese", "runs/typo", "https://tfhub.dev/google/elmo/3"])
def test_a_name_of_no_bilm(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pattern = rf"^'{name}' names no biLM: there is no such folder\. Expected the folder.*\({', '.join(PUBLISHED)}\)"
    for load in (lambda: ElmoEmbedder(name), lambda: load_arrays(bilm=name), lambda: load_options(bilm=name)):
        with pytest.raises(SettingsError, match=pattern):
            load()


@pytest.mark.parametrize("key", ["use_skip_connections", "activation"])
def test_weights_of_a_known_bilm_with_other_options(key: str, tmp_path: Path) -> None:
    """Vectors would be plausible, and wrong."""
    own, weights = embedded_files()
    shutil.copy(weights, tmp_path / "weights.hdf5")
    contents = json.loads(Path(own).read_text())
    section = "char_cnn" if key == "activation" else "lstm"
    contents[section][key] = {"activation": "tanh", "use_skip_connections": False}[key]
    (tmp_path / "options.json").write_text(json.dumps(contents))
    with pytest.warns(OptionsWarning, match=rf"weights are those of en_core, .*{section}\.{key} is .*, expected"):
        load_arrays(bilm=tmp_path)
    shutil.copy(own, tmp_path / "options.json")
    load_arrays(tmp_path / "options.json", tmp_path / "weights.hdf5")  # without a warning


def test_a_damaged_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the user's points to the embedded files."""
    options, weights = shutil.copy(embedded_files()[0], tmp_path), tmp_path / "weights.hdf5"
    weights.write_text("version https://git-lfs.github.com/spec/v1")
    monkeypatch.setattr(loading, "embedded_files", lambda: (options, str(weights)))
    with pytest.raises(WeightsError, match=r"weights\.hdf5: not an HDF5 file.*: install spacy_elmo again\.$"):
        load_arrays()


def test_a_folder_that_hides_the_embedded_bilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("en_core").mkdir()
    with pytest.raises(
        SettingsError, match=r"'en_core' names no biLM: a file or folder of this name is in the current"
    ):
        load_arrays(bilm="en_core")


def test_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "199.zip"
    path.touch()
    with pytest.raises(SettingsError, match=r"names no biLM: it is a packed file\. Unpack it"):
        ElmoEmbedder(path)
    assert is_packed("a/elmo.tar.gz")
    assert not is_packed("5.5B")


def test_options_without_weights(golden: Path, tmp_path: Path) -> None:
    shutil.copy(golden / "random_a" / "options.json", tmp_path / "sizes")
    for name in (tmp_path / "gone.json", golden / "random_a" / "options.json", tmp_path / "sizes"):
        with pytest.raises(SettingsError, match="options_file is set, but weight_file is not"):
            ElmoEmbedder(name)


@pytest.mark.parametrize(
    ("options_file", "weight_file", "others", "expected"),
    [
        ("options.json", "model.hdf5", [], r"no weights\.hdf5, but it has model\.hdf5\. Expected"),
        ("elmo_options.json", "weights.hdf5", [], r"no options\.json, but it has elmo_options\.json\. Expected"),
        (
            "a_options.json",
            "a.hdf5",
            [],
            r"no options\.json and no weights\.hdf5, but it has a_options\.json and a\.hdf5",
        ),
        ("options.json", "model.hdf5", ["softmax.hdf5"], r"but it has model\.hdf5\."),
        ("options.json", "a.hdf5", ["b.hdf5"], r"weights\.hdf5: no such file"),
        ("config.json", "weights.hdf5", [], r"options\.json: no such file"),
    ],
)
def test_files_with_other_names(
    golden: Path, tmp_path: Path, options_file: str, weight_file: str, others: list[str], expected: str
) -> None:
    shutil.copy(golden / "random_a" / "options.json", tmp_path / options_file)
    for name in (weight_file, *others):
        shutil.copy(golden / "random_a" / "weights.hdf5", tmp_path / name)
    with pytest.raises(ElmoError, match=expected):
        ElmoEmbedder(tmp_path)
    assert ElmoEmbedder(tmp_path / options_file, tmp_path / weight_file).options.layers == 3


def test_the_options_alone_can_be_read(golden: Path, tmp_path: Path) -> None:
    shutil.copy(golden / "random_a" / "options.json", tmp_path)
    shutil.copy(golden / "random_a" / "weights.hdf5", tmp_path / "model.hdf5")
    assert load_options(bilm=tmp_path).layers == 3
