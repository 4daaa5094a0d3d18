"""simple_elmo, bilm-tf's network under TensorFlow, in its own environment (see peer_worker.py).

The model is loaded once and its session stays open: what the package does on each call without a session (a new
session, all weights read again) is not measured.
"""

import importlib.metadata
import logging
import os
from pathlib import Path
from typing import Any

from peer_worker import Embedder, Sentences, serve

# The mean of the layers: "all" would copy three times as much into its float64 result. The network is computed
# as a whole either way.
LAYERS = "average"


def load(folder: Path, sentences: Sentences, largest: int, threads: int) -> Embedder:
    """The model and an open session with its weights."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from simple_elmo import ElmoModel
    from simple_elmo.elmo import weight_layers

    model = ElmoModel()
    logging.getLogger().setLevel(logging.WARNING)  # it logs every batch
    model.load(str(folder), max_batch_size=largest, limit=None)  # the ids of all the vocabulary's words are cached
    model.elmo_sentence_input = weight_layers("input", model.sentence_embeddings_op, use_layers=LAYERS)
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.compat.v1.Session(config=config)
    session.run(tf.compat.v1.global_variables_initializer())

    def embed(part: Sentences) -> Any:
        return model.get_elmo_vectors(part, warmup=False, layers=LAYERS, session=session)

    return Embedder(embed, {"simple_elmo": importlib.metadata.version("simple_elmo"), "TensorFlow": tf.__version__})


if __name__ == "__main__":
    serve(load)
