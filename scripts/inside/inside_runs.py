"""Ask the embedded biLM what its layers know, by this package's commands, and write the answers to results/inside/.

python -m scripts.inside.inside_runs probe_upos probe_tag probe_ent senses
"""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

from spacy_elmo.errors import CommandError

from ..runs.facts_of_runs import commit_of, machine, write_record
from ..shared.command import run_command
from ..shared.elmo_command import run_elmo
from ..shared.messages import Messages

TAGGED = ("corpus/tagger/en_ewt-ud-train.spacy", "corpus/tagger/en_ewt-ud-dev.spacy")  # for training and for scoring
_SENSES = "semcor30 senseval2 senseval3 semeval2007_task17 semeval2013_task12_en"  # the first one is for training
COMMANDS = {
    "probe_upos": f"probe {' '.join(TAGGED)} --attr upos --random",
    "probe_tag": f"probe {' '.join(TAGGED)} --attr tag --random",
    "probe_ent": "probe corpus/ner/train.spacy corpus/ner/dev.spacy --attr ent --random",
    "senses": "wsd {} --first-senses corpus/senses/first_senses.tsv".format(
        " ".join(f"corpus/senses/{name}.tsv" for name in _SENSES.split())
    ),
}


def inside_result_of(project: Path, name: str) -> Path:
    """Return the file of what was measured."""
    return project / "results" / "inside" / f"{name}.json"


class Measurement:
    """What a result has beside its figures: commit and machine, as they are at its begin, and the time since then."""

    def __init__(self) -> None:
        self._facts = {"commit": commit_of(Path()), "machine": machine()}
        self._begin = time.perf_counter()

    def write(self, path: Path, command: str, result: Any) -> None:
        """Write a result to a file.

        command: that gave it, as a user types it.
        result: that can be JSON.
        """
        minutes = round((time.perf_counter() - self._begin) / 60, 1)
        write_record(path, {"command": command, **self._facts, "minutes": minutes, "result": result})
        print(f"{path}: written")


def main(names: list[str]) -> None:
    """Write results/inside/NAME.json for each of NAMES: probe_upos, probe_tag, probe_ent, senses."""
    for name in names:
        if name not in COMMANDS:
            raise CommandError(Messages.INSIDE.format(got=name, expected=", ".join(COMMANDS)))
    for name in names:
        arguments = [*shlex.split(COMMANDS[name]), "--json"]
        measurement = Measurement()
        result = json.loads(run_elmo(*arguments, output=True))
        command = shlex.join(["python", "-m", "spacy", "elmo", *arguments])
        measurement.write(inside_result_of(Path(), name), command, result)


if __name__ == "__main__":
    run_command(main)
