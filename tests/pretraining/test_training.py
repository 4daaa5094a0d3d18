"""A run on a few hundred sentences: it learns, resumes bit for bit, exports, and its perplexity is a plain one."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.errors import CheckpointError, CorpusError, SettingsError
from spacy_elmo.formats import BiLMOptions, batch_to_ids_array, read_options, read_weights, words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.softmax import Softmax
from spacy_elmo.pretraining.batches import reading
from spacy_elmo.pretraining.checkpoint import read_checkpoint, write_checkpoint
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus import END, START, UNKNOWN, Corpus, encode_corpus, load_corpus, save_corpus
from spacy_elmo.pretraining.loop import pretrain
from spacy_elmo.pretraining.perplexity import perplexity, unigram_perplexity
from spacy_elmo.pretraining.run_folder import load_run
from spacy_elmo.pretraining.trainer import Trainer

OPTIONS = BiLMOptions(
    char_dim=4,
    filters=((1, 8), (2, 8)),
    n_highway=1,
    activation="relu",
    max_characters=50,
    dim=12,
    projection_dim=6,
    n_layers=2,
    cell_clip=3.0,
    proj_clip=3.0,
    use_skip_connections=True,
)
CONFIG = PretrainConfig(
    n_words=20,
    streams=16,
    steps=8,
    negatives=10,
    learning_rate=0.03,
    warmup_steps=5,
    total_tokens=15_360,
    workers=2,
    evaluate_every=60,
    checkpoint_every=30,
    evaluation_sentences=20,
)


def write_text(path: Path, n: int, seed: int) -> Path:
    """Sentences in which each word leaves two to follow, so that there is something to learn."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        word, words = rng.randrange(24), []
        for _ in range(rng.randint(1, 9)):
            words.append(f"w{word}")
            word = (word * 5 + rng.randrange(2)) % 24
        lines.append(" ".join(words))
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("text")
    return write_text(folder / "train.txt", 400, 1), write_text(folder / "heldout.txt", 30, 2)


@pytest.fixture(scope="module")
def corpus(texts: tuple[Path, Path]) -> Corpus:
    return encode_corpus(*texts)


