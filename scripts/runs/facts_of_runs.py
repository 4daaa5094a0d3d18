"""Facts about a run beside its scores (commit, machine, biLM, parameters, size), and how its record is written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Config, Model

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing, writing
from spacy_elmo.formats.checksums import sha256_of
from spacy_elmo.modules.loading import embedded_files

_OTHER_BILMS = ("bilm", "options_file", "weight_file")  # settings with which a pipe reads another one
_CODE = ("spacy_elmo", "scripts", "configs")  # results/ and the pages change while the runs are made


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record as JSON, whole or not at all, and the folder around it. Raises CommandError if it can't."""
    with writing(path, CommandError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, CommandError) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def commit_of(project: Path) -> str:
    """Return the commit that a folder is at, with "-dirty" if code or configs were changed; "" if git does not know."""
    commit = _git(project, "rev-parse", "--short", "HEAD")
    changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", *_CODE)
    return f"{commit}-dirty" if changed else commit


def machine() -> str:
    """Return the processor's name and its number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def bilm_mark() -> str:
    """Return the first 12 digits of the SHA-256 of the weights of en_mini, which is trained on from time to time."""
    return sha256_of(Path(embedded_files()[1]))[:12]


def bilm_of(config: Config) -> str:
    """Return the mark of en_mini if a pipeline of this config reads it, else ""."""
    models = [pipe["model"] for pipe in config["components"].values() if pipe.get("factory") == "elmo"]
    return bilm_mark() if any(not any(map(model.get, _OTHER_BILMS)) for model in models) else ""


def _git(project: Path, *arguments: str) -> str:
    command = ["git", "-C", str(project), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""


def megabytes(folder: Path) -> float:
    """Return the size of all files of a folder in 10^6 bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def parameters(nlp: Language) -> int:
    """Return the number of weights of all components but biLMs."""
    models = [getattr(pipe, "model", None) for name, pipe in nlp.pipeline if nlp.get_pipe_meta(name).factory != "elmo"]
    return sum(_weights(model) for model in models if isinstance(model, Model))


def _weights(model: Model[Any, Any]) -> int:
    count = 0
    for node in model.walk():
        count += sum(node.get_param(name).size for name in node.param_names if node.has_param(name))
        for shim in node.shims:
            network = getattr(shim, "_model", None)
            count += sum(weight.numel() for weight in network.parameters()) if network is not None else 0
    return count
