"""Train the networks of a task with `spacy train`, a run for each seed. Write seconds and dev scores beside each model.

A run that was trained before from the same config, corpora and biLM is not trained again, so that a stopped command can
be continued.

    python -m scripts.runs.train_runs ner --networks "baseline elmo" --seeds "0 1 2"
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.util import load_config
from thinc.api import Config
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.modules.loading import embedded_files

from ..shared import origin, run_command
from . import transformer
from .experiments import NETWORKS, Gpu, Network, Networks, Seeds, Task, folder_of, networks_of, seeds_of, tasks_of

_OTHER_BILMS = ("bilm", "options_file", "weight_file")  # settings with which a pipe reads another one


def bilm_mark() -> str:
    """Return the first 12 digits of the SHA-256 of the embedded biLM's weights."""
    return sha256_of(Path(embedded_files()[1]))[:12]


def bilm_of(config: Config) -> str:
    """Return the mark of the embedded biLM if a pipeline of this config reads it, else ""."""
    models = [pipe["model"] for pipe in config["components"].values() if pipe.get("factory") == "elmo"]
    return bilm_mark() if any(not any(map(model.get, _OTHER_BILMS)) for model in models) else ""


def network_config(task: Task, network: Network) -> Config:
    """Return the config with which a network of a task is trained, made of one of the task's two configs."""
    path = Path("configs", f"{task.config}{'_elmo' if network.elmo else ''}.cfg")
    config = load_config(path)
    if network.transformer:
        config = transformer.frozen(config) if network.elmo else transformer.fine_tuned(config)
    settings: dict[str, Any] = {**task.settings, **network.settings}
    for name, value in settings.items():
        *within, key = name.split(".")
        section: dict[str, Any] = config
        for part in within:
            section = section[part]
        if key not in section:  # a name that is misspelt
            raise CommandError(f"{path}: there is no setting {name}. Expected one that can be changed: add it.")
        section[key] = value
    if network.vectors:
        config["initialize"]["vectors"] = network.vectors
    if network.pretrained:
        config = pretraining_config(config)
        config["initialize"]["init_tok2vec"] = "assets/pretrained/model-last.bin"
    for section in sections_of(config):
        if network.vectors and "include_static_vectors" in section:
            section["include_static_vectors"] = True
    return config


def sections_of(tree: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """Yield all sections, also those within others."""
    for value in list(tree.values()):
        if isinstance(value, dict):
            yield value
            yield from sections_of(value)


def pretraining_config(config: Config) -> Config:
    """Return a config of one component with spaCy's defaults for `spacy pretrain`.

    Its tok2vec moves into a component of its own and is listened to, because `spacy pretrain` takes no other.
    """
    (name,) = config["nlp"]["pipeline"]
    made = load_config(DEFAULT_CONFIG_PRETRAIN_PATH).merge(config)
    model = made["components"][name]["model"]
    tok2vec = model["tok2vec"]
    model["tok2vec"] = {"@architectures": "spacy.Tok2VecListener.v1", "width": tok2vec["encode"]["width"]}
    model["tok2vec"]["upstream"] = "tok2vec"
    made["components"]["tok2vec"] = {"factory": "tok2vec", "model": tok2vec}
    made["nlp"]["pipeline"] = ["tok2vec", name]
    return made


def fingerprint(config: Config) -> str:
    """Return the MD5 of a run's settings and of all files that they name, and of the embedded biLM if it is read."""
    digest = hashlib.md5(config.to_str().encode())
    texts = {value for section in sections_of(config) for value in section.values() if isinstance(value, str)}
    files = sorted(text for text in texts if "/" in text and Path(text).exists())
    code = [transformer.__file__] if transformer.PIPE in config["components"] else []
    for path in [*files, *code, *(embedded_files() if bilm_of(config) else ())]:
        digest.update(get_checksum(path).encode())
    return digest.hexdigest()


def train(config_path: Path, output: Path, seed: int, gpu_id: int) -> None:
    """Run `spacy train`, then write run.json. Raises CommandError if training fails."""
    # [system] seed is set too, because spaCy saves it and other parts may read it
    overrides: dict[str, Any] = {"system.seed": seed, "training.seed": seed}
    config = load_config(config_path, dict(overrides), interpolate=True)
    mark, record = fingerprint(config), output / "run.json"
    trained = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    if trained.get("fingerprint") == mark and (output / "model-best").is_dir():
        print(f"{output}: trained before from the same settings and files")
        return
    shutil.rmtree(output, ignore_errors=True)
    # neither the log nor the cache is a part of the fingerprint: they change no run
    log_file = output / "log.jsonl"
    overrides |= {"training.logger.@loggers": "spacy.ConsoleLogger.v2", "training.logger.output_file": str(log_file)}
    if config["components"].get("elmo", {}).get("frozen"):  # all runs of a task share the layers
        overrides["components.elmo.cache_file"] = f"assets/layers_{output.parts[-3]}.sqlite"
    command = [sys.executable, "-m", "spacy", "train", str(config_path), "--output", str(output)]
    if transformer.PIPE in config["components"]:
        command += ["--code", transformer.__file__]
    command += [
        "--gpu-id",
        str(gpu_id),
        *(text for name, value in overrides.items() for text in (f"--{name}", str(value))),
    ]
    begin = time.perf_counter()
    if subprocess.run(command, check=False).returncode:
        raise CommandError(f"{output}: training failed; what it said stands above. The command: {' '.join(command)}")
    seconds = time.perf_counter() - begin
    evaluations = map(json.loads, log_file.read_text(encoding="utf-8").splitlines())
    run = {
        "fingerprint": mark,
        "seconds": round(seconds, 1),
        "gpu_id": gpu_id,
        **origin(),
        "bilm": bilm_of(config),
        "dev": json.loads((output / "model-best" / "meta.json").read_text(encoding="utf-8"))["performance"],
        "curve": [(row["step"], round(row["score"], 4)) for row in evaluations],  # updates, score on the dev part
    }
    record.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    print(f"{output}: {seconds / 60:.1f} minutes")


def main(tasks: list[str], networks: Networks = "baseline elmo", seeds: Seeds = "0 1 2", gpu_id: Gpu = -1) -> None:
    """Train the networks of TASKS to training/TASK/NETWORK/seed-N; all: of all tasks."""
    numbers = seeds_of(seeds)
    for task in tasks_of(tasks):
        for name in networks_of(networks):
            network = NETWORKS[name]
            config = network_config(task, network)
            path = folder_of(task, name, 0).with_name("config.cfg")
            path.parent.mkdir(parents=True, exist_ok=True)
            config.to_disk(path)
            for seed in numbers:
                train(path, folder_of(task, name, seed), seed, gpu_id)


if __name__ == "__main__":
    run_command(main)
