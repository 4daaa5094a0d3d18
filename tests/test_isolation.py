"""A process that imports the package, loads a pipeline and embeds: no network, no other program, no pickle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pipelines import files

pytestmark = pytest.mark.slow

# The modules of other projects are imported first: some ask for the processor's name, or open a socket of their own.
PROGRAM = """
import json, os, sys
events = []

def watch(name, arguments):
    if name in REFUSED or name.startswith(("socket.", "os.exec", "os.spawn", "os.posix_spawn", "urllib.", "http.")):
        events.append([name, repr(arguments)[:300]])
    elif name in ("open", "sqlite3.connect") and isinstance(arguments[0], (str, bytes)):
        events.append([name, os.path.realpath(os.fsdecode(arguments[0]))])

NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}
REFUSED = {"subprocess.Popen", "os.system", "os.startfile", "pickle.find_class", "ctypes.dlopen"}

def block(name, arguments):
    if name in NETWORK:
        raise RuntimeError(f"the network: {name} {arguments}")

sys.addaudithook(block)
import h5py, numpy, requests, sqlite3, srsly, spacy, thinc.api, torch, torch.utils, tqdm, typer, wasabi
spacy.blank("en")
sys.addaudithook(watch)
import spacy_elmo
from spacy_elmo.allennlp.embedder import ElmoEmbedder

saved, model = sys.argv[1], json.loads(sys.argv[2])
nlp = spacy.load(saved)
doc = nlp("Stick to the river bank .")
layers = ElmoEmbedder(model["options_file"], model["weight_file"]).embed_sentence(["river", "bank"])
embedded = spacy.blank("en")
embedded.add_pipe("elmo")
print(json.dumps([doc._.elmo.shape, layers.shape, embedded("the bank")._.elmo.shape, events]))
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The folder of a saved pipeline, and what a process printed that loaded it and embedded."""
    import spacy

    folder = tmp_path_factory.mktemp("saved")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=files("random_a"))
    nlp.to_disk(folder)
    model = json.dumps(files("random_a")["model"])
    command = [sys.executable, "-c", PROGRAM, str(folder), model]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder, json.loads(result.stdout)


def test_no_network_while_importing_loading_and_embedding(done: tuple[Path, list[Any]]) -> None:
    """It was blocked from the first import on, and all vectors came."""
    pipe, layers, embedded, events = done[1]
    assert pipe[0] == 6
    assert layers[:2] == [3, 2]
    assert embedded == [2, 512]
    assert not [event for event in events if event[0].startswith(("socket", "urllib", "http"))]


def test_no_other_program_and_no_pickle(done: tuple[Path, list[Any]]) -> None:
    events = [event for event in done[1][3] if event[0] not in ("open", "sqlite3.connect")]
    loaded = {event[1] for event in events if event[0] == "ctypes.dlopen"}
    assert not [event for event in events if event[0] != "ctypes.dlopen"]
    # None is the process itself; of libraries the compiled loops alone are loaded
    assert not {path for path in loaded if path != "(None,)" and "spacy_elmo/kernels/_loops" not in path}


def test_no_file_that_was_not_named(done: tuple[Path, list[Any]], golden: Path) -> None:
    """Those of the pipeline and the biLM that were named, the package's own and Python's; the kernel's own facts."""
    folder, (*_, events) = done
    package = Path(__file__).parents[1] / "spacy_elmo"
    metadata = package.with_name("spacy_elmo.egg-info")  # of an editable installation, for its entry points
    named = (folder, golden / "random_a", package, metadata, Path(sys.prefix), Path(sys.base_prefix))
    allowed = tuple(f"{path.resolve()}/" for path in (*named, Path("/proc"), Path("/sys"), Path("/dev")))
    opened = {path for name, path in events if name in ("open", "sqlite3.connect")}
    assert opened
    assert not {path for path in opened if not path.startswith(allowed)}
