"""What a trained pipeline does with one very long doc: how much it finds, the seconds, and the memory (Linux).

    python -m benchmarks.speed.long_docs training/coreference/elmo/seed-0/model-best --text heldout.txt

The doc has no sentences. For `answers` it begins with a question; the other words are the context. The memory is the
most that the process had, imports and weights included, so give one pipeline a call.
"""

import time
from itertools import islice
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

from ..common.arguments import add_common, count, parser_of, text_file
from ..memory.resident import resident_mb

QUESTION = ["When", "did", "the", "war", "end", "?"]
# the groups of spans in which the components leave what they find: see docs/tasks.md
FOUND = {"semantic_roles": "roles:", "coreference": "coref_clusters_", "answers": "answer"}


def words_of(text: Path, number: int) -> list[str]:
    """Return the first words of a text. Raises SystemExit if it has fewer.

    text: words separated by blanks. number: of words.
    """
    with text.open(encoding="utf-8") as file:
        words = list(islice((word for line in file for word in line.split()), number))
    if len(words) < number:
        raise SystemExit(
            f"{text} has {len(words):,} words. Expected {number:,} or more: give a longer text, or --words"
        )
    return words


def question_doc(doc: Doc) -> Doc:
    """Mark the question and the context in a doc that begins with QUESTION. Returns the doc."""
    doc.spans["question"] = [doc[: len(QUESTION)]]
    doc.spans["context"] = [doc[len(QUESTION) :]]
    return doc


def found(doc: Doc, component: str) -> int:
    """Return how many predicates, clusters or answers a component has found in a doc."""
    groups = [name for name in doc.spans if name.startswith(FOUND[component])]
    return len(doc.spans[groups[0]]) if component == "answers" else len(groups)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("pipeline", type=Path, help="a trained pipeline with " + ", ".join(FOUND))
    parser.add_argument("--text", type=text_file, required=True, help="words separated by blanks")
    parser.add_argument("--words", type=count, default=100_000, help="of the doc")
    add_common(parser, "threads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if not (args.pipeline / "meta.json").is_file():
        raise SystemExit(f"{args.pipeline} is no folder of a pipeline. Expected one: python -m spacy project run roles")
    nlp = spacy.load(args.pipeline)
    component = next((name for name in FOUND if nlp.has_pipe(name)), None)
    if component is None:
        raise SystemExit(f"{args.pipeline} has {', '.join(nlp.pipe_names)}. Expected one of {', '.join(FOUND)}")
    words = words_of(args.text, args.words)
    doc = Doc(nlp.vocab, words=[*QUESTION, *words] if component == "answers" else words)
    begin = time.perf_counter()
    doc = nlp(question_doc(doc) if component == "answers" else doc)
    seconds = time.perf_counter() - begin
    gigabytes = resident_mb(peak=True) / 1000
    print(f"{component}: found {found(doc, component):,}, {seconds:.0f} s, {gigabytes:.1f} GB, {args.threads} threads")


if __name__ == "__main__":
    main()
