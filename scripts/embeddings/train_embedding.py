"""Train one of the embeddings that a user would take instead of the embedded biLM, and write how long it took.

`spacy pretrain` gets half an hour. The lengths of the others are chosen so that they take about as long on one core of
an AMD EPYC: that of floret on a Zen 4, that of the biLM on a Zen 5. TEXT has a sentence a line, words separated by
blanks; the published figures are of the first text of the embedded biLM.

    OMP_NUM_THREADS=1 python -m scripts.embeddings.train_embedding floret wikipedia.txt
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from spacy_elmo.errors import CommandError

from ..runs.experiments import embedding_of
from ..shared.command import run_command
from ..shared.measurement import commit_of, machine, write_record
from ..shared.messages import Messages
from . import short_bilm, spacy_pretrain, static_vectors

_MINUTES, _FLORET_EPOCHS, _BILM_TOKENS = 30, 5, 15_500_000

EMBEDDINGS: Mapping[str, Callable[[Path], int]] = {
    "floret": lambda text: static_vectors.train(text, Path("assets/vectors"), width=100, epochs=_FLORET_EPOCHS),
    "spacy_pretrain": lambda text: spacy_pretrain.pretrain(text, Path("assets/pretrained"), _MINUTES),
    "short_bilm": lambda text: short_bilm.train(text, Path("assets/short_bilm"), _BILM_TOKENS),
}


def main(embedding: str, text: Path) -> None:
    """Train EMBEDDING on TEXT: floret, spacy_pretrain or short_bilm. Write results/embeddings/EMBEDDING.json."""
    if embedding not in EMBEDDINGS:
        raise CommandError(Messages.EMBEDDING.format(got=embedding, expected=", ".join(EMBEDDINGS)))
    if not text.is_file():
        raise CommandError(Messages.TEXT.format(got=str(text), option="text"))
    record = embedding_of(Path(), embedding)
    begin = time.perf_counter()
    words = EMBEDDINGS[embedding](text)
    minutes = (time.perf_counter() - begin) / 60
    facts = {"minutes": round(minutes, 1), "words": words, "commit": commit_of(Path()), "machine": machine()}
    write_record(record, facts)
    print(f"{record}: {minutes:.1f} minutes, {words:,} words read")


if __name__ == "__main__":
    run_command(main)
