"""The folder of a run: what it may begin with, what it goes on with, its words, and its first model."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from bilm_package import install_bilm, uninstall_all
from small_run import OPTIONS, config_of, with_paths, write_text
from small_run import run as run_of
from torch import nn

from spacy_elmo.errors import CorpusError, OptionsError, SettingsError, WeightsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.config import (
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.folder import (
    WRITTEN,
    check_new_run,
    find_vocabulary,
    has_checkpoint,
    open_run,
    starting_model,
)
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary

SIZES = BiLMOptions(3, ((1, 3), (2, 2)), 1, "relu", 20, 24, 16, 2, 3.0, 3.0, True)
SPECIAL = ["<S>", "</S>", "<UNK>"]
TEXT = "the ship sank\nthe sea took the ship <S>\nthe whale\n"
OLD_WORDS = [*SPECIAL, "the", "of", "ship", "king", "whale"]
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


def test_a_start_that_can_not_be_is_refused_before_anything_is_written(given: PretrainConfig, tmp_path: Path) -> None:
    (tmp_path / "init" / "softmax.hdf5").unlink()
    with pytest.raises(WeightsError, match=r"there is no softmax\.hdf5"):
        run_of(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(SettingsError, match=r"init: holds options\.json, .*, but no run"):
        run_of(given, tmp_path / "init")


def test_files_may_move_or_be_gone(
    given: PretrainConfig, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights are in the checkpoints. run.json keeps digests of the words and the weights."""
    words = hashlib.sha256("".join(f"{word}\n" for word in WORDS).encode()).hexdigest()
    weights = hashlib.sha256((tmp_path / "init" / "weights.hdf5").read_bytes()).hexdigest()
    output = begun(given, tmp_path / "out")
    before = (output / "run.json").read_bytes()
    texts = json.loads(before)["texts"]
    assert (texts["vocabulary"], texts["paths.vocabulary"], texts["paths.init"]) == (words, words, weights)
    identity = open_run(given, output).identity
    install_bilm(monkeypatch, tmp_path, "en_mini", tmp_path / "init")
    (tmp_path / "init").rename(tmp_path / "moved")
    (tmp_path / "words.txt").rename(tmp_path / "moved.txt")
    text.unlink()
    moved = with_paths(given, vocabulary=tmp_path / "moved.txt", init=tmp_path / "moved")
    for config in (given, moved, with_paths(given, init="en_mini")):
        run = open_run(config, output)
        assert (run.identity, run.resumed, run.vocabulary.words) == (identity, True, WORDS)
        assert run.init_sha256 == open_run(config, output, first=False).init_sha256 == weights
    uninstall_all(monkeypatch)
    assert open_run(with_paths(given, init="en_mini"), output).resumed
    assert (output / "run.json").read_bytes() == before


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
            r"started with paths\.vocabulary = \w+, but now it is \w+\. Set it back, or put the file .* --restart",
        ),
        ({"init": tmp_path / "other"}, r"started with paths\.init = \w+, but now it is \w+\."),
        ({"vocabulary": None}, r"started with paths\.vocabulary = \w+, but now it is None"),
        ({"init": None}, r"started with paths\.init = \w+, but now it is None.* or add --restart"),
    ):
        with pytest.raises(SettingsError, match=message):
            open_run(with_paths(given, **paths), output)
    assert (output / "config.cfg").read_bytes() == before
    without = begun(config_of(given.paths.train), tmp_path / "without")
    for name in ("vocabulary", "init"):
        value = getattr(given.paths, name)
        with pytest.raises(SettingsError, match=rf"started with paths\.{name} = None, but now it is \w+\."):
            open_run(with_paths(config_of(given.paths.train), **{name: value}), without)
    words = (output / "vocabulary.txt").read_text(encoding="utf8").splitlines()
    (output / "vocabulary.txt").write_text("\n".join([*words[:4], words[5], words[4]]) + "\n", encoding="utf8")
    with pytest.raises(
        SettingsError, match=r"started with vocabulary = \w+, but now it is \w+\. .* put the vocabulary\.txt of the run"
    ):
        open_run(given, output)


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


