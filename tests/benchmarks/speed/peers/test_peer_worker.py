"""The workers' protocol, with a worker that embeds words as their lengths."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

WORKER = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from benchmarks.speed.peers.peer_worker import Embedder, serve

def embed(part):
    print("a library's noise")
    assert len(part) <= 2
    return np.array([[len(word) for word in sentence] for sentence in part], float)

serve(lambda folder, sentences, largest, threads: Embedder(embed, dict(n=len(sentences), given=[largest, threads])))
"""


def test_protocol(tmp_path: Path) -> None:
    folder = str(Path(__file__).parents[4] / "benchmarks" / "speed" / "peers")
    sentences = [["a", "bank"], ["the", "bank"], ["it", "rains"]]
    (tmp_path / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    file = tmp_path / "first vectors.npy"
    command = [sys.executable, "-c", WORKER.format(folder=folder), str(tmp_path), "2", "1"]
    orders = f"first 2 {file}\nrun 3 2\n"
    result = subprocess.run(command, input=orders, capture_output=True, text=True, encoding="utf8", check=True)
    about, saved, ran = map(json.loads, result.stdout.splitlines())
    assert about == {"n": 3, "given": [2, 1]}
    assert saved == {"saved": True}
    assert ran["seconds"] > 0
    assert np.load(file).tolist() == [[1, 4], [3, 4]]
