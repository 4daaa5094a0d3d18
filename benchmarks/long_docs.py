"""What a trained pipeline does with one very long doc: how much it finds, the seconds, and the memory (Linux).

    python -m benchmarks.long_docs training/coreference/elmo/seed-0/model-best --text heldout.txt

The doc has no sentences. For `answers` it begins with a question; the other words are the context. The memory is the
most that the process had, imports and weights included, so give one pipeline a call.
"""

import time
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

from .common import parser_of
from .memory import resident_mb

QUESTION = ["When", "did", "the", "war", "end", "?"]
# the groups of spans in which the components leave what they find: see docs/tasks.md
FOUND = {"semantic_roles": "roles:", "coreference": "coref_clusters_", "answers": "answer"}


def main() -> None:
    parser = parser_of(__doc__, "threads")
    parser.add_argument("pipeline", type=Path, help="a trained pipeline with " + ", ".join(FOUND))
    parser.add_argument("--text", type=Path, required=True, help="words separated by blanks")
    parser.add_argument("--words", type=int, default=100_000, help="of the doc")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    nlp = spacy.load(args.pipeline)
    component = next((name for name in FOUND if nlp.has_pipe(name)), None)
    if component is None:
        raise SystemExit(f"{args.pipeline} has {', '.join(nlp.pipe_names)}. Expected one of {', '.join(FOUND)}")
    words = args.text.read_text(encoding="utf-8").split()[: args.words]
    if len(words) < args.words:
        raise SystemExit(f"{args.text} has {len(words):,} words: give a longer text, or --words")
    if component == "answers":
        doc = Doc(nlp.vocab, words=[*QUESTION, *words])
        doc.spans["question"], doc.spans["context"] = [doc[: len(QUESTION)]], [doc[len(QUESTION) :]]
    else:
        doc = Doc(nlp.vocab, words=words)
    begin = time.perf_counter()
    doc = nlp(doc)
    seconds = time.perf_counter() - begin
    groups = [name for name in doc.spans if name.startswith(FOUND[component])]
    found = len(doc.spans[groups[0]]) if component == "answers" else len(groups)
    gigabytes = resident_mb(peak=True) / 1000
    print(f"{component}: found {found:,}, {seconds:.0f} s, {gigabytes:.1f} GB, {args.threads} threads")


if __name__ == "__main__":
    main()
