"""What the networks that a user could take cost: the training of their embedding, megabytes, and words a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..runs.experiments import ALTERNATIVES, BASELINE, ELMO, MIDI, TASKS, Task, embedding_of, speed_of
from ..shared.messages import Messages
from .learning_runs import read_learning, training_of
from .results_tables import values_of
from .run_files import is_amount, read_json, read_runs, understood

TASK = TASKS[0]  # which ALTERNATIVES has further networks of
VECTORS, BOTH, SHORT = "vectors", "vectors_elmo", "short_bilm"
_OTHERS = {VECTORS: "floret", "pretrained": "spacy_pretrain", SHORT: "short_bilm"}  # and their embeddings
_BILMS = {ELMO: "en_mini", BOTH: "en_mini", MIDI: "en_midi"}
_SPEED_OF = {"pretrained": (TASK, BASELINE)}  # its network differs in the weights alone


class Embedding(NamedTuple):
    """The training of an embedding. minutes: of one core. words: that were read. source: commit and machine."""

    minutes: float
    words: int
    source: str


class Speed(NamedTuple):
    """Words that a pipeline annotates in a second, on two threads. source: commit and machine."""

    words_per_second: int
    source: str


class Alternative(NamedTuple):
    """A network and what it costs.

    name: of the network.
    title: of the network.
    training: minutes of a core in which its embeddings were trained (0 on a GPU), and words read meanwhile; None: it
        has no embedding, or they were not recorded.
    scores: the first measure of each run on the test part.
    megabytes: of the trained pipeline's folder.
    words_per_second: on two threads; None: not measured.
    """

    name: str
    title: str
    training: tuple[float, int] | None
    scores: list[float]
    megabytes: float
    words_per_second: int | None


def read_alternatives(project: Path, seeds: Sequence[int]) -> list[Alternative]:
    """Return the networks that have runs; the first one has no embedding. Raises CommandError for a damaged file."""
    found = []
    for name in (BASELINE, *_OTHERS, ELMO, BOTH, MIDI):
        task = ALTERNATIVES if name in ALTERNATIVES.networks else TASK
        if runs := read_runs(project, task, seeds).of(name):
            trained = [one for one in _trainings(project, name) if one is not None]
            training = (sum(minutes for minutes, _ in trained), sum(words for _, words in trained)) if trained else None
            measured = read_speed(project, *_SPEED_OF.get(name, (task, name)))
            speed, title = measured and measured.words_per_second, task.networks[name].title
            found.append(Alternative(name, title, training, values_of(runs, task), runs[0].megabytes, speed))
    return found


def sources(project: Path) -> list[str]:
    """Return sentences on the commits and machines at which embeddings were trained and speeds measured."""
    networks = [(task, name) for task in (TASK, ALTERNATIVES) for name in task.networks]
    embeddings = [read_embedding(project, name) for name in _OTHERS.values()]
    speeds = [read_speed(project, task, name) for task, name in networks]
    named = {
        "The embeddings": {one.source for one in embeddings if one is not None},
        "Words per second": {one.source for one in speeds if one is not None},
    }
    return [f"{what}: {'; '.join(sorted(found))}." for what, found in named.items() if found]


def read_speed(project: Path, task: Task, network: str) -> Speed | None:
    """Return what speed_of_runs.py measured of a network, None without it.

    Raises CommandError if the file is damaged.
    """
    path = speed_of(project, task.name, network)
    if not path.exists():
        return None
    with understood(path, Messages.SPEED_RESULT):
        data = read_json(path)
        speed = int(data["words_per_second"])
        if speed <= 0:
            raise ValueError(f"words_per_second is {speed}")
        return Speed(speed, _source(data))


def read_embedding(project: Path, name: str) -> Embedding | None:
    """Return what train_embedding.py measured, None without it. Raises CommandError if the file is damaged."""
    path = embedding_of(project, name)
    if not path.exists():
        return None
    with understood(path, Messages.EMBEDDING_RESULT):
        data = read_json(path)
        if not is_amount(data["minutes"]) or not is_amount(data["words"]):
            raise ValueError(f"minutes are {data['minutes']!r}, words {data['words']!r}")
        return Embedding(data["minutes"], data["words"], _source(data))


def _source(data: dict[str, Any]) -> str:
    return f"commit {data['commit']}, {data['machine']}"


def _trainings(project: Path, network: str) -> list[tuple[float, int] | None]:
    """Return minutes and words of the embeddings that a network has; None for one that was not recorded."""
    found: list[tuple[float, int] | None] = []
    if name := (_OTHERS | {BOTH: _OTHERS[VECTORS]}).get(network):
        embedding = read_embedding(project, name)
        found.append(embedding and (embedding.minutes, embedding.words))
    if bilm := _BILMS.get(network):
        found.append(training_of(read_learning(project), bilm))
    return found