def test_settings_that_may_change_and_others(text: Path, tmp_path: Path) -> None:
    config = config_of(text)
    output = begun(config, tmp_path / "out")
    longer = replace(config.training, epochs=9.0, total_tokens=None, workers=2, patience=3, average_share=0.1)
    assert open_run(replace(config, training=longer), output).resumed
    other = replace(config, training=replace(config.training, seed=1))
    with pytest.raises(SettingsError, match=r"started with training\.seed = 0, but now it is 1\..* or add --restart"):
        open_run(other, output)
    for damaged in ("{", '{"settings": {}, "texts": 1}'):
        (output / "run.json").write_text(damaged, encoding="utf8")
        with pytest.raises(SettingsError, match=r"run\.json: can't be read .* put the complete file there\. To start"):
            open_run(config, output)


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


@pytest.mark.parametrize("pattern", ["**/*.txt", "*/*/*.txt"])
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


def test_files_that_a_run_would_replace(text: Path, tmp_path: Path) -> None:
    config, output = config_of(text), tmp_path / "out"
    output.mkdir()
    (output / ".hidden").touch()  # of an attempt that failed early
    for beside in (True, False, None):
        check_new_run(config, output, beside)
    (output / "notes.txt").touch()
    check_new_run(config, output, True)
    for beside, hint in ((False, "one, or add --force to write beside them"), (None, "one")):
        with pytest.raises(SettingsError, match=rf"holds notes\.txt, but no run\.json.* give another {hint}\.$"):
            check_new_run(config, output, beside)
    for name in WRITTEN:
        (output / name).touch()
        with pytest.raises(SettingsError, match=f"holds {name}, but no run.json"):
            check_new_run(config, output, True)
        (output / name).unlink()
    for own in ("run.json", "corpus/meta.json"):  # any of these makes it the folder of a run
        (output / "vocabulary.txt").touch()
        (output / own).parent.mkdir(exist_ok=True)
        (output / own).touch()
        for beside in (True, False, None):
            check_new_run(config, output, beside)
        (output / own).unlink()


# What it starts from


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedCorpus:
    """That of text.txt in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    return prepare(tmp_path / "text.txt", tmp_path / "prepared")


def old_model() -> LanguageModel:
    softmax = Softmax(8, 16)
    softmax.reset_parameters(torch.arange(8.0) - 9, torch.Generator().manual_seed(7))
    counts = np.array([30, 30, 9, 50, 40, 30, 20, 10])
    return LanguageModel(bilm_of(SIZES, random_datasets(SIZES, 5)), softmax, Vocabulary(OLD_WORDS, counts))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    old_model().save(tmp_path / "old")
    return tmp_path / "old"


def tuning_of(paths: dict[str, Any] | None = None, **training: Any) -> PretrainConfig:
    given = {name: str(path) for name, path in (paths or {}).items()}
    settings = TrainingSettings(softmax=SoftmaxSettings("sampled", 4), **training)
    return PretrainConfig(PathSettings("text.txt", **given), SIZES, training=settings)


def started(config: PretrainConfig, corpus: PreparedCorpus) -> LanguageModel:
    return starting_model(config, find_vocabulary(config, corpus))


def same(a: nn.Module, b: nn.Module) -> bool:
    states = a.state_dict(), b.state_dict()
    assert states[0].keys() == states[1].keys()
    return all(torch.equal(values, states[1][name]) for name, values in states[0].items())


def rows_of(model: LanguageModel) -> dict[str, bytes]:
    """Each word's row and bias, as bits."""
    softmax = model.softmax
    table = torch.cat([softmax.weight, softmax.bias[:, None]], 1).detach().numpy()
    return {word: row.tobytes() for word, row in zip(model.words, table, strict=True)}


def test_random_starts(corpus: PreparedCorpus) -> None:
    """The seed decides. With an input of zeros, words are predicted by their frequency (Vocabulary.log_unigram)."""
    first, again, other = (started(tuning_of(seed=seed), corpus) for seed in (4, 4, 5))
    for module in ("bilm", "softmax"):
        assert same(getattr(first, module), getattr(again, module))
        assert not same(getattr(first, module), getattr(other, module))
    assert first.words == [*SPECIAL, "the", "ship", "sank", "sea", "took", "whale"]
    expected = np.log(np.array([3, 2, 5, 3, 2, 2, 2, 2]) / 21)
    np.testing.assert_allclose(first.softmax.state_dict()["bias"][1:].numpy(), expected, rtol=1e-6)


# The words


