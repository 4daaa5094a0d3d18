"""Hash what the package computes and writes, so that two versions can be compared bit by bit.

    python benchmarks/quality/same_bits/run.py --json runs/same_bits/now.json
    python benchmarks/quality/same_bits/run.py --json runs/same_bits/now.json --compare runs/same_bits/before.json

Only public interfaces are used: the factory `elmo`, `python -m spacy elmo ...`, `Elmo`, `nlp.update`, `nlp.to_disk`.
So these files, which import only each other and the package, also run in the environment of an earlier version:
`OTHER/.venv/bin/python benchmarks/quality/same_bits/run.py`. Both runs need the same machine, the same versions of
torch and numpy, and the same folder of inputs (`--data`), which the first run writes.

Each line is a name and a SHA-256. Parts, each in a process of its own:

    layers     layers and mix of 500 sentences at three sizes, float32 and bfloat16, in batches and one by one;
               and carried states
    embed      `Elmo` (AllenNLP's interface) with its gradients, and a file of `python -m spacy elmo embed`
    pretrain   ten steps of small networks: weights, softmax, checkpoint and metrics; `evaluate --json` of one
    update     ten steps of `nlp.update` with the biLM frozen and ten with it tuned: losses and saved pipelines
    plain      parts of the same without the compiled loops

Gradients of a tuned biLM run on one thread: with more, torch sums some of them in no fixed order.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from inputs import sentences, write_inputs
from pretraining import NETWORKS, VARIANTS, pretrain, pretrained
from tagging import update, updated
from vectors import PRECISIONS, embed, layers, layers_of

PARTS = ("layers", "embed", "pretrain", "update", "plain")
PLAIN = ("projection float32", "projection bfloat16", "full")  # networks that also run without the compiled loops


def plain(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The part of this name, which runs with SPACY_ELMO_KERNELS=0.

    data: the inputs. folder: for files.
    """
    words = sentences(100, 0)
    for precision in PRECISIONS:
        yield f"plain: layers mini {precision}", layers_of(data, "mini", words, 32, precision=precision)
    for k, name in enumerate(PLAIN):
        yield from pretrained(f"plain: pretrain {name}", (NETWORKS | VARIANTS)[name], data, folder / f"run{k}")
    yield from updated("plain: update tuned float32", {"frozen": False}, folder / "update")


def run_part(name: str, data: Path, threads: int) -> dict[str, str]:
    """Run a part in this process.

    name: one of PARTS. data: the inputs. threads: of torch.
    """
    import torch

    torch.set_num_threads(threads)
    functions = {"layers": layers, "embed": embed, "pretrain": pretrain, "update": update, "plain": plain}
    found = {}
    folder = Path(tempfile.mkdtemp(prefix="same_bits."))
    try:
        for key, value in functions[name](data, folder):
            found[key] = value
            print(f"{key:60} {value}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder)
    return found


def compare(found: dict[str, str], path: Path) -> int:
    """Print what differs; returns how many.

    found: names and hashes. path: JSON file of another run.
    """
    other = json.loads(path.read_text(encoding="utf-8"))
    bad = [name for name in {**other, **found} if name in found and other.get(name) != found[name]]
    missing = [name for name in other if name not in found]
    print("\n| | hashes |\n| --- | --: |")
    print(f"| equal | {len(found) - len(bad)} |\n| different | {len(bad)} |\n| in the other alone | {len(missing)} |")
    for name in bad:
        print(f"{'new' if name not in other else 'DIFFERENT'}: {name}")
    for name in missing:
        print(f"only there: {name}")
    return len(bad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path("runs/same_bits/data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the inputs (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write names and hashes to this file")
    parser.add_argument("--compare", type=Path, help="file of another run; exit code 1 if anything differs")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    data = args.data.resolve()
    if args.part:
        print(json.dumps(run_part(args.part, data, args.threads)))
        return
    write_inputs(data)
    found: dict[str, str] = {}
    for part in args.parts.split(","):
        line = [sys.executable, __file__, "--data", str(data), "--part", part, "--threads", str(args.threads)]
        environment = os.environ | ({"SPACY_ELMO_KERNELS": "0"} if part == "plain" else {})
        result = subprocess.run(line, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        found |= json.loads(result.stdout)
    for name, value in found.items():
        print(f"{name} {value}")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.compare and compare(found, args.compare):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
