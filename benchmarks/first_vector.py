"""Seconds from the imports of spaCy and torch to the first vector of the embedded biLM, in fresh processes.

    python -m benchmarks.first_vector

What is counted: spacy.blank (with the language and all registered factories, spacy_elmo's imports among them),
add_pipe, and the first doc. The first process, which may read files from the disk, does not count.
"""

import json
import statistics
import subprocess
import sys

from .common import Load, parser_of, row

PARTS = ("spacy.blank", "add_pipe", "first doc", "together")
PROGRAM = """
import json, time
import spacy, torch
times = [time.perf_counter()]
nlp = spacy.blank("en")
times.append(time.perf_counter())
nlp.add_pipe("elmo")
times.append(time.perf_counter())
nlp("Stick to the river bank .")[4]._.elmo
times.append(time.perf_counter())
print(json.dumps([b - a for a, b in zip(times, times[1:])] + [times[-1] - times[0]]))
"""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes that are measured")
    args = parser.parse_args()
    print(row(["round", *(f"{part}, s" for part in PARTS), "others' cores"]))
    print(f"| --- {'| --: ' * len(PARTS)}| --- |")
    rounds = []
    for number in range(args.rounds + 1):
        load = Load()
        result = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
        if number:
            rounds.append(json.loads(result.stdout))
            print(row([number, *(f"{seconds:.2f}" for seconds in rounds[-1]), f"{load.cores():.2f}"]), flush=True)
    print(row(["median", *(f"{statistics.median(column):.2f}" for column in zip(*rounds)), ""]))


if __name__ == "__main__":
    main()
