"""Memory of `elmo embed` while a long corpus goes through it (Linux).

    python -m benchmarks.corpus.memory --tokens 10000000

The memory of the command and of its workers together is read while it runs; a page that several of them hold counts for
each. Each row of the table is the highest memory in a tenth of the shards, in MB (10^6 bytes). The vectors are float16,
which takes half a gigabyte of disk for a million tokens.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..common.arguments import count, parser_of, text_file
from .texts import write_text

SHARD = 1_000_000
PAUSE = 0.1  # seconds from one reading to the next


def resident_mb(process: int) -> float:
    """Return the memory of a process and of those that it started, in MB; 0 if it has ended."""
    try:
        pages = Path(f"/proc/{process}/status").read_text()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    kb = next((int(line.split()[1]) for line in pages.splitlines() if line.startswith("VmRSS")), 0)
    return kb * 1024 / 1e6 + sum(resident_mb(int(child)) for child in children)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--text", type=text_file, help="file of sentences a line; left out: generated sentences")
    parser.add_argument("--tokens", type=count, default=10_000_000, help="of the corpus, at least")
    parser.add_argument("--format", default="parquet", help="of the shards")
    parser.add_argument("--workers", type=count, default=1, help="processes")
    parser.add_argument("--folder", type=Path, help="for the files; left out: that of the system")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        text, out = Path(folder, "text.txt"), Path(folder, "out")
        tokens = sum(map(len, write_text(text, args.tokens, args.text)))
        size = text.stat().st_size
        shard = min(SHARD, size // 10 + 1)
        options = ["--format", args.format, "--workers", str(args.workers), "--shard-size", str(shard), "--quiet"]
        options += [] if args.format == "hdf5" else ["--dtype", "float16"]
        command = [sys.executable, "-m", "spacy", "elmo", "embed", "--tokenized", *options, str(text), str(out)]
        process = subprocess.Popen(command)
        n_shards = -(-size // shard)
        peaks = [0.0] * 10
        while process.poll() is None:
            done = len([*out.glob("shards/part-*")])
            tenth = min(9, 10 * done // n_shards)
            peaks[tenth] = max(peaks[tenth], resident_mb(process.pid))
            time.sleep(PAUSE)
        if process.returncode != 0:
            sys.exit(f"the command failed with {process.returncode}")
    print("| million tokens | MB |\n| --: | --: |")
    for tenth, peak in enumerate(peaks, 1):
        print(f"| {tokens * tenth / 1e7:.2f} | {peak:,.0f} |")


if __name__ == "__main__":
    main()
