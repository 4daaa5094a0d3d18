"""Sizes of biLMs to train, and settings that fit a text. The numbers of updates are worked out by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.pretraining import presets
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.presets import (
    MOST_WORDS,
    SIZES,
    Size,
    TextSize,
    config_of_size,
    count_text,
    enough_sentences,
    enough_tokens,
    fit,
    tuning_config,
)

PATHS = PathSettings("a.txt", "b.txt")
TUNING = tuning_config(PATHS)
ALL = [TUNING, *(config_of_size(size, PATHS) for size in Size)]


@pytest.mark.parametrize(
    ("size", "n_filters", "dim", "projection", "n_highway", "parameters"),
    [
        ("tiny", 256, 256, 64, 1, 0.8),
        ("mini", 512, 1024, 128, 1, 5.4),
        ("midi", 1024, 2048, 256, 1, 21.4),
        ("small", 2048, 1024, 128, 1, 13.6),
        ("medium", 2048, 2048, 256, 1, 28.0),
        ("original", 2048, 4096, 512, 2, 93.6),
    ],
)
def test_sizes(size: str, n_filters: int, dim: int, projection: int, n_highway: int, parameters: float) -> None:
    options = SIZES[Size(size)]
    assert (options.n_filters, options.dim, options.projection_dim) == (n_filters, dim, projection)
    assert (options.n_highway, options.n_layers, options.char_dim) == (n_highway, 2, 16)
    assert (options.cell_clip, options.proj_clip, options.use_skip_connections) == (3, 3, True)
    assert round(options.n_parameters / 1e6, 1) == parameters


def test_all_but_the_first_and_the_last_are_trained_by_the_defaults() -> None:
    for size in (Size.mini, Size.midi, Size.small, Size.medium):
        assert config_of_size(size, PATHS).training == TrainingSettings()
    original = config_of_size(Size.original, PATHS)  # as its authors trained it
    training, optimizer, softmax = original.training, original.training.optimizer, original.training.softmax
    assert original.vocabulary.size == 793_471
    assert (training.streams, training.steps, training.dropout, training.epochs) == (384, 20, 0.1, 10)
    assert (training.zero_state_share, softmax.kind, softmax.negatives) == (0, "sampled", 8192)
    assert (optimizer.name, optimizer.learning_rate, optimizer.initial_accumulator) == ("adagrad", 0.2, 1)
    assert (optimizer.clip_norm, optimizer.loss_scale) == (10, 20)
    assert (training.schedule.kind, training.schedule.warmup_steps) == ("constant", 0)


@pytest.mark.parametrize("config", ALL)
def test_a_large_text_changes_nothing(config: PretrainConfig) -> None:
    tokens = enough_tokens(config)
    assert fit(config, TextSize(400, tokens)).config == config
    cut = replace(config, paths=PathSettings("a.txt"))
    assert enough_tokens(cut) == pytest.approx(tokens / 0.99, abs=2)  # a hundredth is held out
    assert fit(config, TextSize(enough_sentences(config), 10**9)).config == config
    assert fit(config, TextSize(config.training.streams - 1, 10**9)).config != config
    assert fit(config, TextSize(10, 100, complete=False)).config == config  # the count ended early
    assert fit(config, TextSize(400, tokens * 9 // 10)).config != config


@pytest.mark.parametrize(
    ("sentences", "tokens", "streams", "epochs", "before", "updates", "warmup"),
    [
        (11_800, 410_738, 32, 1.0, 83, 660, 66),  # 422,538 tokens with </S>, of 640 an update
        (3_000, 98_504, 16, 1.0, 20, 317, 31),  # 101,504 of 320
        (1_000, 31_000, 16, 2.0, 6, 200, 20),  # 32,000 of 320, twice
        (10, 310, 8, 5.0, 1, 10, 1),  # 320 of 160, five times
        (80_000, 2_480_000, 256, 1.0, 500, 500, 50),  # streams stay, the warm-up is shorter
    ],
)
def test_tuning_to_a_small_text(
    sentences: int, tokens: int, streams: int, epochs: float, before: int, updates: int, warmup: int
) -> None:
    config, was, becomes = fit(TUNING, TextSize(sentences, tokens))
    training = config.training
    assert (training.streams, training.epochs, training.schedule.warmup_steps) == (streams, epochs, warmup)
    assert (was, becomes) == (before, updates)
    assert replace(training, streams=256, epochs=1.0, schedule=TUNING.training.schedule) == TUNING.training


@pytest.mark.parametrize(
    ("sentences", "heldout", "streams"),
    [(16, "b.txt", 16), (15, "b.txt", 8), (17, None, 16), (16, None, 8), (2, None, 1), (1, "b.txt", 1)],
)
def test_each_stream_has_a_sentence(sentences: int, heldout: str | None, streams: int) -> None:
    """Without a held-out text, a hundredth of the sentences is held out, 1 at least."""
    config = replace(TUNING, paths=PathSettings("a.txt", heldout))
    for length in (31, 1_000_000):  # tokens of a sentence; long ones give enough updates
        fitted, _, updates = fit(config, TextSize(sentences, length * sentences))
        assert fitted.training.streams == streams
        tokens = (length + 1) * sentences * (1.0 if heldout is not None else 0.99) * fitted.training.epochs
        assert updates == max(1, round(tokens / (streams * 20)))


@pytest.mark.parametrize("config", ALL)
def test_settings_do_not_jump(config: PretrainConfig) -> None:
    """A text that is a little larger has about as many evaluations; 129,303 tokens had two in tiny."""
    for tokens in (20_000, 129_303, 10**6, enough_tokens(config) - 1, enough_tokens(config)):
        counts = []
        for more in (1.0, 1.01):
            fitted, _, updates = fit(config, TextSize(round(more * tokens / 30), round(more * tokens)))
            counts.append(updates // fitted.evaluation.every)
        assert min(counts) >= 10
        assert counts[1] <= counts[0] + 2


@pytest.mark.parametrize("config", ALL)
@pytest.mark.parametrize("sentences", [300, 3_000, 11_800])
def test_evaluations_cost_a_tenth_of_the_run(config: PretrainConfig, sentences: int) -> None:
    """If a scored token costs two trained ones, and eight in tiny. A warm-up is a tenth at most."""
    fitted, _, updates = fit(config, TextSize(sentences, 33 * sentences))
    evaluation, training = fitted.evaluation, fitted.training
    cost = 8 if config.bilm.dim == 256 else 2
    assert evaluation.sentences * 34 * cost <= evaluation.every * training.tokens_per_update / 10
    assert updates // evaluation.every >= 10
    assert evaluation.checkpoint_every <= evaluation.every
    assert training.schedule.warmup_steps <= updates / 10


@pytest.mark.parametrize(("size", "negatives"), [(Size.tiny, 1_024), (Size.mini, 4_096)])
def test_few_words_are_not_sampled(size: Size, negatives: int) -> None:
    config = config_of_size(size, PATHS)
    assert config.training.softmax.negatives == negatives
    for words, kind in ((2 * negatives - 1, "full"), (2 * negatives, "sampled")):
        for complete in (True, False):
            fitted = fit(config, TextSize(3_000, 60_000, complete, words, words)).config
            assert fitted.training.softmax == replace(config.training.softmax, kind=kind)
    size = TextSize(3_000, 60_000, words=100)
    assert fit(TUNING, size, own_words=False).config.training.softmax == TUNING.training.softmax
    assert all(2 * config.training.softmax.negatives < MOST_WORDS for config in ALL)  # so that none is too few


@pytest.mark.parametrize(
    ("words", "repeated", "min_count", "kind"),
    [
        (30_000, 8_191, None, "full"),  # words that occur once may be left out: twice 4,096 are more than the others
        (30_000, 8_192, None, "sampled"),
        (30_000, 8_191, 1, "sampled"),
        (49_996, 8_191, None, "full"),
        (49_997, 8_191, None, "sampled"),  # with the three special words the vocabulary is full
        (MOST_WORDS, 8_191, None, "sampled"),
    ],
)
def test_words_that_may_be_left_out(words: int, repeated: int, min_count: int | None, kind: str) -> None:
    for config in (TUNING, ALL[2]):
        given = replace(config, vocabulary=replace(config.vocabulary, min_count=min_count))
        fitted = fit(given, TextSize(3_000, 100_000, True, words, repeated)).config
        assert (fitted.vocabulary, fitted.training.softmax.kind) == (given.vocabulary, kind)


# How large a text is


def test_a_tokenizer_is_asked_of_the_first_sentences_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "don't go!" is four tokens of English: do n't go !"""
    monkeypatch.setattr(presets, "_SAMPLED", 10)
    (tmp_path / "a.txt").write_text("don't go!\n" * 50 + "go\n" * 50, encoding="utf8")
    # 150 words, two tokens each
    assert count_text(str(tmp_path / "a.txt"), "en", 10**6) == TextSize(100, 300, words=3, repeated=3)
    assert count_text(str(tmp_path / "a.txt"), None, 10**6) == TextSize(100, 150, words=3, repeated=3)
    assert count_text(str(tmp_path / "a.txt"), "en", 100) == TextSize(25, 100, complete=False, words=2, repeated=2)


def test_distinct_words_are_counted_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "MOST_WORDS", 50)
    (tmp_path / "a.txt").write_text("".join(f"word{i} word{i + 1}\n" for i in range(70)), encoding="utf8")
    assert count_text(str(tmp_path / "a.txt"), None, 10**6) == TextSize(70, 140, words=50, repeated=48)


def test_words_without_blanks_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    """Each character is a word of spaCy's Chinese tokenizer."""
    characters = [chr(0x4E00 + i) for i in range(300)]
    lines = ["".join(characters[(7 * i + k) % 300] for k in range(12)) for i in range(2_000)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf8")
    assert count_text(str(tmp_path / "a.txt"), "zh", 10**6) == TextSize(2_000, 24_000, words=300, repeated=300)
