"""The peer's side of peer_speed.py: simple_elmo in its own environment, driven over stdin and stdout.

    python peer_worker.py MODEL_FOLDER SENTENCES.json BATCH THREADS

Answers each line of stdin with a line of JSON: "first FILE" embeds the first batch and saves it as .npy (from the
zero state, where it is the first command), "run N" embeds the first N sentences and tells the seconds. The model is
loaded once and its session stays open: what the package does on each call without a session (a new session, all
weights read again) is not measured.
"""

import importlib.metadata
import json
import logging
import os
import sys
import time
from typing import Any

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from simple_elmo import ElmoModel
from simple_elmo.elmo import weight_layers

# The mean of the layers: "all" would copy three times as much into its float64 result. The network is computed
# as a whole either way.
LAYERS = "average"


def load(folder: str, batch: int, threads: int) -> tuple[ElmoModel, Any]:
    """The model and an open session with its weights."""
    model = ElmoModel()
    logging.getLogger().setLevel(logging.WARNING)  # it logs every batch
    model.load(folder, max_batch_size=batch, limit=None)  # the ids of all the vocabulary's words are cached
    model.elmo_sentence_input = weight_layers("input", model.sentence_embeddings_op, use_layers=LAYERS)
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.compat.v1.Session(config=config)
    session.run(tf.compat.v1.global_variables_initializer())
    return model, session


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the libraries print must not be taken for an answer

    def reply(**values: Any) -> None:
        print(json.dumps(values), file=replies)

    folder, sentences_file, batch, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open(sentences_file, encoding="utf-8") as file:
        sentences = json.load(file)
    model, session = load(folder, batch, threads)
    reply(simple_elmo=importlib.metadata.version("simple_elmo"), tensorflow=tf.__version__)

    def embed(part: list[list[str]]) -> Any:
        return model.get_elmo_vectors(part, warmup=False, layers=LAYERS, session=session)

    for line in sys.stdin:
        command, argument = line.split(maxsplit=1)
        if command == "first":
            np.save(argument.strip(), embed(sentences[:batch]))
            reply(saved=True)
        elif command == "run":
            checksum, count = 0.0, int(argument)
            begin = time.perf_counter()
            for k in range(0, count, batch):
                checksum += float(embed(sentences[k : min(k + batch, count)])[0, 0, 0])
            reply(seconds=time.perf_counter() - begin, checksum=checksum)
        else:
            raise SystemExit(f"unknown command {command!r}")


if __name__ == "__main__":
    main()
