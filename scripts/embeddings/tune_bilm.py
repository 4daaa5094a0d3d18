"""Tune the embedded biLM on the text of a task's training part, as in the paper's appendix A.1.

Its perplexities on the development part, before and after, go to results/tuned.json. The labels are not used.

    python -m scripts.embeddings.tune_bilm ner ner_wnut17
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runs.experiments import ELMO, TASKS, keep_result, task_of
from ..runs.train_runs import bilm_mark, network_config
from ..shared import commit_of, machine, run_command, run_elmo


def tune(train: str, dev: str, output: Path, bilm: str = "en_mini", more: Sequence[str] = ()) -> dict[str, Any]:
    """Write options.json and weights.hdf5 of a tuned biLM to a folder, and return what was measured.

    The settings are those that `init-pretrain-config` gives, with one thread.

    train, dev: .spacy files, of whose tokens and sentences the biLM reads the text. The weights that are best on the
        second one are kept.
    bilm: the one that is tuned: a name, or a folder with its softmax.
    more: settings of the run, as on the command line.
    """
    before = _perplexities(bilm, dev)  # first, because it needs the softmax too
    with tempfile.TemporaryDirectory() as name:
        config, run = Path(name, "tune.cfg"), Path(name, "run")
        run_elmo("init-pretrain-config", str(config), "--train", train, "--heldout", dev, "--init", bilm)
        begin = time.perf_counter()
        run_elmo("pretrain", str(config), str(run), "--training.workers", "1", *more)
        minutes = round((time.perf_counter() - begin) / 60, 1)
        metrics = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        after = _perplexities(str(run / "model-best"), dev)
        output.mkdir(parents=True, exist_ok=True)
        for file in ("options.json", "weights.hdf5"):
            shutil.copyfile(run / "model-best" / file, output / file)
    return {"before": before, "after": after, "tokens": int(json.loads(metrics[-1])["tokens"]), "minutes": minutes}


def _perplexities(model: str, text: str) -> Any:
    """Return the perplexities from the zero state: of each direction, their mean, and all that without <UNK>."""
    return json.loads(run_elmo("evaluate", model, text, "--json", output=True))["zero_state"]


def main(tasks: list[str]) -> None:
    """Write assets/tuned/TASK, and put TASK into results/tuned.json, for each of TASKS."""
    for task in [task_of(name, TASKS) for name in tasks]:
        paths = network_config(task, task.networks[ELMO])["paths"]
        facts = {"commit": commit_of(Path()), "machine": machine(), "bilm": bilm_mark()}
        measured = tune(paths["train"], paths["dev"], Path("assets/tuned", task.name))
        keep_result("tuned", task.name, {**measured, **facts})


if __name__ == "__main__":
    run_command(main)
