"""What `elmo pretrain` shows on the way."""

import io
import math
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from run_cases import run_of

from spacy_elmo.cli.reporter import ConsoleReporter
from spacy_elmo.pretraining.config import SoftmaxSettings
from spacy_elmo.pretraining.evaluating import EvaluationRow, Reporter
from spacy_elmo.pretraining.folder import Run

ROW = EvaluationRow(2_000, 10_240_000, 0.14, 900.0, 5.43219, 0.00312, 123.456, 120.004, 121.7, 999, 15_432.1)


READERS = "this package; not AllenNLP: no skip connections"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("run"), total_tokens=1_000_000, readers=READERS)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.err == ""  # no bar where there is no terminal
    return captured.out.splitlines()


def test_the_beginning(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = ConsoleReporter()
    reporter.start(run, ["the vocabulary is odd"])
    reporter.resumed(40, 204_800)
    told = " ".join(" ".join(lines(capsys)).split())  # long paths are wrapped
    for part in (
        "train.txt: 1,000 sentences, 20,000 tokens",
        "held|out*.txt: 50 sentences, 950 tokens",
        "vocabulary 5,000 words, 98.70% of the training text's tokens",
        "biLM 2,406,384 parameters",
        "read by this package; not AllenNLP: no skip connections",
        "length 1,000,000 tokens",
        "train.txt: 2 bad lines were left out",
        "train.txt, line 7: ",
        "train.txt, line 9: ",
        "the vocabulary is odd",
        "going on after step 40, 204,800 tokens",
    ):
        assert part in told
    assert "0 bad" not in told


def test_the_readers_again_at_the_end(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = ConsoleReporter()
    reporter.start(run, [])
    lines(capsys)
    reporter.done(Path("run"), 12.3, None)
    told = "\n".join(lines(capsys))
    assert "options.json and weights.hdf5 are read by this package; not AllenNLP: no skip connections" in told


def test_a_row_for_each_evaluation(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = ConsoleReporter()
    reporter.start(run, ())
    capsys.readouterr()
    reporter.evaluated(ROW)
    reporter.evaluated(ROW._replace(step=4_000, perplexity=99.0))
    reporter.evaluated(ROW._replace(loss=math.nan, tokens_per_second=math.nan, perplexity=math.inf))
    header, rule, first, second, third = lines(capsys)
    names = re.split(r" {2,}", header.strip())
    assert names == ["E", "#", "TOKENS", "LOSS SAMPLED", "PPL FWD", "PPL BWD", "PPL", "RATE", "TOKENS/S"]
    assert set(rule) == {"-", " "}
    expected = ["0.14", "2000", "10,240,000", "5.432", "123.46", "120.00", "121.70", "0.0031", "15,432"]
    assert first.split() == expected
    assert second.split()[1] == "4000"
    assert second.split()[6] == "99.00"
    assert [third.split()[k] for k in (3, 6, 8)] == ["-", "inf", "-"]  # before the first step
    assert len({len(line.rstrip()) for line in (header, rule, first, second, third)}) == 1  # flush with each other


@pytest.mark.parametrize(("kind", "name"), [("sampled", "sampled loss"), ("full", "loss"), ("adaptive", "loss")])
def test_the_loss_is_called_sampled_where_it_is(
    run: Run, kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = ConsoleReporter(every=0)
    training = replace(run.config.training, softmax=SoftmaxSettings(kind))
    reporter.start(replace(run, config=replace(run.config, training=training)), ())
    reporter.step(1, 5_120, 1_000_000, 9.5, 1e-5, 10_000.0)
    reporter.evaluated(ROW)
    told = "\n".join(lines(capsys))
    assert f"left, {name} 9.500, rate 1e-05" in told
    assert ("LOSS SAMPLED" in told) == (kind == "sampled")


def test_a_plain_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    reporter = ConsoleReporter(every=60)
    for step in range(1, 10):
        now[0] += 25
        reporter.step(step, step * 100_000, 1_000_000, 7.0, 0.003, 1_000.0)
    reporter.close()
    assert lines(capsys) == [
        "step 3, 300,000 tokens (30.0%), 1,000 tokens/s, 11:40 left, loss 7.000, rate 0.003",
        "step 6, 600,000 tokens (60.0%), 1,000 tokens/s, 06:40 left, loss 7.000, rate 0.003",
        "step 9, 900,000 tokens (90.0%), 1,000 tokens/s, 01:40 left, loss 7.000, rate 0.003",
    ]


def test_a_bar_on_a_terminal(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    reporter = ConsoleReporter(every=0)
    reporter.start(run, ())
    reporter.step(1, 400_000, 1_000_000, 7.0, 0.003, 1_000.0)
    reporter.step(2, 500_000, 1_000_000, 6.5, 0.003, 1_000.0)
    reporter._bar.refresh()  # it else waits for a tenth of a second
    reporter.evaluated(ROW)
    reporter.done(Path("out"), 121.7, None)
    reporter.close()
    captured = capsys.readouterr()
    assert "500k/1.00M" in captured.err
    assert "sampled loss 6.500" in captured.err
    assert "400,000 tokens (" not in captured.out
    assert "121.70" in captured.out


def test_an_evaluation_is_told_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    reporter = ConsoleReporter(every=60)
    for scored in range(0, 2_001, 500):
        reporter.evaluating(scored, 2_000)
        now[0] += 40
    assert lines(capsys) == [
        "evaluating: 1,000 of 2,000 held-out sentences (50.0%)",
        "evaluating: 2,000 of 2,000 held-out sentences (100.0%)",
    ]


def test_a_bar_of_an_evaluation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first step, beside the run's own bar, and one that a signal stops."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    reporter = ConsoleReporter(every=0)
    reporter.evaluating(0, 70)
    assert "evaluating:   0%" in capsys.readouterr().err
    reporter.evaluating(70, 70)
    reporter.step(1, 400_000, 1_000_000, 7.0, 0.003, 1_000.0)
    reporter.evaluating(0, 3_000)
    assert "0/3000" in capsys.readouterr().err
    reporter.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\r")  # both bars are wiped off


def test_a_selection_of_the_held_out_text(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = ConsoleReporter()
    evaluation = replace(run.config.evaluation, sentences=7)
    reporter.start(replace(run, config=replace(run.config, evaluation=evaluation)), [])
    reporter.done(Path("out"), 61.234, None)
    told = " ".join(" ".join(lines(capsys)).split())
    assert "held|out*.txt: 50 sentences, 950 tokens; 7 are scored during the run" in told
    assert "lowest held-out perplexity on the way 61.23 (of 7 sentences)" in told


def test_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleReporter().done(Path("out"), 61.234, None)
    told = "\n".join(lines(capsys))
    assert "out: lowest held-out perplexity on the way 61.23\n" in told
    assert f"python -m spacy elmo evaluate {Path('out', 'model-best')} TEXT" in told
    ConsoleReporter().done(Path("my out"), 61.234, None)
    assert f"evaluate '{Path('my out', 'model-best')}' TEXT" in "\n".join(lines(capsys))
    ConsoleReporter().done(Path("out"), None, None)
    assert "out: the held-out perplexity was never a finite number" in "\n".join(lines(capsys))
    ConsoleReporter().done(Path("out"), 61.0, signal.SIGTERM)
    assert "stopped by SIGTERM: the same command goes on from there" in "\n".join(lines(capsys))
    ConsoleReporter(restart=True).done(Path("out"), 61.0, signal.SIGINT)
    assert "stopped by SIGINT: the same command without --restart goes on from there" in "\n".join(lines(capsys))
    ConsoleReporter(language="en").done(Path("out"), 61.234, None)
    assert lines(capsys)[-1] == f"python -m spacy elmo evaluate {Path('out', 'model-best')} TEXT --lang en"


def test_the_silent_one(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter()
    reporter.start(run, ())
    reporter.resumed(1, 2)
    reporter.step(1, 2, 3, 4.0, 5.0, 6.0)
    reporter.evaluating(1, 2)
    reporter.evaluated(ROW)
    reporter.message("x")
    reporter.done(Path("out"), None, 2)
    reporter.close()
    assert lines(capsys) == []


class Lost(io.StringIO):
    """Standard output whose writes fail, a number of them."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.asked = error, 0

    def write(self, text: str) -> int:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "Full"), ValueError("closed")])
def test_a_lost_standard_output_ends_no_run(run: Run, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Lost(error)
    monkeypatch.setattr(sys, "stdout", lost)
    reporter = ConsoleReporter(every=0)
    reporter.start(run, ())
    reporter.step(1, 5_120, 1_000_000, 9.5, 1e-5, 10_000.0)
    reporter.evaluated(ROW)
    reporter.message("x")
    reporter.done(Path("out"), 61.0, None)
    assert lost.asked == 1  # then nothing more is told
    print("what comes later has somewhere to go")


def test_no_standard_output_and_no_standard_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    reporter = ConsoleReporter(every=0)
    reporter.start(run, ())
    reporter.step(1, 5_120, 1_000_000, 9.5, 1e-5, 10_000.0)
    reporter.done(Path("out"), 61.0, None)


def test_a_file_name_that_is_no_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # as the group of commands does
    reporter = ConsoleReporter()
    reporter.message("a\udce9.txt")
    reporter.done(Path("o\udce9"), 61.0, None)
    told = "\n".join(lines(capsys))
    assert "a\\udce9.txt" in told
    assert "o\\udce9: lowest" in told
    assert f"{Path('o', 'model-best')}".replace("o", "o\\udce9", 1) in told
