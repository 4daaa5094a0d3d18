"""`elmo init-pretrain-config`, through spaCy's own app."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from thinc.api import Config

from spacy_elmo.formats.softmax import write_softmax
from spacy_elmo.pretraining import language_model as files
from spacy_elmo.pretraining.config import (
    PathSettings,
    PretrainConfig,
    VocabularySettings,
    commented,
    read_config,
    to_config,
)
from spacy_elmo.pretraining.presets import SIZES, Size, TextSize, config_of_size, fit

ROOT = Path(__file__).parents[2]


def run(*arguments: object, code: int = 0) -> str:
    result = invoke("elmo", "init-pretrain-config", *arguments, code=code)
    return result.stdout if "-" in arguments else result.output


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with two texts."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("x\n", encoding="utf8")
    return tmp_path


@pytest.mark.parametrize("size", ["tiny", "original"])
def test_what_is_written_is_read(size: str) -> None:
    told = run("run.cfg", "--train", "a.txt", "--heldout", "b.txt", "--lang", "en", "--size", size)
    assert "python -m spacy elmo pretrain run.cfg runs/run\n" in told
    config = read_config("run.cfg")
    large = config_of_size(Size(size), PathSettings("a.txt", "b.txt"), "en")
    assert config == fit(large, TextSize(1, 1, words=1, repeated=0)).config
    assert (config.paths, config.corpus.language) == (PathSettings("a.txt", "b.txt"), "en")
    assert Config().from_disk("run.cfg") == to_config(config)  # nothing is left to defaults


def test_the_text_may_come_later() -> None:
    assert "python -m spacy elmo pretrain run.cfg runs/run --paths.train TEXT\n" in run("run.cfg")
    config = read_config("run.cfg", {"paths.train": "a.txt"})
    words = VocabularySettings(min_count=None)
    assert config == PretrainConfig(PathSettings("a.txt"), SIZES[Size.mini], vocabulary=words)


def test_the_command_that_is_told_can_be_copied() -> None:
    Path("a$$b.txt").write_text("the river bank\n" * 200)
    Path("my run.cfg").write_text("mine", encoding="utf8")
    assert "add --force" in " ".join(run("my run.cfg", code=1).split())
    said = run("my run.cfg", "--size", "tiny", "--train", "a$$b.txt", "--force")
    assert read_config(Path("my run.cfg")).paths.train == "a$$b.txt"
    command = said[said.index("python -m spacy elmo pretrain") :]
    assert shlex.split(command)[-2:] == ["my run.cfg", str(Path("runs", "my run"))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run.cfg", "--lang", "zz"), "Expected the code of a language"),
        (("no/run.cfg",), "does not exist"),
        (("run.cfg", "--train", "a.txt", "--init", "gone"), "'gone' names no biLM: there is no such folder"),
        (("run.cfg", "--init", "en_core", "--size", "mini"), "has its own size"),
        (("run.cfg", "--train", "gone.txt"), "gone.txt: no such file"),
        (("b.txt", "--train", "*.txt", "--force"), "the file to write are the same"),
        (("run.cfg", "--train", "a${b}.txt"), "has ${, with which a variable begins in a config"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    assert message in " ".join(run(*arguments, code=1).split())
    assert not Path("run.cfg").exists()


def test_the_config_of_the_embedded_bilm() -> None:
    """configs/pretrain.cfg is what this command writes, with the texts that it was trained on."""
    path = ROOT / "configs" / "pretrain.cfg"
    paths = Config().from_disk(path)["paths"]
    written = run("-", "--heldout", paths["heldout"])
    header, config = path.read_text(encoding="utf8").split("\n\n", 1)
    assert config.replace(f'train = "{paths["train"]}"', "train = null") == written
    assert all(line.startswith("# ") for line in header.splitlines())


def test_a_config_that_tunes(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("softmax").mkdir()
    Path("softmax/softmax.hdf5").touch()
    monkeypatch.setattr(files, "package_folder", lambda *_: Path("softmax"))  # as if it were installed
    run("run.cfg", "--init", "en_core")
    config = Config().from_disk("run.cfg")
    assert "bilm" not in config
    assert config["paths"]["init"] == "en_core"
    shipped = Config().from_disk(ROOT / "configs" / "tune.cfg")
    for name in ("vocabulary", "training", "evaluation"):
        assert config[name] == shipped[name], name
    text = (ROOT / "configs" / "tune.cfg").read_text(encoding="utf8")
    header, settings = text.split("\n\n", 1)
    assert all(line.startswith("# ") for line in header.splitlines())
    assert "pretrain configs/tune.cfg runs/novels --paths.train TEXT --paths.init en_mini" in header
    assert settings == commented("\n".join(line for line in settings.splitlines() if not line.startswith("#")))
    assert read_config("run.cfg", {"paths.train": "a.txt"}).bilm.dim == 2048


def test_a_missing_softmax_is_told(monkeypatch: pytest.MonkeyPatch, golden: Path) -> None:
    told = " ".join(run("run.cfg", "--init", golden / "random_a").split())
    assert "there is no softmax.hdf5" in told
    assert "as many fewer train the biLM" in told
    assert read_config("run.cfg", {"paths.train": "a.txt"}).training.frozen_tokens == 2_000_000
    Path("long.txt").write_text("x y z\n" * 16_000, encoding="utf8")  # 64,000 tokens, of 320 an update
    run("run.cfg", "--train", "long.txt", "--heldout", "b.txt", "--init", golden / "random_a", "-F")
    training = read_config("run.cfg").training
    assert (training.streams, training.frozen_tokens, training.softmax.kind) == (16, 32_000, "full")
    monkeypatch.setattr(files, "package_folder", lambda *_: None)
    result = invoke("elmo", "init-pretrain-config", "-", "--init", "en_core")
    assert "pip install ./packages/en_core_softmax" in " ".join(result.stderr.split())


@pytest.mark.parametrize(("n_words", "kind"), [(4_095, "full"), (4_096, "sampled")])
def test_a_biLM_of_few_words_is_tuned_with_the_full_softmax(n_words: int, kind: str) -> None:
    """4,096 words are sampled by default, and `pretrain` refuses to sample more than there are."""
    Path("mine").mkdir()
    words = ["<S>", "</S>", "<UNK>", *map(str, range(n_words - 3))]
    Path("mine/vocabulary.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf8")
    write_softmax("mine/softmax.hdf5", {"weight": np.zeros((n_words, 2), "f4"), "bias": np.zeros(n_words, "f4")})
    told = run("run.cfg", "--train", "a.txt", "--heldout", "b.txt", "--init", "mine")
    softmax = Config().from_disk("run.cfg")["training"]["softmax"]
    assert (softmax["kind"], softmax["negatives"]) == (kind, 4_096)
    assert ("training.softmax.kind is full" in " ".join(told.split())) == (kind == "full")
    Path("mine/softmax.hdf5").write_bytes(b"damaged")
    assert "softmax.hdf5: not an HDF5 file" in run("run.cfg", "-F", "--init", "mine", code=1)


def test_settings_that_fit_a_small_text() -> None:
    """12,000 sentences of 35 words: 12,000 * 36 tokens are 84 updates of 256 * 20, and 675 of 32 * 20."""
    Path("novels.txt").write_text(f"{' '.join(['word'] * 35)}\n" * 12_000, encoding="utf8")
    told = " ".join(run("run.cfg", "--train", "novels.txt", "--heldout", "b.txt", "--init", "en_core").split())
    assert "novels.txt: 12,000 sentences, 420,000 tokens: 675 updates" in told
    assert "those for a large one would make 84" in told
    config = read_config("run.cfg")
    assert (config.training.streams, config.training.epochs, config.training.schedule.warmup_steps) == (32, 1.0, 67)


def test_lines_that_are_left_out_are_told() -> None:
    Path("c.txt").write_bytes(b"the river bank\n" * 50 + b"\xff\n")
    told = " ".join(run("run.cfg", "--train", "c.txt").split())
    assert "c.txt: 50 sentences" in told
    assert "1 bad lines were left out c.txt, line 51: not UTF-8" in told


def test_a_text_of_one_sentence() -> None:
    """Nothing of it could be held out, so `pretrain` could not begin."""
    Path("one.txt").write_text("one sentence\n")
    told = " ".join(run("pretrain.cfg", "--train", "one.txt", code=1).split())
    assert "paths.train has 1 sentence. Expected at least two, since a part is held out" in told
    assert not Path("pretrain.cfg").exists()
    run("pretrain.cfg", "--train", "one.txt", "--heldout", "a.txt")
    assert Path("pretrain.cfg").exists()
