"""The configuration file of a run: spaCy's format, with defaults, overrides and variables."""

import configparser
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from thinc.api import Config

from ...errors import ElmoError, Errors, SettingsError
from ...formats.atomic import replacing, writing
from ...formats.options import BiLMOptions, read_options
from ...formats.options_checks import KEYS
from ...formats.text.sources import name_of
from ..model.files import OPTIONS, bilm_folder, refuse_new_run
from .checks import refuse
from .config import PretrainConfig
from .config_limits import MOST_BYTES, check_limits

Tree = dict[str, Any]
_BILM_KEYS = (*KEYS.values(), "char_cnn.n_characters")


def read_config(path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> PretrainConfig:
    """Read a configuration; settings that it leaves out have their defaults.

    overrides: by full names, as in {"training.epochs": 2}; variables like ${paths.train} see them.
    Without [bilm], and with paths.init, the sizes are those of that biLM.

    Raises SettingsError or OptionsError, each naming the setting, and the file unless it is an override that has no
    such setting. No text is looked for: see check_paths in starting.py.
    """
    with _in_file(path):
        with _parsing():
            with Path(path).open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
            if len(raw) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES:,} bytes")
            written = Config().from_str(raw.decode("utf8"), interpolate=False)
            check_limits(written)
        tree = _merged(_defaults(PretrainConfig), _unescaped(written))
        _refuse_unknown(tree, Errors.CONFIG_UNKNOWN)
    for key, value in (overrides or {}).items():
        _override(tree, key, value)
    _refuse_unknown(tree, Errors.CONFIG_UNKNOWN_OPTION)
    with _in_file(path):
        with _parsing():
            tree = Config(tree, is_interpolated=False).interpolate()
        config: PretrainConfig = _build(PretrainConfig, tree, "")
    return config


def to_config(config: PretrainConfig) -> Config:
    """All settings, section by section; [bilm] is laid out as options.json."""
    tree = asdict(config) | {"bilm": config.bilm.to_dict()}
    softmax = tree["training"]["softmax"]
    softmax["cutoffs"] = list(softmax["cutoffs"])
    return Config(tree)


def to_text(config: Config) -> str:
    """The text of a configuration file. Each section is followed by those inside it."""
    return "\n\n".join(Config({name: section}).to_str() for name, section in config.items()) + "\n"


def text_without_folders(config: PretrainConfig) -> str:
    """The text of a configuration file in which paths have only their last part, which says nothing of the machine."""
    tree = to_config(config)
    tree["paths"] = {name: path and name_of(path) for name, path in tree["paths"].items()}
    return to_text(tree)


def write_config(config: PretrainConfig, path: str | os.PathLike[str]) -> None:
    """Write all settings. The file is complete or not written at all. Raises SettingsError."""
    with replacing(path, SettingsError) as temporary, writing(path, SettingsError):
        temporary.write_text(to_text(to_config(config)), encoding="utf8")


def _defaults(section: type) -> Tree:
    """The defaults of a section; settings without a default are not in it."""
    tree: Tree = {}
    hints = get_type_hints(section)
    for field in fields(section):
        if hints[field.name] is BiLMOptions:
            continue
        if is_dataclass(hints[field.name]):
            tree[field.name] = _defaults(hints[field.name])
        elif field.default is not MISSING:
            tree[field.name] = list(field.default) if isinstance(field.default, tuple) else field.default
    return tree


def _merged(below: Tree, above: Mapping[str, Any]) -> Tree:
    """Both trees. If both have a value, that of `above` counts."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        result[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _unescaped(tree: Mapping[str, Any]) -> Tree:
    """The tree with single dollars: a file has two for one, because a dollar begins a variable."""
    result: Tree = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            result[name] = _unescaped(value)
        else:
            result[name] = value.replace("$$", "$") if isinstance(value, str) and "${" not in value else value
    return result


def _override(tree: Tree, key: str, value: object) -> None:
    *sections, name = key.split(".")
    if not sections:
        raise SettingsError(Errors.CONFIG_OVERRIDE.format(key=key))
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise SettingsError(Errors.CONFIG_UNKNOWN_OPTION.format(got=key))
    tree[name] = value


@contextmanager
def _in_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of the file before the message of an error."""
    try:
        yield
    except ElmoError as error:
        raise type(error)(Errors.CONFIG_IN_FILE.format(path=path, error=error)) from error


@contextmanager
def _parsing() -> Iterator[None]:
    """Turn what thinc and configparser raise for malformed files into SettingsError."""
    try:
        yield
    except (OSError, ValueError, configparser.Error, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__  # thinc's have several lines
        raise SettingsError(Errors.CONFIG_UNREADABLE.format(reason=reason)) from error


def _known(section: type = PretrainConfig, prefix: str = "") -> Iterator[str]:
    hints = get_type_hints(section)
    for field in fields(section):
        if hints[field.name] is BiLMOptions:
            yield from (f"{prefix}{field.name}.{key}" for key in _BILM_KEYS)
        elif is_dataclass(hints[field.name]):
            yield from _known(hints[field.name], f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def _unknown(tree: Tree, known: list[str], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        key = prefix + name
        within = any(one.startswith(key + ".") for one in known)
        if within and isinstance(value, dict):
            yield from _unknown(value, known, key + ".")
        elif not within and key not in known:
            yield key


def _refuse_unknown(tree: Tree, template: str) -> None:
    """Raise SettingsError, with a message that names all unknown settings and those that are nearest to them."""
    known = list(_known())
    sections = {key.rpartition(".")[0] for key in known}
    got = []
    for key in _unknown(tree, known):
        nearest = get_close_matches(key, [*known, *sections]) or get_close_matches(key, known, cutoff=0.4)
        got.append(f"{key} (nearest: {', '.join(nearest)})" if nearest else key)
    if got:
        raise SettingsError(template.format(got="; ".join(got)))


def _build(section: type, tree: Tree, prefix: str) -> Any:
    values: Tree = {}
    hints = get_type_hints(section)
    for field in fields(section):
        key = prefix + field.name
        if hints[field.name] is BiLMOptions:
            values[field.name] = _bilm(tree)
        elif tree.get(field.name) is None and field.default is MISSING and field.default_factory is MISSING:
            raise SettingsError(Errors.CONFIG_MISSING.format(key=key))
        elif is_dataclass(hints[field.name]):
            if not isinstance(tree[field.name], dict):
                refuse(key, tree[field.name], f"the section [{key}]")
            values[field.name] = _build(hints[field.name], tree[field.name], key + ".")
        else:
            values[field.name] = tree[field.name]
    return section(**values)


def _bilm(tree: Tree) -> BiLMOptions:
    if "bilm" in tree:
        return BiLMOptions.from_dict(tree["bilm"], "[bilm]")
    init = tree["paths"].get("init") if isinstance(tree["paths"], dict) else None
    if not isinstance(init, str):
        raise SettingsError(Errors.CONFIG_NO_BILM)
    folder = bilm_folder(init)
    refuse_new_run(folder)
    return read_options(folder / OPTIONS)
