"""The table of tokens_per_second.py: medians, ratios within the same round, shares of the limits."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ..common.machine_load import Load

COLUMNS = (
    *("batch", "precision", "what", "tokens/s", "times the faster ELMo peer", "times RoBERTa-base"),
    *("of the engine", "of the matrix limit", "of the matrix-vector rate", "others' cores"),
)
TEXT = ("precision", "what", "others' cores")  # the other columns are numbers


class Side(NamedTuple):
    """What is measured.

    kind: "engine", "nlp.pipe" or the name of a peer.
    precision: of the matrix multiplications.
    title: its name in the table.
    elmo: whether it is a peer that runs our biLM.
    """

    kind: str
    precision: str
    title: str
    elmo: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a part of this package."""
        return self.kind in ("engine", "nlp.pipe")


class Measured(NamedTuple):
    """A measurement.

    rate: tokens a second, measured or allowed by a limit.
    load: of the machine meanwhile.
    """

    rate: float
    load: Load


class Spread(NamedTuple):
    """The median, the lowest and the highest of some values."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of one or more values."""
        return cls(statistics.median(values), min(values), max(values))

    def shown(self, form: str) -> str:
        """Return it as text. form: format of each number."""
        median, low, high = (format(value, form) for value in self)
        return median if low == high else f"{median} ({low} to {high})"


Rounds = list[Measured]


class Cell(NamedTuple):
    """All rounds at one size and batch size.

    size: of the network.
    batch: sentences of a batch.
    sides: measurements of each side.
    limits: tokens a second that large matrix multiplications allow, by precision.
    vectors: tokens a second that matrix-vector multiplications allow, by precision.
    """

    size: str
    batch: int
    sides: dict[Side, Rounds]
    limits: dict[str, Rounds]
    vectors: dict[str, Rounds]


def undisturbed(*series: Rounds) -> list[int]:
    """Return the rounds in which no other process disturbed any of these series; if there are none, all rounds."""
    rounds = range(min(map(len, series)))
    return [k for k in rounds if not any(part[k].load.disturbed for part in series)] or list(rounds)


def rate(series: Rounds) -> float:
    """Return the median rate of the undisturbed rounds."""
    return statistics.median(series[k].rate for k in undisturbed(series))


def ratio(above: Rounds, below: Rounds) -> Spread:
    """Return the ratio of two rates in the same round, over the undisturbed rounds."""
    return Spread.of([above[k].rate / below[k].rate for k in undisturbed(above, below)])


def compared(above: Rounds, below: Rounds, form: str) -> str:
    """Return the ratio in the format `form`, marked if other processes disturbed all its rounds."""
    text = ratio(above, below).shown(form)
    pairs = zip(above, below)
    return text + (", disturbed" if all(a.load.disturbed or b.load.disturbed for a, b in pairs) else "")


def faster_peer(cell: Cell) -> Side | None:
    """Return the fastest peer that runs our biLM; None: there is none."""
    peers = [side for side in cell.sides if side.elmo]
    return max(peers, key=lambda side: rate(cell.sides[side]), default=None)


def row(cell: Cell, side: Side) -> dict[str, str]:
    """Return a row of the table by the names of COLUMNS. A cell is empty if there is nothing to compare with."""
    series, empty = cell.sides[side], ""
    cells = dict.fromkeys(COLUMNS, empty) | {
        "batch": str(cell.batch),
        "precision": side.precision,
        "what": side.title,
        "tokens/s": f"{rate(series):,.0f}",
        "others' cores": load_of(series),
    }
    if not side.ours:
        return cells
    engine = next((s for s in cell.sides if (s.kind, s.precision) == ("engine", side.precision)), None)
    roberta = next((s for s in cell.sides if s.kind == "roberta"), None)
    for name, other in (
        ("times the faster ELMo peer", faster_peer(cell)),
        ("times RoBERTa-base", roberta),
    ):
        if other is not None:
            cells[name] = compared(series, cell.sides[other], ".2f")
    if engine is not None and engine != side:
        cells["of the engine"] = compared(series, cell.sides[engine], ".0%")
    for name, limits in (("of the matrix limit", cell.limits), ("of the matrix-vector rate", cell.vectors)):
        if side.precision in limits:
            cells[name] = compared(series, limits[side.precision], ".0%")
    return cells


def ours_first(cell: Cell) -> list[Side]:
    """Return the sides in the order of the table's rows."""
    return sorted(cell.sides, key=lambda side: not side.ours)


def load_of(series: Rounds) -> str:
    """Return how many cores other processes used in a round, at most, and how many rounds they disturbed."""
    known = [measured.load.others for measured in series if measured.load.others is not None]
    if not known:
        return "?"
    count = sum(measured.load.disturbed for measured in series)
    return f"{max(known):.2f}" + (f", {count} of {len(series)} rounds disturbed" if count else "")


def markdown(rows: Sequence[dict[str, str]]) -> str:
    """Return a table in Markdown, without empty columns."""
    columns = [name for name in COLUMNS if any(row[name] for row in rows)]
    rule = ["---" if name in TEXT else "--:" for name in columns]
    lines = [columns, rule, *([row[name] for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
