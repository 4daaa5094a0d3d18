"""Train static vectors (floret) on a text, for the networks "vectors" and "vectors_elmo" of experiments.py.

The paper's x had static vectors. These are trained on the text of the embedded biLM, with the settings of spaCy's own
example (projects/pipelines/floret_vectors_demo) but for their width. `pip install floret` first.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from spacy_elmo.errors import CommandError

from ..shared.messages import Messages
from .placing import place


def train(text: Path, output: Path, width: int, epochs: int) -> int:
    """Write a folder that `[initialize] vectors` takes, and return how many words were read.

    text: a sentence a line, words separated by blanks.
    width: of the vectors.
    epochs: number of times that the text is read.

    Raises CommandError if floret is not installed, if the text is missing, or if spaCy does not take the vectors.
    """
    try:
        import floret  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise CommandError(Messages.FLORET) from error
    if not text.is_file():
        raise CommandError(Messages.CORPUS_UNREADABLE.format(path=text, reason="there is no such file"))
    with tempfile.TemporaryDirectory() as folder:
        vectors = Path(folder) / "vectors.floret"
        model = floret.train_unsupervised(
            str(text), model="cbow", mode="floret", hashCount=2, bucket=50_000, minn=5, maxn=5, minCount=10, neg=10,
            dim=width, epoch=epochs, thread=1,
        )  # fmt: skip
        model.save_floret_vectors(str(vectors))
        made = Path(folder) / "made"
        command = [sys.executable, "-m", "spacy", "init", "vectors", "en", str(vectors), str(made), "--mode", "floret"]
        if subprocess.run(command, check=False).returncode:
            raise CommandError(Messages.VECTORS_FAILED.format(output=output, command=" ".join(command)))
        place(made, output)
    with text.open(encoding="utf-8") as lines:
        return epochs * sum(len(line.split()) for line in lines)
