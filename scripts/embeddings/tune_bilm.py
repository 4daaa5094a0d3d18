"""Tune the embedded biLM on the text of a task's training part, and measure its perplexity before and after.

The perplexities are of the development part. The paper did the same in its appendix A.1.

    python -m scripts.embeddings.tune_bilm ner ner_wnut17
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from ..runs.experiments import TASKS
from ..runs.facts_of_runs import bilm_mark
from ..runs.network_configs import network_config
from ..runs.train_runs import task_of
from ..runs.tuned_tasks import tuned_folder, tuned_result
from ..shared.command import run_command
from ..shared.elmo_command import run_elmo
from ..shared.measurement import commit_of, machine, write_record

_BILM = "en_mini"
_FILES = ("options.json", "weights.hdf5")


def tune(train: Path, dev: Path, output: Path, more: tuple[str, ...] = (), bilm: str = _BILM) -> dict[str, Any]:
    """Write options.json and weights.hdf5 of a tuned biLM to a folder, and return what was measured.

    The settings are those that `init-pretrain-config` gives, with one thread.

    train, dev: .spacy files, of whose tokens and sentences the biLM reads the text. The weights that are best on the
        second one are kept.
    output: the folder. It is replaced.
    more: settings of the run, as on the command line.
    bilm: the one that is tuned: a name, or a folder with its softmax.

    Raises CommandError if a command fails.
    """
    before = _perplexities(bilm, dev)  # first, because it needs the softmax too
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as name:
        config, run, kept = Path(name) / "tune.cfg", Path(name) / "run", Path(name) / "kept"
        texts = ["--train", str(train), "--heldout", str(dev)]
        run_elmo("init-pretrain-config", str(config), *texts, "--init", bilm)
        begin = time.perf_counter()
        run_elmo("pretrain", str(config), str(run), "--training.workers", "1", *more)
        minutes = (time.perf_counter() - begin) / 60
        metrics = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        after = _perplexities(str(run / "model-best"), dev)
        kept.mkdir()
        for file in _FILES:
            shutil.move(run / "model-best" / file, kept / file)
        shutil.rmtree(output, ignore_errors=True)
        kept.rename(output)
    tokens = int(json.loads(metrics[-1])["tokens"])
    return {"before": before, "after": after, "tokens": tokens, "minutes": round(minutes, 1)}


def _perplexities(model: str, text: Path) -> dict[str, Any]:
    """Return the perplexities from the zero state: of each direction, their mean, and all that without <UNK>."""
    found: dict[str, Any] = json.loads(run_elmo("evaluate", model, str(text), "--json", output=True))["zero_state"]
    return found


def main(tasks: list[str]) -> None:
    """Write assets/tuned/TASK and results/tuned/TASK.json for each of TASKS."""
    for task in [task_of(name, TASKS) for name in tasks]:
        paths = network_config(Path(), task, task.networks["elmo"])["paths"]
        record = tuned_result(Path(), task.name)
        facts = {"commit": commit_of(Path()), "machine": machine(), "bilm": bilm_mark()}
        measured = tune(Path(paths["train"]), Path(paths["dev"]), tuned_folder(task.name))
        write_record(record, {**measured, **facts})
        print(f"{record}: {measured['before']['mean']:.1f} before, {measured['after']['mean']:.1f} after")


if __name__ == "__main__":
    run_command(main)
