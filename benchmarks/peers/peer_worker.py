"""What all workers have in common. It runs in the peers' environments, with the standard library and numpy only.

    python worker_NAME.py FOLDER LARGEST_BATCH THREADS

Answers each line of stdin with a line of JSON: "first N FILE" embeds the first N sentences as one batch and saves them
as .npy (from the zero state, where it is the first command), "run N BATCH" embeds the first N sentences in batches and
tells the seconds. The first line, unasked, tells what is running. FOLDER is what common.write_model wrote.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Sentences = Sequence[Sequence[str]]


class Embedder(NamedTuple):
    """A model that is loaded.

    embed: returns the vectors of a batch, which can be indexed by sentence.
    about: versions and other facts for the notes.
    """

    embed: Callable[[Sentences], Any]
    about: dict[str, Any]


def serve(load: Callable[[Path, Sentences, int, int], Embedder]) -> None:
    """Load a model, and answer requests from stdin.

    load: loads it. Its arguments are the folder, the sentences, the largest batch size and the number of threads.
    """
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print must not look like an answer

    def reply(**values: Any) -> None:
        print(json.dumps(values), file=replies)

    folder, largest, threads = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    embed, about = load(folder, sentences, largest, threads)
    reply(**about)
    for line in sys.stdin:
        command, *arguments = line.rstrip("\n").split(" ", 2)
        if command == "first":
            import numpy as np

            np.save(arguments[1], np.asarray(embed(sentences[: int(arguments[0])])))
            reply(saved=True)
        elif command == "run":
            reply(seconds=run(embed, sentences[: int(arguments[0])], int(arguments[1])))
        else:
            raise SystemExit(f"unknown command {command!r}")


def run(embed: Callable[[Sentences], Any], sentences: Sentences, batch: int) -> float:
    """Return the seconds of a run. One number of each batch's vectors is read."""
    checksum = 0.0
    begin = time.perf_counter()
    for k in range(0, len(sentences), batch):
        checksum += float(embed(sentences[k : k + batch])[0].flat[0])
    seconds = time.perf_counter() - begin
    if checksum != checksum:
        raise SystemExit("the vectors are not numbers")
    return seconds
