"""Ask the embedded biLM what its layers know, by this package's commands, and write the answers to results/inside/.

python -m scripts.inside.inside_runs probe_upos probe_tag probe_ent senses
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from spacy_elmo.errors import CommandError

from ..runs.facts_of_runs import bilm_mark
from ..shared.command import run_command
from ..shared.corpus_files import TAGGED
from ..shared.elmo_command import run_elmo
from ..shared.measurement import Measurement
from ..shared.messages import Messages

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
        measurement.write(inside_result_of(Path(), name), command, result, bilm=bilm_mark())


if __name__ == "__main__":
    run_command(main)
