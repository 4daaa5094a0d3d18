"""What commands write: one at a time, never half, and nothing is left of those that were killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from commands import invoke, run
from embedded_case import model_of
from tqdm import tqdm

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
MODEL, SMALL = ("--model", str(GOLDEN)), ("-q", "the bank", "-w", "bank", "--model", str(GOLDEN))
# what each command writes, and how it is called
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "embed": (("out/v.hdf5",), ("text.txt", "out/v.hdf5", *MODEL)),
    "embed, npy": (("out/v.npy",), ("text.txt", "out/v.npy", "--sentence", *MODEL)),
    "embed, shards": (("out/s",), ("text.txt", "out/s", "--format", "spacy", "--shard-size", "300", *MODEL)),
    "vocab": (("out/w.txt", "out/w.counts.npy"), ("text.txt", "out/w.txt", "--force")),
    "evaluate": (("out/scores.tsv",), ("model", "text.txt", "--per-sentence", "out/scores.tsv")),
    "explore": (
        ("out/p.html", "out/p.parquet"),
        ("out/p.html", "text.txt", "--parquet", "out/p.parquet", "--words", "bank", "--force", *MODEL),
    ),
    "neighbours": (("out/i",), ("text.txt", *SMALL, "--index", "out/i", "--force")),
    "pack": (("out/m",), ("model", "out/m", "--force")),
    "package": (("out/la", "out/la_softmax"), ("model", "out", "--name", "la", "--softmax", "apart", "--force")),
    "init-config": (("out/c.cfg",), ("out/c.cfg", "--pipeline", "ner", "--lang", "xx", "--force", *MODEL)),
    "init-pretrain-config": (("out/r.cfg",), ("out/r.cfg", "--train", "text.txt", "--size", "tiny", "--force")),
    "demo": (("out/vectors.hdf5", "out/senses.png"), ("out",)),
    "compare": (("out/runs",), ("out/runs", "--train", "a.conllu", "--dev", "a.conllu", "--lang", "xx")),
}
KILLED = ("embed", "embed, npy", "embed, shards", "vocab", "evaluate", "explore", "neighbours", "pack", "package")
HOLD = """
import sys
from contextlib import ExitStack
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import lock
with ExitStack() as held:
    for path in sys.argv[1:]:
        held.enter_context(lock(path, CommandError))
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a text and a biLM that has a softmax."""
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


def prepare(folder: Path) -> None:
    (folder / "out").mkdir(parents=True)
    (folder / "text.txt").write_text("".join(f"the bank number {k} sat by the cat .\n" for k in range(60)))
    os.utime(folder / "text.txt", (0, 0))  # an index knows its time
    (folder / "a.conllu").write_text("1\tBonn\tBonn\tPROPN\tNNP\t_\t0\troot\t_\t_\n\n")
    model_of().save(folder / "model")
    (folder / "model" / "README.md").write_text("# Mine\n")


def contents(folder: Path) -> dict[str, bytes]:
    """All files and folders, also hidden ones."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in paths}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_another_command_writes(place: Path, command: str) -> None:
    """The second one is refused, and changes nothing. Afterwards it may."""
    outputs, arguments = COMMANDS[command]
    for output in outputs:
        start = [sys.executable, "-c", HOLD, output]
        with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            before = contents(place)
            told = run("elmo", command.partition(",")[0], *arguments, code=1)
            assert f"{Path(output).name}: another run writes there, the process {other.pid}." in told
            assert contents(place) == before
            other.communicate()
    assert contents(place / "out") == {}
    if command in KILLED:
        run("elmo", command.partition(",")[0], *arguments)
        assert {path.partition("/")[0] for path in contents(place / "out")} == {Path(output).name for output in outputs}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no such signal")
@pytest.mark.parametrize("command", KILLED)
def test_kills_at_any_time(tmp_path: Path, command: str) -> None:
    """By SIGKILL, in a new folder or in what the kill before has left: then the command ends as if nothing had been."""
    arguments = COMMANDS[command][1]
    prepare(tmp_path)

    def start() -> int:
        """Run the command in a copy of this process, which has read all modules."""
        if number := os.fork():
            return number
        try:
            tqdm.set_lock(threading.RLock())  # processes share its own, which a kill would leave locked for ever
            os.chdir(tmp_path)
            invoke("elmo", command.partition(",")[0], *arguments)
            os._exit(0)
        finally:
            os._exit(1)

    assert os.waitpid(start(), 0)[1] == 0  # it loads what the first call needs
    begin = time.monotonic()
    assert os.waitpid(start(), 0)[1] == 0
    seconds, expected = time.monotonic() - begin, contents(tmp_path)
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").mkdir()
    random, killed = Random(command), 0
    while killed < 8:
        process = start()
        time.sleep(random.uniform(0, seconds))
        os.kill(process, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(process, 0)[1]):
            seconds *= 0.8  # it had ended: the machine has become faster
            continue
        killed += 1
        if killed % 4 == 0:
            assert os.waitpid(start(), 0)[1] == 0, "what a kill has left is in the way"
            assert contents(tmp_path) == expected