@pytest.mark.parametrize(
    ("source", "words", "counts"),
    [
        ("text", ["the", "ship"], [3, 3, 5, 4, 2]),
        ("file and init", ["whale", "kraken", "the"], [3, 3, 10 + 1 - 5, 1, 0, 4]),
        ("init", OLD_WORDS[3:], [3, 3, 4, 4, 0, 2, 0, 1]),
        ("init without a softmax", ["the", "ship"], [3, 3, 5, 4, 2]),
    ],
)
def test_the_words_and_their_counts_in_the_text(
    corpus: PreparedCorpus, old: Path, source: str, words: list[str], counts: list[int]
) -> None:
    """Those of the file first, then those of the biLM to go on from, then those of the text."""
    Vocabulary([*SPECIAL, "whale", "kraken", "the"], np.full(6, 9)).write(Path("words.txt"))
    paths = {"vocabulary": Path("words.txt")} if "file" in source else {}
    if "init" in source:
        paths["init"] = old
    if source == "init without a softmax":
        (old / "softmax.hdf5").unlink()
    frozen = 100 if paths.get("init") else 0
    config = replace(tuning_of(paths=paths, frozen_tokens=frozen), vocabulary=VocabularySettings(size=5))
    vocabulary = find_vocabulary(config, corpus)
    assert vocabulary.words == [*SPECIAL, *words]
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == counts


# Tuning


def test_all_is_kept_where_the_words_are(corpus: PreparedCorpus, old: Path) -> None:
    model = started(tuning_of(paths={"init": old}, seed=11), corpus)
    assert same(model.bilm, old_model().bilm)
    assert same(model.softmax, old_model().softmax)


def test_shared_words_keep_their_rows_in_another_order(corpus: PreparedCorpus, old: Path, tmp_path: Path) -> None:
    words = [*SPECIAL, "whale", "kraken", "ship", "the", "deck"]
    Vocabulary(words).write(tmp_path / "words.txt")
    config = tuning_of(paths={"init": old, "vocabulary": tmp_path / "words.txt"}, seed=11)
    model, again = started(config, corpus), started(config, corpus)
    assert same(model.bilm, old_model().bilm)
    got, before = rows_of(model), rows_of(old_model())
    assert list(got) == words
    for word in [*SPECIAL, "whale", "ship", "the"]:
        assert got[word] == before[word], word
    assert not {got["kraken"], got["deck"]} & set(before.values())
    assert got["kraken"] != got["deck"]
    assert rows_of(again) == got
    fresh = started(replace(config, training=replace(config.training, seed=12)), corpus)
    assert rows_of(fresh)["deck"] != got["deck"]


def test_what_can_not_start_is_refused_before_the_text_is_read(corpus: PreparedCorpus, old: Path) -> None:
    tuning, output = tuning_of(paths={"init": old}), Path("out")
    check_new_run(tuning, output, False)
    with pytest.raises(SettingsError, match=r"\[bilm\] has other sizes than .*old.options\.json"):
        check_new_run(replace(tuning, bilm=replace(SIZES, n_layers=3)), output, False)
    with pytest.raises(CorpusError, match=r"options\.json: line 1: .* Expected one word a line"):
        check_new_run(tuning_of({"vocabulary": old / "options.json"}), output, False)
    with pytest.raises(OptionsError, match=r"options\.json: no such file"):
        check_new_run(tuning_of(paths={"init": old.parent}), output, False)
    (old / "softmax.hdf5").unlink()
    with pytest.raises(WeightsError, match=r"no softmax\.hdf5, .*a file of its own.* set training\.frozen_tokens"):
        check_new_run(tuning, output, False)
    check_new_run(tuning_of(paths={"init": old}, frozen_tokens=100), output, False)


def test_files_that_a_run_begins_with_have_to_be_there(corpus: PreparedCorpus, old: Path, tmp_path: Path) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "out"
    words = old / "vocabulary.txt"
    full = PretrainConfig(PathSettings(str(text), f"{tmp_path}/*.txt", str(words), str(old)), SIZES)
    check_new_run(full, output, False)
    for name, value, message in (
        ("train", "no/*.gz", r"^paths\.train: .*no.\*\.gz: no such file"),
        ("heldout", "no/*.gz", r"^paths\.heldout: .*no.\*\.gz: no such file"),
        ("vocabulary", "no.txt", r"^paths\.vocabulary is '.*no\.txt'\. Expected a file"),
        ("init", "text.txt", r"text\.txt' names no biLM"),
    ):
        paths = replace(full.paths, **{name: str(tmp_path / value)})
        with pytest.raises((CorpusError, SettingsError), match=message):
            check_new_run(replace(full, paths=paths), output, False)
    output.mkdir()
    shutil.copy(text, output)
    with pytest.raises(CorpusError, match="no such file"):  # what the run wrote itself does not count
        check_new_run(replace(full, paths=PathSettings(f"{output}/*.txt")), output, False)
