"""What a run starts from: random weights, a model to be tuned, official files; and which words it predicts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from starts import check_paths, check_start, empty_model, find_vocabulary, starting_model
from torch import nn

from spacy_elmo.errors import CorpusError, ElmoError, OptionsError, SettingsError
from spacy_elmo.formats import BiLMOptions, read_options, read_weights
from spacy_elmo.modules.softmax import AdaptiveSoftmax, Softmax
from spacy_elmo.pretraining.config import (
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.config_file import commented, read_config
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.vocabulary import Vocabulary

ROOT = Path(__file__).parents[3]
OPTIONS = BiLMOptions(3, ((1, 3), (2, 2)), 1, "relu", 20, 24, 16, 2, 3.0, 3.0, True)
SPECIAL = ["<S>", "</S>", "<UNK>"]
TEXT = "the ship sank\nthe sea took the ship <S>\nthe whale\n"
# of 3 sentences and 10 tokens: the 4, ship 2, sank sea took whale 1, and a word spelled <S>
COUNTS = {"the": 4, "ship": 2, "sank": 1, "sea": 1, "took": 1, "whale": 1}
OLD_WORDS = [*SPECIAL, "the", "of", "ship", "king", "whale"]


@pytest.fixture
def corpus(tmp_path: Path) -> PreparedCorpus:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    return prepare(tmp_path / "text.txt", tmp_path / "prepared")


def old_model(kind: str = "sampled") -> LanguageModel:
    softmax = AdaptiveSoftmax(8, 16, [4, 6]) if kind == "adaptive" else Softmax(8, 16)
    softmax.reset_parameters(torch.arange(8.0) - 9, torch.Generator().manual_seed(7))
    counts = np.array([30, 30, 9, 50, 40, 30, 20, 10])
    return LanguageModel(bilm_of(OPTIONS, random_datasets(OPTIONS, 5)), softmax, Vocabulary(OLD_WORDS, counts))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    old_model().save(tmp_path / "old")
    return tmp_path / "old"


def config_of(
    kind: str = "sampled", cutoffs: tuple[int, ...] = (4, 6), paths: dict[str, Any] | None = None, **training: Any
) -> PretrainConfig:
    given = {name: str(path) for name, path in (paths or {}).items()}
    settings = TrainingSettings(softmax=SoftmaxSettings(kind, 4, cutoffs), **training)
    return PretrainConfig(PathSettings("text.txt", **given), OPTIONS, training=settings)


def started(config: PretrainConfig, corpus: PreparedCorpus) -> LanguageModel:
    return starting_model(config, find_vocabulary(config, corpus))


def same(a: nn.Module, b: nn.Module) -> bool:
    states = a.state_dict(), b.state_dict()
    assert states[0].keys() == states[1].keys()
    return all(torch.equal(values, states[1][name]) for name, values in states[0].items())


def rows_of(model: LanguageModel) -> dict[str, bytes]:
    """Each word's row and bias, as bits."""
    softmax = model.softmax
    assert isinstance(softmax, Softmax)
    table = torch.cat([softmax.weight, softmax.bias[:, None]], 1).detach().numpy()
    return {word: row.tobytes() for word, row in zip(model.words, table, strict=True)}


# Random weights


@pytest.mark.parametrize("kind", ["sampled", "full", "adaptive"])
def test_the_seed_decides_a_random_start(corpus: PreparedCorpus, kind: str) -> None:
    torch.manual_seed(1)
    first = started(config_of(kind, seed=4), corpus)
    torch.manual_seed(2)
    again, other = started(config_of(kind, seed=4), corpus), started(config_of(kind, seed=5), corpus)
    assert same(first.bilm, again.bilm)
    assert same(first.softmax, again.softmax)
    assert not same(first.bilm, other.bilm)
    assert not same(first.softmax, other.softmax)
    assert isinstance(first.softmax, AdaptiveSoftmax if kind == "adaptive" else Softmax)


def test_random_starts_predict_words_by_their_frequency(corpus: PreparedCorpus) -> None:
    """With an input of zeros; one added to each count, `</S>` once a sentence (see Vocabulary.log_unigram)."""
    model = started(config_of("full"), corpus)
    assert model.words == [*SPECIAL, "the", "ship", "sank", "sea", "took", "whale"]
    expected = np.log(np.array([3, 2, 5, 3, 2, 2, 2, 2]) / 21)
    bias = model.softmax.state_dict()["bias"][1:].numpy()
    np.testing.assert_allclose(bias, expected, rtol=1e-6)


# The words


def test_words_of_the_corpus(corpus: PreparedCorpus) -> None:
    config = replace(config_of(), vocabulary=VocabularySettings(size=5))
    vocabulary = find_vocabulary(config, corpus)
    assert vocabulary.words == [*SPECIAL, "the", "ship"]
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [3, 3, 5, 4, 2]


