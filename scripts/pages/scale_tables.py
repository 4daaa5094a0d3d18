"""Prints the tables of docs/scale.md, from a few numbers that were measured.

python -m scripts.pages.scale_tables
"""

from __future__ import annotations

# Tokens a second of two cores: EPYC, batches of 512, no cache of words; the original size with random weights.
RATES = {
    ("en_core", "float32"): 6_009,
    ("en_core", "bfloat16"): 11_208,
    ("original", "float32"): 1_538,
    ("original", "bfloat16"): 2_937,
}
CORES_MEASURED = 2
WIDTHS = {"en_core": 512, "original": 1024}
LAYERS = 3
# Seconds of processor time a token for reading, tokenising and writing Parquet, en_mini, the mean in float32.
BESIDE = 10e-6
# Assumed, not measured.
MACHINE_CORES = 16
DISK = 0.5e9  # bytes a second that a machine can write
SHARED = 10e9  # bytes a second that a storage for all machines takes
MACHINES = (10, 100, 1000)
TOKENS = 1e9  # of the corpus in the tables: a billion
WORDS = 14.0  # bytes a token of a Parquet file beside the vectors: words, places, sources


def bytes_a_token(size: str, layers: int, bytes_a_value: int) -> float:
    """Return what a token takes in Parquet. size: of the biLM. layers: that are stored. bytes_a_value: 4 or 2."""
    return WORDS + WIDTHS[size] * layers * bytes_a_value


def core_rate(size: str, precision: str) -> float:
    """Return the tokens a second of a core, reading and writing included."""
    return 1 / (CORES_MEASURED / RATES[size, precision] + BESIDE)


def hours(tokens: float, machines: int, size: str, precision: str, bytes_each: float) -> tuple[float, str]:
    """Return how long a corpus takes, and what is waited for: "cores", "disk" or "shared storage".

    bytes_each: that a token takes.
    """
    limits = {
        "cores": machines * MACHINE_CORES * core_rate(size, precision),
        "disk": machines * DISK / bytes_each,
        "shared storage": SHARED / bytes_each,
    }
    slowest = min(limits, key=lambda name: limits[name])
    return tokens / limits[slowest] / 3600, slowest


def amount(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:,.3g} {unit}"
        n /= 1000
    return f"{float(f'{n:.3g}'):,g} PB"


def duration(n: float) -> str:
    if n < 1:
        return f"{60 * n:.2g} min"
    return f"{n:.2g} h" if n < 48 else f"{float(f'{n / 24:.2g}'):,g} days"


def table(head: str, rows: list[list[str]]) -> str:
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in rows)])


def tables() -> list[str]:
    kinds = {"all layers, float32": (LAYERS, 4), "mix, float32": (1, 4), "mix, float16": (1, 2)}
    speeds, sizes, times = list[list[str]](), list[list[str]](), list[list[str]]()
    for (size, precision), rate in RATES.items():
        each = core_rate(size, precision)
        written = [amount(MACHINE_CORES * each * bytes_a_token(size, 1, n)) for n in (4, 2)]
        numbers = (rate / CORES_MEASURED, each, MACHINE_CORES * each)
        speeds.append([size, precision, *(f"{number:,.0f}" for number in numbers), *written])
        for kind, stored in kinds.items():
            waits = [hours(TOKENS, n, size, precision, bytes_a_token(size, *stored)) for n in MACHINES]
            shown = [duration(n) + (f" ({slowest})" if slowest != "cores" else "") for n, slowest in waits]
            times.append([f"{size}, {precision}", kind, *shown])
    for size in WIDTHS:
        for kind, stored in kinds.items():
            sizes.append([size, kind, amount(TOKENS * bytes_a_token(size, *stored))])
    head = "| biLM | precision | tokens/s of a core, engine | with reading and writing | tokens/s of a machine | "
    head += "Parquet a second, mean in float32 | in float16 |\n|---|---|--:|--:|--:|--:|--:|"
    machines = " | ".join(f"{n:,} machines" for n in MACHINES)
    return [
        table(head, speeds),
        table("| biLM | stored | 1 billion tokens |\n|---|---|--:|", sizes),
        table(f"| 1 billion tokens | stored | {machines} |\n|---|---|--:|--:|--:|", times),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables()))
