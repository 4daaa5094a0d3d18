"""What matrix multiplications in bfloat16 cost: in the vectors, and in the scores of trained pipelines.

    python -m benchmarks.bfloat16 en_ewt-ud-dev.conllu
    python -m benchmarks.bfloat16 dev.conllu --pipelines runs/ner/model-best=corpus/ner/test.spacy

Vectors: the embedded biLM's in both precisions on the same sentences; each layer's relative error (the norm of the
difference by the norm, over all tokens), and the cosines of a token's two vectors. Scores: each pipeline, which was
trained in float32, is evaluated on its corpus twice; only the elmo pipe's precision differs.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import spacy
from spacy.training import Corpus

from spacy_elmo.analysis.probing import embed, label_getter, read_labelled
from spacy_elmo.corpus.bilm import BiLMChoice

from .common import PRECISIONS, parser_of

Array = npt.NDArray[np.float32]


def vectors(path: Path) -> None:
    """A row for each layer, and one for their mean."""
    sentences = read_labelled(path, "upos", label_getter("upos")).sentences
    exact, low = (embed(BiLMChoice(precision=precision).load(), sentences) for precision in PRECISIONS)
    print(f"{path.name}: {len(sentences):,} sentences, {exact.shape[1]:,} tokens\n")
    print("| vectors | relative error | cosine, mean | smallest |\n| --- | --: | --: | --: |")
    pairs = [*zip(exact, low), (exact.mean(0), low.mean(0))]
    names = [*(f"layer {k}" for k in range(len(exact))), "mean of the layers"]
    for name, (a, b) in zip(names, pairs):
        cosines = cosine(a, b)
        error = np.linalg.norm(b - a) / np.linalg.norm(a)
        print(f"| {name} | {100 * error:.2f} % | {cosines.mean():.6f} | {cosines.min():.4f} |", flush=True)


def cosine(a: Array, b: Array) -> Array:
    """Of each row of a with that of b."""
    cosines: Array = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return cosines


def scores(pipeline: str, corpus: str) -> None:
    """A row for each score that is a number."""
    found: list[dict[str, Any]] = []
    for precision in PRECISIONS:
        nlp = spacy.load(pipeline, config={"components.elmo.model.precision": precision})
        found.append(nlp.evaluate(list(Corpus(corpus)(nlp))))
    for name in ("tag_acc", "ents_p", "ents_r", "ents_f"):
        if found[0].get(name) is not None:
            first, second = (100 * float(score[name]) for score in found)
            print(f"| {pipeline}: {name} | {first:.2f} | {second:.2f} | {second - first:+.2f} |", flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("text", type=Path, help="CoNLL-U file with the sentences")
    parser.add_argument(
        "--pipelines", nargs="*", default=[], metavar="FOLDER=CORPUS", help="score these; CORPUS: a .spacy file"
    )
    args = parser.parse_args()
    vectors(args.text)
    if args.pipelines:
        print("\n| score | float32 | bfloat16 | difference |\n| --- | --: | --: | --: |")
    for pair in args.pipelines:
        scores(*pair.split("=", 1))


if __name__ == "__main__":
    main()
