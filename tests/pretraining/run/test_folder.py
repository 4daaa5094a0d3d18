"""What a run is begun with, and what it goes on with."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from bilm_cases import bilm_of, random_datasets
from bilm_package import install_bilm, uninstall_all
from small_run import OPTIONS, config_of, with_paths, write_text
from small_run import run as run_of

from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.modules.softmax import Softmax
from spacy_elmo.pretraining.config import PretrainConfig, SoftmaxSettings
from spacy_elmo.pretraining.folder import has_checkpoint, open_run, reopen_run
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.vocabulary import Vocabulary

WORDS = ["<S>", "</S>", "<UNK>", "word1", "word2", "word3"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt")


@pytest.fixture
def given(tmp_path: Path, text: Path) -> PretrainConfig:
    """With words of its own, and a biLM to go on from."""
    Vocabulary(WORDS).write(tmp_path / "words.txt")
    softmax = Softmax(len(WORDS), OPTIONS.projection_dim)
    softmax.reset_parameters()
    LanguageModel(bilm_of(OPTIONS, random_datasets(OPTIONS)), softmax, Vocabulary(WORDS)).save(tmp_path / "init")
    return config_of(text, paths={"vocabulary": tmp_path / "words.txt", "init": tmp_path / "init"})


def begun(config: PretrainConfig, output: Path) -> Path:
    """A folder that a run goes on in: one with a checkpoint."""
    output.mkdir(exist_ok=True)
    assert not open_run(config, output).resumed
    (output / "checkpoints").mkdir()
    (output / "checkpoints" / "step-000000002.h5").touch()
    assert has_checkpoint(output)
    return output


def kept(output: Path) -> dict[str, Any]:
    texts: dict[str, Any] = json.loads((output / "run.json").read_text(encoding="utf8"))["texts"]
    return texts


def test_what_is_kept_of_words_and_weights(given: PretrainConfig, text: Path, tmp_path: Path) -> None:
    words = hashlib.sha256("".join(f"{word}\n" for word in WORDS).encode()).hexdigest()
    weights = hashlib.sha256((tmp_path / "init" / "weights.hdf5").read_bytes()).hexdigest()
    texts = kept(begun(given, tmp_path / "out"))
    assert (texts["vocabulary"], texts["paths.vocabulary"], texts["paths.init"]) == (words, words, weights)
    assert open_run(given, tmp_path / "out").init == reopen_run(given, tmp_path / "out").init == weights
    output = begun(config_of(text), tmp_path / "plain")
    built = hashlib.sha256((output / "vocabulary.txt").read_bytes()).hexdigest()
    texts = kept(output)
    assert (texts["vocabulary"], texts["paths.vocabulary"], texts["paths.init"]) == (built, None, None)


def test_a_start_that_can_not_be_is_refused_before_anything_is_written(given: PretrainConfig, tmp_path: Path) -> None:
    (tmp_path / "init" / "softmax.hdf5").unlink()
    with pytest.raises(SettingsError, match=r"there is no softmax\.hdf5"):
        run_of(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_biLM_is_not_replaced(given: PretrainConfig, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (tmp_path / "init").iterdir()}
    with pytest.raises(
        SettingsError, match=r"init: holds options\.json, weights\.hdf5, softmax\.hdf5, but no run\.json"
    ):
        run_of(given, tmp_path / "init")
    assert {path: path.read_bytes() for path in (tmp_path / "init").iterdir()} == before


@pytest.mark.parametrize("name", ["weights.hdf5", "softmax.hdf5"])
def test_a_damaged_start_is_refused_at_once(given: PretrainConfig, tmp_path: Path, name: str) -> None:
    path = tmp_path / "init" / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(WeightsError, match=name):
        run_of(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_may_move_or_be_gone(given: PretrainConfig, text: Path, tmp_path: Path) -> None:
    output = begun(given, tmp_path / "out")
    before = (output / "run.json").read_bytes()
    identity = open_run(given, output).identity
    (tmp_path / "init").rename(tmp_path / "moved")
    (tmp_path / "words.txt").rename(tmp_path / "moved.txt")
    moved = with_paths(given, vocabulary=tmp_path / "moved.txt", init=tmp_path / "moved")
    text.unlink()
    for config in (given, moved):
        run = open_run(config, output)
        assert (run.identity, run.resumed, run.vocabulary.words) == (identity, True, WORDS)
        assert reopen_run(config, output).resumed
    assert (output / "run.json").read_bytes() == before


def test_a_published_bilm_may_be_gone(given: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights are in the checkpoints."""
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))
    shutil.copytree(tmp_path / "init", tmp_path / "cache" / "small")
    config = with_paths(given, init="small")
    output = begun(config, tmp_path / "out")
    shutil.rmtree(tmp_path / "cache")
    assert open_run(config, output).resumed


