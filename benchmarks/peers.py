"""The programs that the engine is measured beside: their environments under runs/, and their processes."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .common import RUNS

WORKER = Path(__file__).with_name("peer_worker.py")
TORCH = f"torch=={torch.__version__.split('+')[0]}"  # installed first, so that no other package chooses another version
# what allennlp.modules.elmo imports of allennlp's requirements; it names releases of 2022, which no longer install
OF_ALLENNLP = ("base58", "cached-path", "dill", "h5py", "lmdb", "more-itertools", "pillow", "scipy", "spacy")


class Kind(NamedTuple):
    """A program: its title, the arguments of each call of pip install, and whether it runs our biLM."""

    title: str
    installs: tuple[tuple[str, ...], ...]
    elmo: bool = True


# torchvision 0.15.2 is the last that can be imported without its compiled operators, which need another torch
ALLENNLP = (
    (TORCH,),
    ("--no-deps", "allennlp==2.10.1", "fairscale==0.4.6", "torchvision==0.15.2"),
    (*OF_ALLENNLP, "transformers<4.50"),
)
ROBERTA = ((TORCH,), ("spacy-curated-transformers==0.3.1", "spacy", "tokenizers"))
KINDS = {
    "simple_elmo": Kind("simple_elmo", (("simple_elmo==0.9.2", "tensorflow-cpu==2.21.0", "tf_keras==2.21.0"),)),
    "allennlp": Kind("AllenNLP", ALLENNLP),
    "roberta": Kind("RoBERTa-base", ROBERTA, elmo=False),
}


class PeerError(Exception):
    """A peer can't be installed, or does not run."""


def environment(name: str) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not complete. Raises PeerError."""
    folder = RUNS / f"peer_venv_{name}"
    python, done = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps(KINDS[name].installs)
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    try:
        venv.create(folder, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerError(f"its environment: {error}") from error
    for packages in KINDS[name].installs:
        print(f"{folder.name}: pip install {' '.join(packages)}", file=sys.stderr, flush=True)
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", *packages]
        result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
        if result.returncode:
            raise PeerError(f"pip install {' '.join(packages)}: {_last_line(result.stderr)}")
    done.write_text(wanted, encoding="utf-8")
    return python


class Peer:
    """A process that runs one of KINDS with one model (see peer_worker.py).

    folder: what common.write_model wrote. largest: the largest batch size. threads: of the process. Raises PeerError if
    it does not start, or ends early.
    """

    def __init__(self, name: str, folder: Path, largest: int, threads: int) -> None:
        self.kind = KINDS[name]
        python = environment(name)
        self.log = folder / f"{name}.log"
        command = [str(part) for part in (python, "-W", "ignore", WORKER, name, folder.resolve(), largest, threads)]
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8"
            )
        self.about = self._reply()

    def seconds(self, n: int, batch: int) -> float:
        return float(self._ask(f"run {n} {batch}")["seconds"])

    def first(self, n: int, file: Path) -> None:
        """Write the vectors of the first n sentences, as one batch, to a .npy file. This must be the first request."""
        self._ask(f"first {n} {file.resolve()}")

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def _ask(self, command: str) -> dict[str, Any]:
        try:
            print(command, file=self.process.stdin, flush=True)
        except OSError as error:
            raise PeerError(f"it has ended; see {self.log}") from error
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code, said = self.process.wait(), _last_line(self.log.read_text(encoding="utf-8"))
            raise PeerError(f"it ended with {code}: {said}; see {self.log}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
