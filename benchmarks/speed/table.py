"""What tokens_per_second.py measured as rows of a table: medians, ratios of the same round, shares of the limits."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ..common.machine_load import Load

COLUMNS = (
    *("batch", "precision", "what", "tokens/s", "times the faster ELMo peer", "times RoBERTa-base"),
    *("of the engine", "of the matrix limit", "of the matrix-vector rate", "others' cores"),
)
TEXT = ("precision", "what", "others' cores")  # the rest are numbers


class Side(NamedTuple):
    """What is measured. kind: "engine", "nlp.pipe" or a peer's name; elmo: whether it is a peer with our biLM."""

    kind: str
    precision: str
    title: str
    elmo: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is no peer."""
        return self.kind in ("engine", "nlp.pipe")


class Measured(NamedTuple):
    """Tokens a second, or what a rate allows, and the load of the machine meanwhile."""

    rate: float
    load: Load


class Spread(NamedTuple):
    """The median, the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """At least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def shown(self, form: str) -> str:
        """form: of each number."""
        median, low, high = (format(value, form) for value in self)
        return median if low == high else f"{median} ({low} to {high})"


Rounds = list[Measured]


class Cell(NamedTuple):
    """All rounds at one size and batch.

    sides: measurements of each side. limits, vectors: tokens a second that large matrix multiplications and
    matrix-vector multiplications allow, by precision.
    """

    size: str
    batch: int
    sides: dict[Side, Rounds]
    limits: dict[str, Rounds]
    vectors: dict[str, Rounds]


def undisturbed(*series: Rounds) -> list[int]:
    """The rounds in which no other process disturbed any of these; all rounds, where there is none."""
    rounds = range(min(map(len, series)))
    return [k for k in rounds if not any(part[k].load.disturbed for part in series)] or list(rounds)


def rate(series: Rounds) -> float:
    """Median of the undisturbed rounds."""
    return statistics.median(series[k].rate for k in undisturbed(series))


def ratio(above: Rounds, below: Rounds) -> Spread:
    """Of the rates in the same round, undisturbed rounds only where there are any."""
    return Spread.of([above[k].rate / below[k].rate for k in undisturbed(above, below)])


def compared(above: Rounds, below: Rounds, form: str) -> str:
    """The ratio in the format `form`, and whether others disturbed all rounds of it."""
    found = ratio(above, below).shown(form)
    pairs = zip(above, below)
    return found + (", disturbed" if all(a.load.disturbed or b.load.disturbed for a, b in pairs) else "")


def faster_peer(cell: Cell) -> Side | None:
    """Of those that run our biLM."""
    peers = [side for side in cell.sides if side.elmo]
    return max(peers, key=lambda side: rate(cell.sides[side]), default=None)


def row(cell: Cell, side: Side) -> dict[str, str]:
    """Cells by the names of COLUMNS; empty where there is nothing to compare with."""
    series, empty = cell.sides[side], ""
    found = dict.fromkeys(COLUMNS, empty) | {
        "batch": str(cell.batch),
        "precision": side.precision,
        "what": side.title,
        "tokens/s": f"{rate(series):,.0f}",
        "others' cores": load_of(series),
    }
    if not side.ours:
        return found
    engine = next((s for s in cell.sides if (s.kind, s.precision) == ("engine", side.precision)), None)
    roberta = next((s for s in cell.sides if s.kind == "roberta"), None)
    for name, other in (
        ("times the faster ELMo peer", faster_peer(cell)),
        ("times RoBERTa-base", roberta),
    ):
        if other is not None:
            found[name] = compared(series, cell.sides[other], ".2f")
    if engine is not None and engine != side:
        found["of the engine"] = compared(series, cell.sides[engine], ".0%")
    for name, limits in (("of the matrix limit", cell.limits), ("of the matrix-vector rate", cell.vectors)):
        if side.precision in limits:
            found[name] = compared(series, limits[side.precision], ".0%")
    return found


def ours_first(cell: Cell) -> list[Side]:
    """The order of the table's rows."""
    return sorted(cell.sides, key=lambda side: not side.ours)


def load_of(series: Rounds) -> str:
    """The most that other processes took in a round, and how many rounds they disturbed."""
    known = [measured.load.others for measured in series if measured.load.others is not None]
    if not known:
        return "?"
    count = sum(measured.load.disturbed for measured in series)
    return f"{max(known):.2f}" + (f", {count} of {len(series)} rounds disturbed" if count else "")


def markdown(rows: Sequence[dict[str, str]]) -> str:
    """A table, without the columns that are empty."""
    columns = [name for name in COLUMNS if any(row[name] for row in rows)]
    rule = ["---" if name in TEXT else "--:" for name in columns]
    lines = [columns, rule, *([row[name] for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
