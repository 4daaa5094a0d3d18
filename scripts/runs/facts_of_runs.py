"""Facts about a run beside its scores: biLM, parameters, size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Config, Model

from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.modules.loading import embedded_files

_OTHER_BILMS = ("bilm", "options_file", "weight_file")  # settings with which a pipe reads another one


def bilm_mark() -> str:
    """Return the first 12 digits of the SHA-256 of the weights of en_mini, which is trained on from time to time."""
    return sha256_of(Path(embedded_files()[1]))[:12]


def bilm_of(config: Config) -> str:
    """Return the mark of en_mini if a pipeline of this config reads it, else ""."""
    models = [pipe["model"] for pipe in config["components"].values() if pipe.get("factory") == "elmo"]
    return bilm_mark() if any(not any(map(model.get, _OTHER_BILMS)) for model in models) else ""


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
