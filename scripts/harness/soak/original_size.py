"""A biLM of the original size, with random weights, under a limit of memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import spacy
import torch

from spacy_elmo.formats import BiLMOptions, write_options, write_weights
from spacy_elmo.modules import BiLM

from .measures import peak

# of the 5.5B model, elmo_2x4096_512_2048cnn_2xhighway
_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
_OPTIONS = BiLMOptions(16, _FILTERS, 2, "relu", 50, 4096, 512, 2, 3.0, 3.0, True)
_WORDS = 8_192  # a batch of the pipe's default size


def original_size(limit_mb: float = 3_000.0) -> str:
    """Embed a batch in processes of their own, whose memory for data is limited. Returns the peak of each.

    Raises AssertionError if a process fails under the limit, or if its peak, with the code that it maps, is above it.
    """
    results = []
    with tempfile.TemporaryDirectory() as folder:
        bilm = BiLM(_OPTIONS)
        bilm.reset_parameters(torch.Generator().manual_seed(0))
        write_weights(Path(folder, "weights.hdf5"), _OPTIONS, bilm.to_arrays())
        write_options(Path(folder, "options.json"), _OPTIONS)
        del bilm
        for precision in ("float32", "auto"):
            command = [sys.executable, "-m", "scripts.harness.soak.original_size", folder, precision, str(limit_mb)]
            process = subprocess.run(command, check=False, capture_output=True, text=True)
            assert process.returncode == 0, f"{precision}: {process.stderr}"
            used = float(process.stdout)
            assert used <= limit_mb, f"{used:,.0f} MB in {precision}, more than {limit_mb:,.0f} MB"
            results.append(f"{used:,.0f} MB in {precision}")
    return f"original size, loaded, and {_WORDS:,} words embedded in {limit_mb:,.0f} MB: peak {', '.join(results)}"


def _embed(folder: Path, precision: str, limit_mb: float) -> None:
    # Not the address space, of which torch reserves more than it uses.
    resource.setrlimit(resource.RLIMIT_DATA, (round(1e6 * limit_mb),) * 2)
    nlp = spacy.blank("en")
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    nlp.add_pipe("elmo", config={"model": {**files, "precision": precision}})
    docs = [nlp.make_doc(" ".join(f"word{k}x{n}" for k in range(32))) for n in range(_WORDS // 32)]
    for doc in nlp.pipe(docs):
        assert doc._.elmo.shape == (32, _OPTIONS.width)
    print(peak())


if __name__ == "__main__":
    _embed(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