@pytest.fixture(scope="module")
def run(texts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run")
    pretrain(OPTIONS, CONFIG, *texts, output, report=lambda line: None)
    return output


def test_words_are_sorted_by_frequency(corpus: Corpus, texts: tuple[Path, Path]) -> None:
    words = texts[0].read_text(encoding="utf8").split()
    assert corpus.words[:3] == ["<S>", "</S>", "<UNK>"]
    assert sorted(corpus.words[3:]) == sorted(set(words) | set(texts[1].read_text(encoding="utf8").split()))
    assert [words.count(word) for word in corpus.words] == corpus.counts.tolist()
    assert corpus.counts[3:].tolist() == sorted(corpus.counts[3:], reverse=True)
    first = texts[0].read_text(encoding="utf8").splitlines()[0].split()
    assert [corpus.words[i] for i in corpus.train.sentence(0)] == first


def test_a_kept_corpus_is_the_same(corpus: Corpus, tmp_path: Path) -> None:
    assert load_corpus(tmp_path) is None
    save_corpus(tmp_path, corpus)
    kept = load_corpus(tmp_path)
    assert kept is not None
    assert kept.words == corpus.words
    for a, b in ((kept.train, corpus.train), (kept.heldout, corpus.heldout)):
        assert (a.ids == b.ids).all()
        assert (a.offsets == b.offsets).all()


def test_unigram_probabilities_sum_to_one(corpus: Corpus) -> None:
    p = np.exp(corpus.log_unigram(20))
    assert p.sum() - p[START] == pytest.approx(1.0)
    ids = np.where(corpus.heldout.ids < 20, corpus.heldout.ids, UNKNOWN)
    logs = [*np.log(p[ids]), *[np.log(p[END])] * corpus.heldout.n_sentences]
    assert unigram_perplexity(np.log(p), corpus.heldout) == pytest.approx(np.exp(-np.mean(logs)))


def test_it_learns_and_exports(run: Path, corpus: Corpus) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [60, 120]
    assert rows[-1]["tokens"] == 15_360
    assert rows[-1]["perplexity"] < 0.8 * unigram_perplexity(corpus.log_unigram(20), corpus.heldout)
    options = read_options(run / "options.json")
    bilm = BiLM.from_arrays(options, read_weights(run / "weights.hdf5", options))
    trained, softmax, _ = load_run(run)
    for (name, a), (_, b) in zip(bilm.named_parameters(), trained.named_parameters()):
        assert torch.equal(a, b), name
    assert softmax.weight.shape == (20, 6)


def mean_loss(softmax: Softmax, top: torch.Tensor, targets: list[int]) -> list[float]:
    log_p = torch.log_softmax((top @ softmax.weight.T + softmax.bias).double(), 1)
    return [-log_p[t, target].item() for t, target in enumerate(targets)]


@torch.no_grad()
def test_perplexity_from_the_zero_state_is_the_plain_one(run: Path, corpus: Corpus) -> None:
    bilm, softmax, _ = load_run(run)
    forward, backward = [], []
    for k in range(corpus.heldout.n_sentences):
        ids = corpus.heldout.sentence(k)
        output = bilm(torch.from_numpy(batch_to_ids_array([[corpus.words[i] for i in ids]])))
        targets = [int(i) if i < 20 else UNKNOWN for i in ids]
        # forward at position t predicts t + 1, backward at t predicts t - 1; nothing is predicted from the far end
        forward += mean_loss(softmax, output.layers[-1, 0, :-1, :6], [*targets, END])
        backward += mean_loss(softmax, output.layers[-1, 0, 1:, 6:], [START, *targets])
    result = perplexity(bilm, softmax, corpus.heldout, corpus.character_ids(50), batch_tokens=40)
    assert result.predictions == len(forward) == len(corpus.heldout.ids) + 30
    assert result.forward == pytest.approx(np.exp(np.mean(forward)), rel=1e-5)
    assert result.backward == pytest.approx(np.exp(np.mean(backward)), rel=1e-5)
    assert result.mean == pytest.approx(np.exp((np.mean(forward) + np.mean(backward)) / 2), rel=1e-5)


@torch.no_grad()
def test_perplexity_with_carried_state_is_the_plain_one(run: Path, corpus: Corpus) -> None:
    bilm, softmax, _ = load_run(run)
    losses: tuple[list[float], list[float]] = ([], [])
    for begin, end in ((0, 10), (10, 20), (20, 30)):  # three streams, each run whole
        rows = np.concatenate([reading(corpus.heldout.sentence(k)) for k in range(begin, end)], 1)
        encoded = [bilm.char_cnn(torch.from_numpy(words_to_ids([corpus.words[i] for i in rows[d]]))) for d in (0, 2)]
        outputs, _, _ = bilm.lstm.scan(torch.stack(encoded)[:, :, None], bilm.lstm.zero_state(1))
        for d in (0, 1):
            targets = [int(i) if i < 20 else UNKNOWN for i in rows[2 * d + 1]]
            losses[d].extend(mean_loss(softmax, outputs[-1][d, :, 0], targets))
    result = perplexity(bilm, softmax, corpus.heldout, corpus.character_ids(50), carried_state=True, streams=3)
    assert result.predictions == len(losses[0])
    assert result.forward == pytest.approx(np.exp(np.mean(losses[0])), rel=1e-5)
    assert result.backward == pytest.approx(np.exp(np.mean(losses[1])), rel=1e-5)


def test_a_resumed_run_gives_the_same_bits(corpus: Corpus, tmp_path: Path) -> None:
    whole, first = Trainer(OPTIONS, CONFIG, corpus), Trainer(OPTIONS, CONFIG, corpus)
    for _ in range(12):
        whole.step()
    for _ in range(7):
        first.step()
    write_checkpoint(tmp_path / "c.h5", first.state_arrays())
    second = Trainer(OPTIONS, CONFIG, corpus)
    second.restore(read_checkpoint(tmp_path / "c.h5"))
    for _ in range(5):
        second.step()
    a, b = whole.state_arrays(), second.state_arrays()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_stopped_run_goes_on_from_its_checkpoint(texts: tuple[Path, Path], run: Path, tmp_path: Path) -> None:
    class PowerCut(Exception):
        pass

    def cut(line: str) -> None:
        if "held-out" in line:
            raise PowerCut

    with pytest.raises(PowerCut):
        pretrain(OPTIONS, CONFIG, *texts, tmp_path, report=cut)
    lines: list[str] = []
    pretrain(OPTIONS, CONFIG, *texts, tmp_path, report=lines.append)
    assert lines[0].startswith("resumed at step 60")
    assert (tmp_path / "weights.hdf5").read_bytes() == (run / "weights.hdf5").read_bytes()


def test_a_failed_checkpoint_leaves_the_old_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c.h5", {"a": np.arange(3)})
    with pytest.raises(TypeError):
        write_checkpoint(tmp_path / "c.h5", {"a": np.arange(4), "b": np.array([object()])})
    assert read_checkpoint(tmp_path / "c.h5")["a"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["c.h5"]


def test_the_learning_rate_rises_stays_and_falls() -> None:
    config = replace(CONFIG, total_tokens=128 * 100, warmup_steps=10, decay_share=0.4, learning_rate=1.0)
    rates = [config.learning_rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert set(rates[10:60]) == {1.0}
    assert rates[80] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(1 / 40)


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("streams", 15, "multiple of training.workers, 2"),
        ("streams", 0, "1 or more"),
        ("steps", 2.5, "whole number"),
        ("learning_rate", float("nan"), "0 or more"),
        ("learning_rate", "fast", "a number"),
        ("zero_state_share", 1.5, "0 to 1"),
        ("negatives", 21, "at most training.n_words, 20"),
        ("n_words", 2, "at least 3"),
        ("beta2", 1.0, "less than 1"),
        ("clip_norm", 0, "more than 0"),
        ("evaluation_sentences", 0, "1 or more"),
    ],
)
def test_settings_that_can_not_be_used(setting: str, value: object, expected: str) -> None:
    with pytest.raises(SettingsError, match=rf"training\.{setting} is .*{expected}"):
        replace(CONFIG, **{setting: value})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("options", "config", "message"),
    [
        ({"dim": 13}, {}, r"bilm\.lstm\.dim = 12, but now it is 13"),
        ({"max_characters": 40}, {}, r"bilm\.char_cnn\.max_characters_per_token = 50, but now it is 40"),
        ({}, {"streams": 8}, r"training\.streams = 16, but now it is 8"),
        ({}, {"seed": 1}, r"training\.seed = 0, but now it is 1"),
    ],
)
def test_a_run_goes_on_only_as_it_was_begun(
    run: Path, texts: tuple[Path, Path], options: dict, config: dict, message: str
) -> None:
    before = contents(run)
    with pytest.raises(SettingsError, match=message):
        pretrain(replace(OPTIONS, **options), replace(CONFIG, **config), *texts, run)
    assert contents(run) == before