@pytest.mark.parametrize("with_init", [False, True])
def test_given_words_come_first_and_are_counted_in_the_corpus(
    corpus: PreparedCorpus, old: Path, tmp_path: Path, with_init: bool
) -> None:
    words = [*SPECIAL, "whale", "kraken", "the"]
    Vocabulary(words, np.array([9, 9, 9, 9, 9, 9])).write(tmp_path / "words.txt")
    paths = {"vocabulary": tmp_path / "words.txt"} | ({"init": old} if with_init else {})
    vocabulary = find_vocabulary(config_of(paths=paths), corpus)
    assert vocabulary.words == words
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [3, 3, 10 + 1 - 5, 1, 0, 4]


def test_words_of_the_model_to_be_tuned_are_kept(corpus: PreparedCorpus, old: Path) -> None:
    vocabulary = find_vocabulary(config_of(paths={"init": old}), corpus)
    assert vocabulary.words == OLD_WORDS
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [3, 3, 4, 4, 0, 2, 0, 1]


def test_words_of_a_folder_without_a_softmax_are_the_corpus(corpus: PreparedCorpus, old: Path) -> None:
    (old / "softmax.hdf5").unlink()
    vocabulary = find_vocabulary(config_of(paths={"init": old}, frozen_tokens=100), corpus)
    assert set(vocabulary.words) == {*SPECIAL, *COUNTS}


def test_a_model_without_its_words(corpus: PreparedCorpus, old: Path) -> None:
    (old / "vocabulary.txt").unlink()
    with pytest.raises(CorpusError, match=r"old.vocabulary\.txt"):
        find_vocabulary(config_of(paths={"init": old}), corpus)


# Tuning


def test_all_is_kept_where_the_words_are(corpus: PreparedCorpus, old: Path) -> None:
    model = started(config_of(paths={"init": old}, seed=11), corpus)
    assert same(model.bilm, old_model().bilm)
    assert same(model.softmax, old_model().softmax)


def test_shared_words_keep_their_rows_in_another_order(corpus: PreparedCorpus, old: Path, tmp_path: Path) -> None:
    words = [*SPECIAL, "whale", "kraken", "ship", "the", "deck"]
    Vocabulary(words).write(tmp_path / "words.txt")
    config = config_of(paths={"init": old, "vocabulary": tmp_path / "words.txt"}, seed=11)
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


def test_official_files_need_a_softmax_to_be_fitted(corpus: PreparedCorpus, golden: Path) -> None:
    folder = golden / "random_a"
    options = read_options(folder / "options.json")
    config = replace(config_of(paths={"init": folder}), bilm=options)
    with pytest.raises(SettingsError, match=r"no softmax\.hdf5\..*a file of its own.* set training\.frozen_tokens"):
        starting_model(config, Vocabulary([*SPECIAL, "the"]))
    model = started(replace(config, training=replace(config.training, frozen_tokens=1000)), corpus)
    for name, values in read_weights(folder / "weights.hdf5", options).items():
        np.testing.assert_array_equal(model.bilm.state_dict()[name].numpy(), values)
    assert model.softmax.n_words == 9
    assert model.softmax.projection_dim == options.projection_dim


def test_other_sizes_are_refused(old: Path) -> None:
    config = replace(config_of(paths={"init": old}), bilm=replace(OPTIONS, dim=25))
    with pytest.raises(SettingsError, match=r"\[bilm\] has other sizes than .*old.options\.json"):
        starting_model(config, Vocabulary(OLD_WORDS))


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "softmax.hdf5"])
def test_damaged_files_are_named(corpus: PreparedCorpus, old: Path, name: str) -> None:
    (old / name).write_bytes(b"\xff\xfe")
    with pytest.raises(ElmoError, match=name.replace(".", r"\.")):
        started(config_of(paths={"init": old}), corpus)


def test_what_can_not_start_is_refused_before_the_text_is_read(old: Path) -> None:
    check_start(config_of(paths={"init": old}))
    check_start(config_of("adaptive"))
    with pytest.raises(SettingsError, match=r"\[bilm\] has other sizes"):
        check_start(replace(config_of(paths={"init": old}), bilm=replace(OPTIONS, n_layers=3)))
    with pytest.raises(SettingsError, match="has 3 numbers, too many for a projection_dim of 16"):
        check_start(config_of("adaptive", (4, 6, 10)))
    with pytest.raises(OptionsError, match=r"options\.json: no such file"):
        check_start(config_of(paths={"init": old.parent}))
    (old / "softmax.hdf5").unlink()
    with pytest.raises(SettingsError, match=r"no softmax\.hdf5"):
        check_start(config_of(paths={"init": old}))
    check_start(config_of(paths={"init": old}, frozen_tokens=100))


