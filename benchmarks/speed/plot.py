"""The plot of tokens_per_second.py: tokens a second by batch size, a panel for each size of the network."""

from collections.abc import Callable, Sequence
from pathlib import Path

from .table import Cell, Rounds, Side, ours_first, rate

COLOURS = {"engine": "C0", "nlp.pipe": "C2", "simple_elmo": "C1", "allennlp": "C3", "roberta": "C4"}
LINES = {"float32": "-", "bfloat16": "--"}


def plot(cells: Sequence[Cell], path: Path) -> None:
    """Draw the measurements, and write them to a .png file.

    cells: the measurements.
    path: the file.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes = list(dict.fromkeys(cell.size for cell in cells))
    figure, panels = pyplot.subplots(1, len(sizes), figsize=(4.5 * len(sizes), 4.5), squeeze=False)
    for size, panel in zip(sizes, panels[0]):
        here = [cell for cell in cells if cell.size == size]
        for side in dict.fromkeys(side for cell in here for side in ours_first(cell)):
            label = f"{side.title}, {side.precision}"
            style = LINES.get(side.precision, "-")
            panel.plot(*_curve(here, _of_side(side)), style, marker="o", color=COLOURS[side.kind], label=label)
        for precision in dict.fromkeys(precision for cell in here for precision in cell.limits):
            label = f"limit of the matrices, {precision}"
            panel.plot(*_curve(here, _of_limit(precision)), LINES.get(precision, "-"), color="0.7", label=label)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks([cell.batch for cell in here], [str(cell.batch) for cell in here])
        panel.minorticks_off()
        panel.set_title(size)
        panel.set_xlabel("sentences in a batch")
        panel.set_ylabel("tokens/s")
        panel.grid(alpha=0.3)
    handles = {label: handle for panel in panels[0] for handle, label in zip(*panel.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(sizes), fontsize="small")
    figure.set_layout_engine("constrained")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _of_side(side: Side) -> Callable[[Cell], Rounds | None]:
    return lambda cell: cell.sides.get(side)


def _of_limit(precision: str) -> Callable[[Cell], Rounds | None]:
    return lambda cell: cell.limits.get(precision)


def _curve(cells: Sequence[Cell], of: Callable[[Cell], Rounds | None]) -> tuple[list[int], list[float]]:
    points = [(cell.batch, rate(rounds)) for cell in cells if (rounds := of(cell))]
    return [batch for batch, _ in points], [value for _, value in points]
