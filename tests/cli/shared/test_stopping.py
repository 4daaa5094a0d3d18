"""Commands that a signal stops: what each of them exits with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_elmo import cli
from spacy_elmo.cli.console import exit_code, stoppable
from spacy_elmo.formats.vectors import DeferredErrorFile

CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
SHA256 = "0" * 64
# for each command: the function of its module that is at work when the signal comes, and arguments that lead there
AT_WORK = {
    "demo": ("embed_sample", ["out"]),
    "embed": ("embed_as_allennlp", ["a.txt", "a.hdf5"]),
    "similar": ("read_occurrences", ["en_mini", "a.txt", "--word", "a"]),
    "neighbours": ("open_index", ["a.txt", "-q", "a b", "-w", "a"]),
    "info": ("models_in", ["en_mini"]),
    "download": ("fetch", ["https://localhost/a", "--sha256", SHA256]),
    "evaluate": ("show_all", ["en_mini", "a.txt"]),
    "init-config": ("task_config", ["-"]),
    "init-pretrain-config": ("config_text", ["-"]),
    "probe": ("read_probes", ["a.spacy", "b.spacy"]),
    "wsd": ("read_senses", ["a.tsv", "b.tsv"]),
    "pack": ("pack_model", ["en_mini", "packed"]),
    "vocab": ("count_words", ["a.txt", "v.txt"]),
    "weights": ("read_mixes", ["model"]),
}
WITH_MESSAGES = {"embed", "download", "pack", "vocab"}  # evaluate's is in its own tests
# a command in a process of its own, which is at work until a signal comes
PROGRAM = """
import sys, time
from importlib import import_module
from spacy_elmo.cli import app

def work(*arguments, **settings):
    print("at work", flush=True)
    time.sleep(60)

setattr(import_module("spacy_elmo.cli." + sys.argv[1].replace("-", "_")), sys.argv[2], work)
app(args=[sys.argv[1], *sys.argv[3:]])
"""

posix = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a b\n", encoding="utf8")
    return tmp_path


def test_all_commands_but_pretrain_are_here() -> None:
    names = {command.name for command in cli.app.registered_commands}
    assert names == {*AT_WORK, "pretrain"}


@posix
@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("command", AT_WORK)
def test_exit_codes(command: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = AT_WORK[command]
    number = signal.Signals[name]

    def work(*given: object, **settings: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)  # the signal comes at once

    monkeypatch.setattr(import_module(f"spacy_elmo.cli.{command.replace('-', '_')}"), function, work)
    before = [signal.getsignal(one) for one in map(signal.Signals.__getitem__, CODES)]
    result = CliRunner().invoke(app, ["elmo", command, *arguments])
    assert result.exit_code == CODES[name], result.output
    assert ("stopped" in result.output) == (command in WITH_MESSAGES)
    assert [signal.getsignal(signal.Signals[one]) for one in CODES] == before


@pytest.mark.slow
@posix
@pytest.mark.parametrize(("command", "name"), [("pack", "SIGTERM"), ("download", "SIGINT"), ("info", "SIGTERM")])
def test_exit_codes_of_processes(command: str, name: str) -> None:
    function, arguments = AT_WORK[command]
    program = [sys.executable, "-c", PROGRAM, command, function, *arguments]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.send_signal(signal.Signals[name])
    printed = "".join(process.communicate(timeout=60))
    assert process.returncode == CODES[name], printed
    assert "Traceback" not in printed


@posix
@pytest.mark.parametrize("name", CODES)
def test_a_signal_in_a_callback_is_not_lost(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Python prints and drops what a weak reference's callback raises, and h5py has such callbacks."""

    class Thing:
        pass

    def work() -> None:
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.Signals[name]))
        del thing
        assert reference() is None
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        work()
    assert exit_code(stopped.value) == CODES[name]
    assert capfd.readouterr().err == ""


@posix
@pytest.mark.parametrize("name", CODES)
def test_a_signal_in_a_callback_of_hdf5_comes_after_it(name: str) -> None:
    """HDF5 calls the methods of this object, prints a traceback of what they raise, and goes on."""
    file: Any = SimpleNamespace(tell=partial(signal.raise_signal, signal.Signals[name]))
    after = []

    def work() -> None:
        DeferredErrorFile(file).tell()
        after.append(True)
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        work()
    assert after
    assert exit_code(stopped.value) == CODES[name]


@posix
@pytest.mark.parametrize("name", CODES)
def test_an_exception_of_a_library_gets_the_number_of_the_signal(name: str) -> None:
    """Ray raises a KeyboardInterrupt without one if a signal ends its wait."""

    def wait() -> None:
        try:
            signal.raise_signal(signal.Signals[name])
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        wait()
    assert exit_code(stopped.value) == CODES[name]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_exceptions_in_callbacks_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: seen.append(repr(lost.exc_value)))

    class Thing:
        def __del__(self) -> None:
            raise ValueError("here")

    with stoppable():
        Thing()
    assert seen == ["ValueError('here')"]


@posix
def test_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def block() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert seen == [before]
