"""Medians, ratios and rows, worked by hand."""

from benchmarks.common.machine_load import Load
from benchmarks.speed.table import (
    Cell,
    Measured,
    Rounds,
    Side,
    Spread,
    compared,
    faster_peer,
    markdown,
    ours_first,
    rate,
    ratio,
    row,
)

QUIET, BUSY = Load(0.5, 0.02), Load(2.0, 1.4)
ENGINE = Side("engine", "float32", "the engine")
PIPE = Side("nlp.pipe", "float32", "nlp.pipe")
LOW = Side("engine", "bfloat16", "the engine")
ONE, OTHER = Side("simple_elmo", "float32", "simple_elmo", True), Side("allennlp", "float32", "AllenNLP", True)
ROBERTA = Side("roberta", "float32", "RoBERTa-base")


def quiet(*rates: float) -> Rounds:
    return [Measured(value, QUIET) for value in rates]


def cell() -> Cell:
    sides = {
        ENGINE: quiet(300, 400, 500),
        ONE: quiet(100, 100, 250),
        PIPE: quiet(270, 380, 450),
        OTHER: quiet(90, 120, 95),
        LOW: quiet(1000, 1200, 1100),
        ROBERTA: quiet(50, 50, 50),
    }
    return Cell("original", 32, sides, {"float32": quiet(600, 500, 1000)}, {})


def test_medians_and_ratios_of_the_same_round() -> None:
    assert rate(quiet(3, 1, 2)) == 2
    assert ratio(quiet(4, 9, 10), quiet(2, 3, 10)) == Spread(2, 1, 3)


def test_disturbed_rounds_are_left_out_where_there_are_others() -> None:
    series = [Measured(1, BUSY), *quiet(5, 7)]
    assert rate(series) == 6
    assert ratio(series, [*quiet(10, 10), Measured(1, BUSY)]) == Spread(0.5, 0.5, 0.5)
    assert rate([Measured(1, BUSY), Measured(3, BUSY)]) == 2


def test_a_ratio_of_disturbed_rounds_alone_is_marked() -> None:
    assert compared(quiet(4, 9), quiet(2, 3), ".1f") == "2.5 (2.0 to 3.0)"
    assert compared([Measured(4, BUSY), *quiet(9)], quiet(2, 3), ".1f") == "3.0"
    assert (
        compared([Measured(4, BUSY), *quiet(9)], [*quiet(2), Measured(3, BUSY)], ".1f") == "2.5 (2.0 to 3.0), disturbed"
    )


def test_the_faster_peer_runs_our_network() -> None:
    assert faster_peer(cell()) == ONE
    swapped = cell()
    swapped.sides[OTHER] = quiet(110, 130, 120)
    assert faster_peer(swapped) == OTHER
    assert faster_peer(Cell("mini", 1, {ENGINE: quiet(1), ROBERTA: quiet(9)}, {}, {})) is None


def test_rows() -> None:
    found = row(cell(), ENGINE)
    assert found["tokens/s"] == "400"
    assert found["times the faster ELMo peer"] == "3.00 (2.00 to 4.00)"
    assert found["times RoBERTa-base"] == "8.00 (6.00 to 10.00)"
    assert found["of the matrix limit"] == "50% (50% to 80%)"
    assert found["of the engine"] == found["of the matrix-vector rate"] == ""
    assert row(cell(), PIPE)["of the engine"] == "90% (90% to 95%)"
    low = row(cell(), LOW)
    assert (low["precision"], low["of the matrix limit"], low["of the engine"]) == ("bfloat16", "", "")
    assert row(cell(), ONE)["times the faster ELMo peer"] == ""


def test_the_matrix_vector_rate() -> None:
    one = Cell("original", 1, {ENGINE: quiet(80)}, {}, {"float32": quiet(100)})
    assert row(one, ENGINE)["of the matrix-vector rate"] == "80%"


def test_others_load() -> None:
    series = [Measured(1, BUSY), *quiet(5, 7)]
    assert row(Cell("mini", 1, {ENGINE: series}, {}, {}), ENGINE)["others' cores"] == "1.40, 1 of 3 rounds disturbed"
    assert row(cell(), ENGINE)["others' cores"] == "0.02"
    unknown = Cell("mini", 1, {ENGINE: [Measured(1, Load(None, None))]}, {}, {})
    assert row(unknown, ENGINE)["others' cores"] == "?"


def test_ours_stand_before_the_peers() -> None:
    assert ours_first(cell()) == [ENGINE, PIPE, LOW, ONE, OTHER, ROBERTA]


def test_markdown_leaves_empty_columns_out() -> None:
    lonely = Cell("mini", 8, {ENGINE: quiet(1234.4)}, {}, {})
    assert markdown([row(lonely, ENGINE)]).splitlines() == [
        "| batch | precision | what | tokens/s | others' cores |",
        "| --: | --- | --- | --: | --- |",
        "| 8 | float32 | the engine | 1,234 | 0.02 |",
    ]