def test_files_that_a_run_begins_with_have_to_be_there(corpus: PreparedCorpus, old: Path, tmp_path: Path) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "out"
    words = old / "vocabulary.txt"
    full = PretrainConfig(PathSettings(str(text), f"{tmp_path}/*.txt", str(words), str(old)), OPTIONS)
    check_paths(full, output)
    for name, value, message in (
        ("train", "no/*.gz", r"^paths\.train: .*no.\*\.gz: no such file"),
        ("heldout", "no/*.gz", r"^paths\.heldout: .*no.\*\.gz: no such file"),
        ("vocabulary", "no.txt", r"^paths\.vocabulary is '.*no\.txt'\. Expected a file"),
        ("init", "text.txt", r"^paths\.init is '.*text\.txt'\. Expected a folder"),
    ):
        paths = replace(full.paths, **{name: str(tmp_path / value)})
        with pytest.raises((CorpusError, SettingsError), match=message):
            check_paths(replace(full, paths=paths), output)
    output.mkdir()
    shutil.copy(text, output)
    with pytest.raises(CorpusError, match="no such file"):  # what the run wrote itself does not count
        check_paths(replace(full, paths=PathSettings(f"{output}/*.txt")), output)


@pytest.mark.parametrize("kind", ["sampled", "adaptive"])
def test_a_run_that_goes_on_needs_no_model_to_begin_with(corpus: PreparedCorpus, kind: str, tmp_path: Path) -> None:
    """The sizes are those of the model at the beginning; the values come from a checkpoint."""
    old_model(kind).save(tmp_path / "before")
    config = config_of(kind, paths={"init": tmp_path / "before"}, frozen_tokens=100)
    first = started(config, corpus)
    shutil.rmtree(tmp_path / "before")
    empty = empty_model(config, Vocabulary(OLD_WORDS))
    for a, b in ((first.bilm, empty.bilm), (first.softmax, empty.softmax)):
        assert [(name, t.shape) for name, t in a.state_dict().items()] == [
            (name, t.shape) for name, t in b.state_dict().items()
        ]


# The adaptive softmax


def test_an_adaptive_softmax_is_kept_as_a_whole(corpus: PreparedCorpus, tmp_path: Path) -> None:
    old_model("adaptive").save(tmp_path / "adaptive")
    model = started(config_of("adaptive", paths={"init": tmp_path / "adaptive"}), corpus)
    assert same(model.bilm, old_model().bilm)
    assert same(model.softmax, old_model("adaptive").softmax)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "kind", "cutoffs", "words"),
    [
        ("adaptive", "sampled", (4, 6), None),
        ("sampled", "adaptive", (4, 6), None),
        ("adaptive", "adaptive", (5, 6), None),
        ("adaptive", "adaptive", (4,), None),
        ("adaptive", "adaptive", (4, 6), [*OLD_WORDS[:-1], "kraken"]),
        ("adaptive", "adaptive", (4, 6), [*OLD_WORDS, "kraken"]),
    ],
)
def test_an_adaptive_softmax_does_not_change(
    corpus: PreparedCorpus,
    tmp_path: Path,
    before: str,
    kind: str,
    cutoffs: tuple[int, ...],
    words: list[str] | None,
) -> None:
    old_model(before).save(tmp_path / "before")
    Vocabulary(words or OLD_WORDS).write(tmp_path / "words.txt")
    paths = {"init": tmp_path / "before", "vocabulary": tmp_path / "words.txt"}
    with pytest.raises(SettingsError, match=r"An adaptive softmax can only be tuned as it is"):
        started(config_of(kind, cutoffs, paths), corpus)
    # the way out that the message names
    shutil.copytree(tmp_path / "before", tmp_path / "bilm", ignore=shutil.ignore_patterns("softmax.hdf5"))
    paths["init"] = tmp_path / "bilm"
    model = started(config_of(kind, cutoffs, paths, frozen_tokens=100), corpus)
    assert same(model.bilm, old_model().bilm)


def test_cutoffs_beyond_the_words_that_the_corpus_has(corpus: PreparedCorpus) -> None:
    with pytest.raises(SettingsError, match=r"cutoffs is \[4, 9\], but the vocabulary has 9 words"):
        started(config_of("adaptive", (4, 9)), corpus)


# The configuration of the domain tuning


def test_the_tuning_configuration(old: Path, tmp_path: Path) -> None:
    """Sizes and words are those of the model to be tuned; all settings are ones that exist."""
    path = ROOT / "configs" / "tune.cfg"
    config = read_config(path, {"paths.init": str(old), "paths.train": str(ROOT / "README.md")})
    assert config.bilm == OPTIONS
    assert config.paths.vocabulary is None
    assert (config.training.epochs, config.training.total_tokens) == (1.0, None)
    assert config.training.frozen_tokens == 0
    assert config.training.optimizer.learning_rate == 1e-3
    schedule = config.training.schedule
    assert (schedule.kind, schedule.warmup_steps, schedule.decay_share) == ("linear", 100, 1.0)
    header, settings = path.read_text(encoding="utf8").split("\n\n", 1)
    lines = header.splitlines()
    assert all(line.startswith("# ") for line in lines)
    command = "# python -m spacy elmo pretrain configs/tune.cfg runs/novels --paths.train TEXT --paths.init en_mini"
    assert lines[1] == command  # the two paths of the file are not there for a user
    assert lines[3] == "# python -m spacy elmo init-pretrain-config tune.cfg --train TEXT --init en_mini"
    without_comments = "\n".join(line for line in settings.splitlines() if not line.startswith("#"))
    assert settings == commented(without_comments)  # as init-pretrain-config writes them
