"""`elmo pretrain`, through spaCy's own app: what it hands to the training loop, and how it ends."""

import signal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import commands
import pytest
from small_run import config_of, write_text

from spacy_elmo.cli.reporter import ConsoleReporter
from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining import run as loop
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, write_config
from spacy_elmo.pretraining.evaluating import Reporter, read_metrics
from spacy_elmo.pretraining.presets import Size, config_of_size

PRETRAIN = loop.pretrain
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


class Call(NamedTuple):
    config: PretrainConfig
    output: Path
    reporter: Reporter
    force: bool


class Loop:
    """Stands for the training loop: keeps what it is given, and ends as it is told to."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.end: int | BaseException | None = None

    def __call__(self, *given: Any) -> int | None:
        self.calls.append(Call(*given))
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


@pytest.fixture(autouse=True)
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """In the working directory run.cfg, and a text."""
    monkeypatch.chdir(tmp_path)
    for name in (*TORCHRUN, "SPACY_CONFIG_OVERRIDES"):
        monkeypatch.delenv(name, raising=False)
    Path("a.txt").write_text("x\n", encoding="utf8")
    write_config(config_of_size(Size.mini, PathSettings("a.txt")), "run.cfg")
    stub = Loop()
    monkeypatch.setattr(loop, "pretrain", stub)
    return stub


run = partial(commands.run, "elmo", "pretrain")


def test_what_the_loop_is_given(stub: Loop) -> None:
    run("run.cfg", "out")
    (call,) = stub.calls
    assert call.config == config_of_size(Size.mini, PathSettings("a.txt"))
    assert call.output == Path("out")
    assert isinstance(call.reporter, ConsoleReporter)


def test_settings_on_the_command_line(stub: Loop) -> None:
    settings = ["--training.total_tokens", "1000", "--training.optimizer.name=adagrad", "--bilm.lstm.dim", "512"]
    settings += ["--bilm.char_cnn.filters", "[[1, 5]]", "--corpus.language", "en"]
    run("--restart", "run.cfg", "out", *settings, "--training.schedule.decay_share", "0.6")
    config = stub.calls[0].config
    assert config.training.schedule.decay_share == 0.6  # spaCy's parser reads 0.6000000000000001
    assert config.training.total_tokens == 1000
    assert config.training.optimizer.name == "adagrad"
    assert config.bilm.filters == ((1, 5),)
    assert config.bilm.dim == 512
    assert config.corpus.language == "en"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--training.streems", "3"], "training.streems (nearest: training.streams"),
        (["--training.streams", "0"], "training.streams is 0. Expected a whole number, 1 or more"),
        (["--restart", "--paths.train", "no.txt"], "paths.train: no.txt: no such file"),
        (["--streams", "3"], "--streams: expected a setting in a section"),
        (["more"], "Invalid config override"),
    ],
)
def test_what_is_refused_before_anything_is_read(arguments: list[str], message: str, stub: Loop) -> None:
    assert message in run("run.cfg", "out", *arguments, code=1)
    assert not stub.calls
    assert not Path("out").exists()


def test_the_end_of_a_run(stub: Loop) -> None:
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        stub.end = number
        run("run.cfg", "out", code=code)
    for error in (CheckpointError("the disk is full"), PermissionError("the disk is full")):
        stub.end = error
        assert "the disk is full" in run("run.cfg", "out", code=1)
    stub.end = KeyboardInterrupt()
    assert "pretrain (without --restart) can go on" in run("run.cfg", "out", code=130)


def test_the_reporter_knows_the_language(stub: Loop, capsys: pytest.CaptureFixture[str]) -> None:
    run("run.cfg", "out", "--corpus.language", "de")
    stub.calls[0].reporter.done(Path("out"), 60.0, None)
    assert capsys.readouterr().out.endswith("TEXT --lang de\n")


def be_process(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchrun starts one of four."""
    for name, value in zip(TORCHRUN, (rank, 4, rank, "localhost", 29500)):
        monkeypatch.setenv(name, str(value))


def test_other_processes_say_nothing_but_errors(stub: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    be_process(0, monkeypatch)
    run("run.cfg", "out")
    be_process(3, monkeypatch)
    run("run.cfg", "out")
    assert [type(call.reporter) for call in stub.calls] == [ConsoleReporter, Reporter]
    stub.end = CheckpointError("the disk is full")
    assert "process 3: the disk is full" in run("run.cfg", "out", code=1)


def test_a_folder_with_other_files(stub: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ((), ("--force",)):
        run("run.cfg", "out", *option)
    assert [call.force for call in stub.calls] == [False, True]
    monkeypatch.setattr(loop, "pretrain", PRETRAIN)
    Path("out").mkdir()
    Path("out", "notes.txt").touch()
    told = run("run.cfg", "out", code=1)
    assert "out: holds notes.txt, but no run.json" in told
    assert "add --force" in told


def test_restart_keeps_what_was_there(stub: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is kept" not in run("run.cfg", "out", "--restart")  # nothing was there
    for number in (1, 2):
        Path("out").mkdir()
        Path("out", "run.json").touch()
        Path("out", "checkpoint").write_text(str(number), encoding="utf8")
        assert f"the earlier run is kept in out.{number}" in run("run.cfg", "out", "--restart")
        assert not Path("out").exists()
        assert Path(f"out.{number}", "checkpoint").read_text(encoding="utf8") == str(number)
    Path("out").mkdir()
    run("run.cfg", "out", "--restart")  # empty
    assert not Path("out.3").exists()
    Path("out", "checkpoint").touch()
    assert "so no earlier command of this kind has written it" in run("run.cfg", "out", "--restart", code=1)
    Path("out", "run.json").touch()
    run("run.cfg", "out", "--restart", "--paths.train", "no.txt", code=1)  # refused: it stays
    Path("out", "b.txt").write_text("x\n", encoding="utf8")
    told = run("run.cfg", "out", "--restart", "--paths.train", "out/b.txt", code=1)
    assert "--restart would rename it, but paths.train is out/b.txt" in told
    bilm = ("--paths.init", str(Path(__file__).parents[1] / "golden" / "random_a"))
    assert "random_a/options.json" in run("run.cfg", "out", "--restart", *bilm, code=1)  # of other sizes
    be_process(1, monkeypatch)
    run("run.cfg", "out", "--restart")  # the first process does it
    assert Path("out", "checkpoint").exists()


def test_restart_of_the_folder_one_is_in(stub: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").mkdir()
    Path("out", "run.json").touch()
    with monkeypatch.context() as patch:
        patch.chdir("out")
        run("../run.cfg", ".", "--restart", "--paths.train", "../a.txt")
    assert stub.calls[-1].output == tmp_path / "out"
    assert not Path("out").exists()
    assert Path("out.1", "run.json").is_file()


@pytest.mark.slow
def test_the_whole_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "pretrain", PRETRAIN)
    config = config_of(write_text(Path("text.txt")))
    write_config(config, "small.cfg")
    assert "lowest held-out perplexity" in run("small.cfg", "run", "--training.total_tokens", "40")
    model = {"options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "README.md"}
    for name in ("model-best", "model-last"):
        assert {path.name for path in Path("run", name).iterdir()} == model
    assert len(read_metrics(Path("run", "metrics.jsonl"))) == 1
    assert Path("run", "curve.png").stat().st_size > 5_000
    assert "going on after step 2, 40 tokens" in run("small.cfg", "run")
    assert [row.tokens for row in read_metrics(Path("run", "metrics.jsonl"))] == [40, 80]
    assert "perplexity" in commands.run("elmo", "evaluate", "run", "text.txt")
