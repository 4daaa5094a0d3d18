"""Train the networks of a task with `spacy train`, a run for each seed. Write seconds and dev scores beside each model.

A run that was trained before from the same config, corpora and biLM is not trained again, so that a stopped command can
be continued.

    python -m scripts.runs.train_runs ner --networks "baseline elmo" --seeds "0 1 2" [--section.setting value ...]
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.util import load_config
from thinc.api import Config
from weasel.util import get_checksum, parse_config_overrides  # type: ignore[import-untyped]

from spacy_elmo import bilms
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing

from ..shared.command import run_command
from ..shared.measurement import commit_of, machine, write_record
from ..shared.messages import Messages
from .ablations import ABLATIONS
from .corpus_shares import write_share
from .experiments import ALTERNATIVES, TASKS, Task, config_of, folder_of
from .facts_of_runs import bilm_of
from .network_configs import network_config
from .tuned_tasks import TUNED_TASKS

_LOG = "log.jsonl"


def seeds_of(text: str) -> list[int]:
    """Return the seeds in a text, which are separated by blanks.

    Raises CommandError if it has anything else, or one of them twice.
    """
    seeds = text.split()
    if not seeds or not all(seed.isdecimal() for seed in seeds):
        raise CommandError(Messages.SEEDS.format(got=text))
    numbers = [int(seed) for seed in seeds]
    if len(set(numbers)) < len(numbers):
        raise CommandError(Messages.SEED_TWICE.format(got=text))
    return numbers


def task_of(name: str, expected: Sequence[Task] = (*TASKS, ALTERNATIVES, *ABLATIONS, *TUNED_TASKS)) -> Task:
    """Return the one of the expected tasks that has a name. Raises CommandError if there is none."""
    tasks = {task.name: task for task in expected}
    if name not in tasks:
        raise CommandError(Messages.TASK.format(got=name, expected=", ".join(tasks)))
    return tasks[name]


def networks_of(text: str, task: Task) -> list[str]:
    """Return a task's networks in a text, which are separated by blanks; "all": all of them.

    Raises CommandError if the text has anything else.
    """
    names = list(task.networks) if text == "all" else text.split()
    if not names or not set(names) <= task.networks.keys():
        raise CommandError(Messages.NETWORKS.format(got=text, expected=", ".join(task.networks)))
    return names


def overrides_for(seed: int, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run. [system] seed is set too, because spaCy saves it and other parts may read it."""
    return {**more, "system.seed": seed, "training.seed": seed}


def fingerprint(config: Config) -> str:
    """Return the MD5 of a run's settings and of all files that they name, and of the embedded biLM if it is read."""
    digest = hashlib.md5(config.to_str().encode())
    embedded = bilms.paths("en_mini") if bilm_of(config) else ()
    for path in [*sorted(_files(config)), *embedded]:
        digest.update(get_checksum(path).encode())
    return digest.hexdigest()


def _files(tree: Mapping[str, Any]) -> set[str]:
    paths: set[str] = set()
    for value in tree.values():
        if isinstance(value, Mapping):
            paths |= _files(value)
        elif isinstance(value, str) and "/" in value and Path(value).exists():
            paths.add(value)
    return paths


def write_config(project: Path, task: Task, name: str) -> Path:
    """Write the config of a network of a task, and the share of the training part that it names. Returns its path.

    Raises CommandError.
    """
    network = task.networks[name]
    config = network_config(project, task, network)
    if network.share < 100:
        whole = network_config(project, task, network._replace(share=100))["paths"]["train"]
        write_share(project / whole, project / config["paths"]["train"], network.share)
    path = config_of(project, task.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, CommandError) as temporary:
        config.to_disk(temporary)
    return path


def read_run(path: Path) -> dict[str, Any]:
    """Return what training wrote to run.json. Raises CommandError if the file is damaged."""
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if missing := {"fingerprint", "commit", "machine", "seconds", "dev"} - run.keys():
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        if not float(run["seconds"]) >= 0:
            raise ValueError(f"seconds is {run['seconds']}")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError(Messages.RUN.format(path=path, reason=repr(error))) from error
    return run


def train(config_path: Path, output: Path, overrides: Mapping[str, Any], gpu_id: int) -> None:
    """Run `spacy train` and write run.json. run.json is written last. Raises CommandError if training fails."""
    config = load_config(config_path, dict(overrides), interpolate=True)
    mark = fingerprint(config)
    record = output / "run.json"
    if record.is_file() and (output / "model-best").is_dir() and read_run(record)["fingerprint"] == mark:
        print(f"{output}: trained before from the same settings and files")
        return
    earlier = output.with_name(f".{output.name}.earlier")
    if record.is_file():  # a training that fails takes nothing away
        shutil.rmtree(earlier, ignore_errors=True)
        output.rename(earlier)
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "spacy", "train", str(config_path), "--output", str(output)]
    command += ["--gpu-id", str(gpu_id)]
    # the log is not a part of the fingerprint: it changes no run
    log = {"training.logger.@loggers": "spacy.ConsoleLogger.v2", "training.logger.output_file": str(output / _LOG)}
    for name, value in {**overrides, **log}.items():
        command += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    begin = time.perf_counter()
    try:
        if subprocess.run(command, check=False).returncode:
            raise CommandError(Messages.TRAIN_FAILED.format(output=output, command=" ".join(command)))
        seconds = time.perf_counter() - begin
        meta = json.loads((output / "model-best" / "meta.json").read_text(encoding="utf-8"))
        where = {"commit": commit_of(Path()), "machine": machine(), "bilm": bilm_of(config)}
        run = {"fingerprint": mark, "seconds": round(seconds, 1), "gpu_id": gpu_id, **where, "dev": meta["performance"]}
        run["curve"] = curve(output / _LOG)
        write_record(record, run)
    except BaseException:  # Ctrl-C and SIGTERM too
        if earlier.exists():
            shutil.rmtree(output, ignore_errors=True)
            earlier.rename(output)
        raise
    shutil.rmtree(earlier, ignore_errors=True)
    print(f"{output}: {seconds / 60:.1f} minutes")


def curve(log: Path) -> list[tuple[int, float]]:
    """Return the number of updates and the score on the development part at each evaluation."""
    rows = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [(row["step"], round(row["score"], 4)) for row in rows]


def main(
    context: typer.Context,
    task: str,
    networks: Annotated[str, typer.Option(help="Separated by blanks")] = "baseline elmo",
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
) -> None:
    """Train the networks of TASK to training/TASK/NETWORK/seed-N. Other options are settings, as in `spacy train`."""
    chosen, numbers, project = task_of(task), seeds_of(seeds), Path()
    more = parse_config_overrides(list(context.args), None)
    for name in networks_of(networks, chosen):
        config_path = write_config(project, chosen, name)
        for seed in numbers:
            train(config_path, folder_of(project, task, name, seed), overrides_for(seed, more), gpu_id)


if __name__ == "__main__":
    run_command(main, allow_extra_args=True, ignore_unknown_options=True)
