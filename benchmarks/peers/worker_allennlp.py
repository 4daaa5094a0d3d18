"""AllenNLP's Elmo with one plain mix, the mean of the layers, in its own environment (see peer_worker.py)."""

import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

from peer_worker import Embedder, Sentences, serve


def load(folder: Path, sentences: Sentences, largest: int, threads: int) -> Embedder:
    """The module in evaluation."""
    warnings.filterwarnings("ignore")
    import torch
    from allennlp.modules.elmo import Elmo, batch_to_ids

    torch.set_num_threads(threads)
    elmo = Elmo(str(folder / "options.json"), str(folder / "model.hdf5"), 1, dropout=0.0).eval()

    @torch.no_grad()
    def embed(part: Sentences) -> Any:
        return elmo(batch_to_ids(part))["elmo_representations"][0].numpy()

    return Embedder(embed, {"AllenNLP": importlib.metadata.version("allennlp"), "torch": torch.__version__})


if __name__ == "__main__":
    serve(load)
