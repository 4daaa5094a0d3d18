"""The perplexity of a biLM as AllenNLP reads its files, beside that of `elmo evaluate`, from the zero state.

    python -m benchmarks.allennlp_perplexity en_mini TEXT --sentences 200

AllenNLP reads options.json and weights.hdf5 in an environment of its own, which is made at the first run, and gives the
top layer's activations. The softmax, which AllenNLP does not have, is computed here in float64 from softmax.hdf5.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spacy_elmo.errors import ElmoError
from spacy_elmo.formats.softmax import read_softmax
from spacy_elmo.modules.loading import find_bilm
from spacy_elmo.pretraining.language_model import OPTIONS, SOFTMAX, WEIGHTS, LanguageModel, softmax_folder
from spacy_elmo.pretraining.scoring import Score, score_text
from spacy_elmo.pretraining.vocabulary import END, START
from spacy_elmo.text.stream import Report, read_sentences

from .common import parser_of
from .peers import WORKER, PeerError, environment

Array = npt.NDArray[np.float64]


def activations(folder: Path, sentences: Sequence[Sequence[str]]) -> Iterator[Array]:
    """Yield the top layer of each sentence as AllenNLP computes it, with <S> and </S>: *Shape:* (tokens + 2, width)."""
    with tempfile.TemporaryDirectory() as name:
        given, output = Path(name, "sentences.json"), Path(name, "layers.npz")
        given.write_text(json.dumps(sentences), encoding="utf-8")
        arguments = [str(path) for path in (folder / OPTIONS, folder / WEIGHTS, given, output)]
        command = [str(environment("allennlp")), str(WORKER), "activations", *arguments]
        ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if ended.returncode:
            raise PeerError(f"it ended with {ended.returncode}: {ended.stderr[-400:]}")
        with np.load(output) as layers:
            for number in range(len(sentences)):
                yield layers[str(number)].astype(np.float64)


def losses(top: Array, ids: Sequence[int], weight: Array, bias: Array) -> tuple[float, float]:
    """Return the sums of -log p(target) of a sentence, in nats: forward and backward. top: its activations."""
    tokens = np.array([START, *ids, END])
    width = top.shape[1] // 2
    total = []
    for vectors, targets in ((top[:-1, :width], tokens[1:]), (top[1:, width:], tokens[:-1])):
        logits = vectors @ weight.T + bias
        largest = logits.max(1)
        log_sums = largest + np.log(np.exp(logits - largest[:, None]).sum(1))
        total.append(float((log_sums - logits[np.arange(len(targets)), targets]).sum()))
    return total[0], total[1]


def compare(bilm: str, text: Path, n_sentences: int) -> tuple[Score, list[float]]:
    """Return our score, and the perplexities with AllenNLP's activations: forward, backward and mean."""
    folder = find_bilm(bilm)
    model = LanguageModel.load(bilm)
    arrays = read_softmax((softmax_folder(bilm) or folder) / SOFTMAX)
    weight, bias = (arrays[name].astype(np.float64) for name in ("weight", "bias"))
    sentences = list(islice(read_sentences(text, None, Report()), n_sentences))
    ours, sums = score_text(model, sentences), np.zeros(2)
    for sentence, top in zip(sentences, activations(folder, sentences), strict=True):
        sums += losses(top, model.vocabulary.ids(sentence).tolist(), weight, bias)
    return ours, [math.exp(one / ours.predictions) for one in (*sums, sums.mean())]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("bilm", help="a name, or a folder with its softmax")
    parser.add_argument("text", type=Path, help="a sentence a line, words separated by blanks")
    parser.add_argument("--sentences", type=int, default=200, help="no more than this many")
    arguments = parser.parse_args()
    try:
        ours, theirs = compare(arguments.bilm, arguments.text, arguments.sentences)
    except (ElmoError, PeerError) as error:
        sys.exit(f"✘ {error}")
    print(f"{ours.sentences} sentences, {ours.tokens:,} words\n")
    print("| perplexity | forward | backward | mean |\n|---|---|---|---|")
    for name, values in (("this package", ours.perplexities), ("AllenNLP's activations", theirs)):
        print(f"| {name} | {' | '.join(f'{value:.5f}' for value in values)} |")


if __name__ == "__main__":
    main()
