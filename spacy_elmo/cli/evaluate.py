"""`elmo evaluate`"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from wasabi import msg

from ..errors import ElmoError
from ..pretraining.corpus import UNKNOWN
from ..pretraining.perplexity import perplexity, unigram_perplexity
from ..pretraining.run_folder import load_run


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a pretraining run", exists=True, file_okay=False)],
) -> None:
    """Perplexity on the whole held-out text of a run: full softmax, each direction, zero and carried state."""
    try:
        bilm, softmax, corpus = load_run(run)
    except (ElmoError, OSError) as error:
        msg.fail(str(error), exits=1)
    n_words, heldout = len(softmax.bias), corpus.heldout
    character_ids = corpus.character_ids(bilm.options.max_characters)
    unknown = float(np.mean((heldout.ids >= n_words) | (heldout.ids == UNKNOWN)))
    msg.text(f"{heldout.n_sentences:,} sentences, {len(heldout.ids):,} tokens, vocabulary {n_words:,}")
    msg.text(f"out of vocabulary: {unknown:.2%} of the tokens")
    rows = [("unigram model", *[f"{unigram_perplexity(corpus.log_unigram(n_words), heldout):.1f}"] * 3)]
    for title, carried in (("biLM, zero state", False), ("biLM, carried state", True)):
        result = perplexity(bilm, softmax, heldout, character_ids, carried_state=carried)
        rows.append((title, f"{result.forward:.1f}", f"{result.backward:.1f}", f"{result.mean:.1f}"))
    msg.table(rows, header=("perplexity", "forward", "backward", "mean"), divider=True, aligns=("l", "r", "r", "r"))
    msg.text(f"{len(heldout.ids) + heldout.n_sentences:,} predictions a direction, boundaries and <UNK> counted")