def test_a_run_goes_on_only_with_its_text(run: Path, texts: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_text(tmp_path / "other.txt", 50, 3)
    with pytest.raises(SettingsError, match=r"paths\.train_bytes"):
        pretrain(OPTIONS, CONFIG, other, texts[1], run)


def test_a_run_may_become_longer(texts: tuple[Path, Path], tmp_path: Path) -> None:
    short = replace(CONFIG, total_tokens=256, evaluate_every=2)
    pretrain(OPTIONS, short, *texts, tmp_path, report=lambda line: None)
    lines: list[str] = []
    pretrain(OPTIONS, replace(short, total_tokens=512), *texts, tmp_path, report=lines.append)
    assert lines[0].startswith("resumed at step 2, 256 tokens")
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["tokens"] for row in rows] == [256, 512]


def test_texts_that_are_too_small_or_none(corpus: Corpus, texts: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has 400 sentences, but training\.streams is 402"):
        Trainer(OPTIONS, replace(CONFIG, streams=402), corpus)
    with pytest.raises(SettingsError, match=r"27 different words.*training\.n_words is 28"):
        Trainer(OPTIONS, replace(CONFIG, n_words=28), corpus)
    empty, binary, xz = tmp_path / "empty.txt", tmp_path / "binary.txt", tmp_path / "text.xz"
    empty.write_text("\n \n", encoding="utf8")
    binary.write_bytes(b"a b \xff\xfe\n")
    xz.write_bytes(b"a b c")
    for path, message in ((empty, "no words"), (binary, "can't be read"), (xz, "can't be read")):
        with pytest.raises(CorpusError, match=rf"{path.name}: {message}"):
            pretrain(OPTIONS, CONFIG, texts[0], path, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_words_are_cut_where_the_options_say(tmp_path: Path) -> None:
    for name in ("train.txt", "heldout.txt"):
        (tmp_path / name).write_text("abcdefgh abcdefgx short\n" * 4, encoding="utf8")
    corpus = encode_corpus(tmp_path / "train.txt", tmp_path / "heldout.txt")
    config = replace(CONFIG, n_words=6, negatives=2, streams=2, workers=1)
    trainer = Trainer(replace(OPTIONS, max_characters=8), config, corpus)
    a, b = (trainer.character_ids[corpus.words.index(word)] for word in ("abcdefgh", "abcdefgx"))
    assert a.shape == (8,)
    assert (a == b).all()


def test_divergence_stops_the_run_and_keeps_the_checkpoint(texts: tuple[Path, Path], tmp_path: Path) -> None:
    config = replace(CONFIG, checkpoint_every=1, learning_rate=1e30, warmup_steps=1)
    with pytest.raises(CheckpointError, match=r"the loss of step \d+ is not finite.*training\.learning_rate"):
        pretrain(OPTIONS, config, *texts, tmp_path, report=lambda line: None)


def test_damaged_checkpoints_are_named(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    whole = (run / "checkpoint.h5").read_bytes()
    for damage in (b"", whole[: len(whole) // 2], b"no HDF5 at all"):
        (tmp_path / "checkpoint.h5").write_bytes(damage)
        with pytest.raises(CheckpointError, match=r"checkpoint\.h5: can't be read"):
            read_checkpoint(tmp_path / "checkpoint.h5")
    arrays = read_checkpoint(run / "checkpoint.h5")
    del arrays["softmax/bias"]
    arrays["state/h"] = arrays["state/h"][:, :, :1]
    with pytest.raises(CheckpointError, match=r"softmax/bias is missing; state/h has shape"):
        Trainer(OPTIONS, CONFIG, corpus).restore(arrays)