def test_a_package_may_be_gone(given: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bilm(monkeypatch, tmp_path, "en_midi", tmp_path / "init")
    config = with_paths(given, init="en_midi")
    output = begun(config, tmp_path / "out")
    assert open_run(config, output).resumed
    uninstall_all(monkeypatch)
    assert open_run(config, output).resumed


def test_a_full_disk(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def write_text(self: Path, *arguments: Any, **named: Any) -> int:
        if "run.json" in self.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, *arguments, **named)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(SettingsError, match=r"out/run\.json: can't be written .*No space left"):
        open_run(config_of(text), tmp_path / "out")
    assert not list((tmp_path / "out").glob("*run.json*"))


def test_other_words_or_weights_are_refused(given: PretrainConfig, tmp_path: Path) -> None:
    output = begun(given, tmp_path / "out")
    before = (output / "config.cfg").read_bytes()
    Vocabulary(WORDS[:-1]).write(tmp_path / "fewer.txt")
    shutil.copytree(tmp_path / "init", tmp_path / "other")
    with (tmp_path / "other" / "weights.hdf5").open("ab") as file:
        file.write(b"\0")
    for paths, message in (
        (
            {"vocabulary": tmp_path / "fewer.txt"},
            r"paths\.vocabulary: .*fewer\.txt: not with the contents .* --restart",
        ),
        ({"init": tmp_path / "other"}, r"paths\.init: .*other: not with the contents"),
        ({"vocabulary": None}, r"started with paths\.vocabulary = a file of SHA-256 \w+, but now it is null"),
        ({"init": None}, r"started with paths\.init = a file of SHA-256 \w+, but now it is null.* or add --restart"),
    ):
        with pytest.raises(SettingsError, match=message):
            open_run(with_paths(given, **paths), output)
    assert (output / "config.cfg").read_bytes() == before


def test_words_or_weights_that_were_not_there_are_refused(text: Path, given: PretrainConfig, tmp_path: Path) -> None:
    output = begun(config_of(text), tmp_path / "out")
    for name in ("vocabulary", "init"):
        value = getattr(given.paths, name)
        with pytest.raises(SettingsError, match=rf"started with paths\.{name} = null, but now it is {value}"):
            open_run(with_paths(config_of(text), **{name: value}), output)


def test_changed_words_of_the_run_are_refused(text: Path, tmp_path: Path) -> None:
    config = config_of(text)
    output = begun(config, tmp_path / "out")
    words = (output / "vocabulary.txt").read_text(encoding="utf8").splitlines()
    words[4], words[5] = words[5], words[4]
    (output / "vocabulary.txt").write_text("\n".join(words) + "\n", encoding="utf8")
    with pytest.raises(SettingsError, match=r"out.vocabulary\.txt: not with the contents \(SHA-256 in .*run\.json\)"):
        open_run(config, output)


def test_a_run_of_an_earlier_version_goes_on(given: PretrainConfig, tmp_path: Path) -> None:
    """It kept none of these digests; its run.json, and so its identity, stays as it is."""
    output = begun(given, tmp_path / "out")
    record = json.loads((output / "run.json").read_text(encoding="utf8"))
    for name in ("vocabulary", "paths.vocabulary", "paths.init"):
        del record["texts"][name]
    (output / "run.json").write_text(json.dumps(record), encoding="utf8")
    identity = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    assert open_run(with_paths(given, vocabulary=None), output).identity == identity
    assert json.loads((output / "run.json").read_text(encoding="utf8")) == record


def test_a_text_that_has_changed(text: Path, tmp_path: Path) -> None:
    output = begun(config_of(text), tmp_path / "out")
    size = text.stat().st_size
    with text.open("ab") as file:
        file.write(b"more\n")
    old, new = (f"{n:,} bytes in files: 1, the largest {n:,}" for n in (size, size + 5))
    message = (
        rf"text\.txt: the text has changed .*: it had {old}; now {new}\. Put the earlier text back.* or add --restart"
    )
    with pytest.raises(SettingsError, match=message):
        open_run(config_of(text), output)


@pytest.mark.parametrize("pattern", ["**/*.txt", "*/*.txt", "*/*/*.txt"])
def test_a_pattern_that_matches_the_run_itself(text: Path, tmp_path: Path, pattern: str) -> None:
    """At the beginning, when it is begun again, and when it goes on."""
    for folder in ("a", "a/b"):
        (tmp_path / folder).mkdir()
        shutil.copy(text, tmp_path / folder / "text.txt")
    config, output = config_of(f"{tmp_path}/{pattern}"), tmp_path / "out"
    output.mkdir()
    sentences = open_run(config, output).train.meta.report.sentences
    assert sentences == 60 * (3 if pattern.startswith("**") else 1)
    assert begun(config, output)
    run = open_run(config, output)
    assert (run.resumed, run.train.meta.report.sentences) == (True, sentences)


def test_cutoffs_are_compared_with_the_words_of_a_file(text: Path, tmp_path: Path) -> None:
    """Not with vocabulary.size, 30, which is for words that are built from the text."""
    words = [*WORDS[:3], *(f"word{i}" for i in range(57))]
    Vocabulary(words).write(tmp_path / "words.txt")
    given = {"vocabulary": tmp_path / "words.txt"}
    run = open_run(config_of(text, paths=given, softmax=SoftmaxSettings("adaptive", cutoffs=(40,))), tmp_path / "out")
    assert run.vocabulary.words == words
    Vocabulary(WORDS).write(tmp_path / "words.txt")
    with pytest.raises(SettingsError, match=r"cutoffs is \[10\], but the vocabulary has 6 words"):
        run_of(config_of(text, paths=given, softmax=SoftmaxSettings("adaptive", cutoffs=(10,))), tmp_path / "few")
    assert not (tmp_path / "few").exists()
