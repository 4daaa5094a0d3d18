"""Makes the config of a network of a task out of the task's two configs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.language import DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.util import load_config
from thinc.api import Config

from spacy_elmo.errors import CommandError

from ..shared.messages import Messages
from .experiments import Network, Task

_WITH_ELMO = "spacy-elmo.ElmoTok2Vec.v1"
_LISTENER = "spacy-elmo.Listener.v1"
_MIX = "spacy-elmo.ScalarMix.v1"
_PLACES = {"input": "elmo", "output": "output_elmo"}  # the settings of ElmoTok2Vec


def network_config(project: Path, task: Task, network: Network) -> Config:
    """Return the config with which a network of a task is trained. project: folder with configs.

    Raises CommandError if the config does not have a setting that the task or the network changes.
    """
    path = project / "configs" / f"{task.config or task.name}{'_elmo' if network.elmo else ''}.cfg"
    config = load_config(path)
    for name, value in {**task.settings, **network.settings}.items():
        _change(config, name, value, path)
    for name, block in network.blocks.items():
        within, _, key = name.rpartition(".")
        _section(config, within, path)[key] = dict(block)
    if network.vectors:
        config["initialize"]["vectors"] = "assets/vectors"
        for section in _sections(config):
            if "include_static_vectors" in section:
                section["include_static_vectors"] = True
    if network.pretrained:
        config = pretraining_config(config)
        config["initialize"]["init_tok2vec"] = "assets/pretrained/model-last.bin"
    if network.places:
        for section in _sections(config):
            if section.get("@architectures") == _WITH_ELMO:
                _place(section, network.places)
    for section in _sections(config):
        if section.get("@layers") == _MIX:
            section.update(network.mix)
        if network.width is not None and section.get("@architectures") == _LISTENER:
            section["width"] = network.width
    if network.share < 100:
        config["paths"]["train"] = share_of(config["paths"]["train"], network.share)
    return config


def share_of(path: str, share: int) -> str:
    """Return the name of the file that has a share of a training part. share: in %."""
    return str(Path(path).with_suffix("")) + f"-{share}.spacy"


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


def _place(tok2vec: dict[str, Any], places: tuple[str, ...]) -> None:
    """Leave ELMo at these places alone: a copy of the one that is there."""
    elmo = next(tok2vec[key] for key in _PLACES.values() if tok2vec.get(key))
    for name, key in _PLACES.items():
        tok2vec[key] = Config(elmo).copy() if name in places else None


def _change(config: Config, name: str, value: Any, path: Path) -> None:
    section, _, key = name.rpartition(".")
    found = _section(config, section, path)
    if key not in found:
        raise CommandError(Messages.SETTING.format(path=path, got=name))
    found[key] = value


def _section(config: Config, name: str, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = config
    for part in name.split("."):
        if part not in found:
            raise CommandError(Messages.SETTING.format(path=path, got=name))
        found = found[part]
    return found


def _sections(tree: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """Yield all sections, also those within others."""
    for value in list(tree.values()):
        if isinstance(value, dict):
            yield value
            yield from _sections(value)
