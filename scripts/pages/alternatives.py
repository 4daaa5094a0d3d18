"""What the networks that a user could take cost: the training of their embedding, megabytes, and words a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..runs.experiments import ALTERNATIVES, BASELINE, ELMO, MIDI, TASKS, embedding_of, speed_of
from ..shared.messages import Messages
from .results_tables import values_of
from .run_files import read_json, read_runs, understood

TASK = TASKS[0]  # which ALTERNATIVES has further networks of
VECTORS, BOTH = "vectors", "vectors_elmo"
_OTHERS = {VECTORS: "floret", "pretrained": "spacy_pretrain", "short_bilm": "short_bilm"}  # and their embeddings
_SPEED_OF = {"pretrained": BASELINE, "short_bilm": ELMO}  # their networks differ in the weights alone
# worked out from en_mini's README: 4.5 hours on two cores and 2.75 on one, without the GPU's minutes; 142, 22, 48 and
# 130 million tokens, and 600 million on the GPU
_EN_MINI = (705.0, 942_000_000)
_EN_MIDI = (None, 450_000_000)  # on a GPU alone


class Alternative(NamedTuple):
    """A network and what it costs.

    name: of the network.
    title: of the network.
    training: minutes of a core in which its embedding was trained (None: none), and words read meanwhile; None: it has
        no embedding, or they were not recorded.
    scores: the first measure of each run on the test part.
    megabytes: of the trained pipeline's folder.
    words_per_second: on two threads; None: not measured.
    """

    name: str
    title: str
    training: tuple[float | None, int] | None
    scores: list[float]
    megabytes: float
    words_per_second: int | None


def read_alternatives(project: Path, seeds: Sequence[int]) -> list[Alternative]:
    """Return the networks that have runs; the first one has no embedding. Raises CommandError for a damaged file."""
    found, trained = [], {ELMO: _EN_MINI, MIDI: _EN_MIDI}
    for name in (BASELINE, *_OTHERS, ELMO, BOTH, MIDI):
        task = ALTERNATIVES if name in ALTERNATIVES.networks else TASK
        runs = read_runs(project, task, seeds).of(name)
        if runs:
            training = _training(project, _OTHERS[name]) if name in _OTHERS else trained.get(name)
            if name == BOTH and (floret := _training(project, _OTHERS[VECTORS])) is not None:
                training = (floret[0] + _EN_MINI[0], floret[1] + _EN_MINI[1])
            speed = words_per_second(speed_of(project, TASK.name, _SPEED_OF.get(name, name)))
            title = task.networks[name].title
            found.append(Alternative(name, title, training, values_of(runs, task), runs[0].megabytes, speed))
    return found


def words_per_second(path: Path) -> int | None:
    """Return what speed_of_runs.py wrote to a file, None without it. Raises CommandError if the file is damaged."""
    if not path.exists():
        return None
    with understood(path, Messages.SPEED_RESULT):
        return int(read_json(path)["words_per_second"])


def _training(project: Path, embedding: str) -> tuple[float, int] | None:
    path = embedding_of(project, embedding)
    if not path.exists():
        return None
    with understood(path, Messages.EMBEDDING_RESULT):
        data = read_json(path)
        return float(data["minutes"]), int(data["words"])
