"""What `elmo pretrain` shows on the way."""

import io
import math
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from run_cases import run_of

from spacy_elmo.cli import reporter as module
from spacy_elmo.cli.reporter import ConsoleReporter
from spacy_elmo.pretraining.config import SoftmaxSettings
from spacy_elmo.pretraining.evaluating import EvaluationRow
from spacy_elmo.pretraining.folder import Run

ROW = EvaluationRow(2_000, 10_240_000, 0.14, 900.0, 5.43219, 0.00312, 123.456, 120.004, 121.7, 999, 15_432.1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("run"), total_tokens=1_000_000, compatible_with="this package; not AllenNLP")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_beginning_and_end(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = ConsoleReporter()
    evaluation = replace(run.config.evaluation, sentences=7)
    reporter.start(replace(run, config=replace(run.config, evaluation=evaluation)), ["the vocabulary is odd"])
    reporter.resumed(40, 204_800)
    reporter.done(Path("out"), 61.234, None)
    told = " ".join(" ".join(lines(capsys)).split())  # long paths are wrapped
    for part in (
        "train.txt: 1,000 sentences, 20,000 tokens",
        "held|out*.txt: 50 sentences, 950 tokens",
        "scored during the run 7 held-out sentences",
        "vocabulary 5,000 words, 98.70% of the training text's tokens",
        "biLM 2,406,384 parameters",
        "read by this package; not AllenNLP",
        "length 1,000,000 tokens",
        "train.txt: 2 bad lines were left out",
        "train.txt, line 7: ",
        "train.txt, line 9: ",
        "the vocabulary is odd",
        "going on after step 40, 204,800 tokens",
        "out: lowest held-out perplexity on the way 61.23",
        "options.json and weights.hdf5 are read by this package; not AllenNLP",
    ):
        assert part in told
    assert "0 bad" not in told


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


@pytest.mark.parametrize(("kind", "name"), [("sampled", "sampled loss"), ("full", "loss")])
def test_progress_in_a_log_file(
    run: Run, kind: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lines; the loss is called sampled where it is."""
    bar = module.shown_bar
    monkeypatch.setattr(module, "shown_bar", lambda seconds, **options: bar(0, **options))
    reporter = ConsoleReporter()
    training = replace(run.config.training, softmax=SoftmaxSettings(kind))
    reporter.start(replace(run, config=replace(run.config, training=training)), ())
    reporter.step(1, 400_000, 1_000_000, 9.6, 1e-5, 10_000.0)
    reporter.step(2, 500_000, 1_000_000, 9.5, 1e-5, 10_000.0)
    reporter.evaluating(0, 70)
    reporter.evaluating(70, 70)
    reporter.evaluated(ROW)
    reporter.close()
    captured = capsys.readouterr()
    assert "pretraining:  50% 500k/1.00M" in captured.err
    assert f"step 2, {name} 9.500, rate 1e-05" in captured.err
    assert "evaluating: 100% 70" in captured.err
    assert ("LOSS SAMPLED" in captured.out) == (kind == "sampled")


def test_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    for reporter, ended, told in (
        (ConsoleReporter(), ("my out", 61.0, None), f"evaluate '{Path('my out', 'model-best')}' TEXT"),
        (ConsoleReporter("en"), ("out", 61.0, None), f"evaluate {Path('out', 'model-best')} TEXT --lang en"),
        (ConsoleReporter(), ("out", None, None), "out: the held-out perplexity was never a finite number"),
        (ConsoleReporter(), ("out", 61.0, signal.SIGTERM), "by SIGTERM: the same command, without --restart, goes on"),
    ):
        reporter.done(Path(ended[0]), *ended[1:])
        assert told in "\n".join(lines(capsys))


class Lost(io.StringIO):
    """A stream whose writes fail."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.asked = error, 0

    def write(self, text: str) -> int:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "Full"), ValueError("closed"), None])
def test_lost_streams_end_no_run(run: Run, error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = None if error is None else Lost(error)
    monkeypatch.setattr(sys, "stdout", lost)
    monkeypatch.setattr(sys, "stderr", None if error is None else Lost(error))
    reporter = ConsoleReporter()
    reporter.start(run, ())
    reporter.step(1, 5_120, 1_000_000, 9.5, 1e-5, 10_000.0)
    reporter.evaluated(ROW)
    reporter.done(Path("out"), 61.0, None)
    assert lost is None or lost.asked == 1  # then nothing more is told
    print("what comes later has somewhere to go")
