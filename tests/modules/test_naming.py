"""Names of no biLM: the message says what to give."""

import shutil
from pathlib import Path

import pytest
import spacy

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats.published.names import PUBLISHED
from spacy_elmo.modules.loading import load_arrays, load_options
from spacy_elmo.modules.naming import is_packed


@pytest.mark.parametrize("name", ["5.5B", "large", "portuguese", "runs/typo", "https://tfhub.dev/google/elmo/3"])
def test_a_name_of_no_bilm(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pattern = rf"^'{name}' names no biLM: there is no such folder\. Expected the folder.*\({', '.join(PUBLISHED)}\)"
    for load in (lambda: ElmoEmbedder(name), lambda: load_arrays(bilm=name), lambda: load_options(bilm=name)):
        with pytest.raises(SettingsError, match=pattern):
            load()
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": name}})
    with pytest.raises(SettingsError, match=pattern):
        nlp("A bank .")


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
