"""The configuration file of a run: spaCy's format, with defaults, overrides and variables."""

from __future__ import annotations

import configparser
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from thinc.api import Config

from ..errors import ElmoError, SettingsError
from ..formats.atomic import replacing, writing
from ..formats.options import KEYS, BiLMOptions, read_options
from ..formats.text import name_of
from ..modules.loading import find_bilm
from .config import PretrainConfig, help_of, refuse
from .language_model import OPTIONS, refuse_new_run

MOST_BYTES = 2**20  # of a file; those that init-pretrain-config writes have about 3,000
_MOST_EXPANDED = 2**20  # characters of a value after all variables in it are replaced
_DEEPEST = 20  # sections and values inside one another
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


def check_limits(tree: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, if reading a configuration would take very long or much memory.

    tree: sections and values, before variables like ${paths.train} are replaced.
    """
    texts = dict(_texts(tree, "", _DEEPEST))
    sizes: dict[str, int] = {}
    for key in texts:
        if _size(key, texts, sizes) > _MOST_EXPANDED:
            raise ValueError(f"{key} has more than {_MOST_EXPANDED:,} characters after its variables are replaced")


def _texts(tree: Mapping[str, Any], prefix: str, deepest: int) -> Iterator[tuple[str, str]]:
    """Yield the values by their full names, and each section as well, as text."""
    if not deepest:
        raise ValueError(f"sections or values are inside one another, more than {_DEEPEST} deep")
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _texts(value, f"{prefix}{name}.", deepest - 1)
        elif isinstance(value, list):
            yield from _texts(dict(enumerate(value)), f"{prefix}{name}.", deepest - 1)  # type: ignore[arg-type]
            continue
        yield f"{prefix}{name}", str(value)


def _size(key: str, texts: Mapping[str, str], sizes: dict[str, int]) -> int:
    """Return the characters of a value after its variables are replaced.

    key: its full name.
    texts: all values by their full names.
    sizes: the results so far; it gets this one.
    """
    if key not in sizes:
        text = texts.get(key, "")
        sizes[key] = 0  # for variables that contain themselves, which thinc refuses
        sizes[key] = len(text) + sum(_size(name.replace(":", "."), texts, sizes) for name in _VARIABLE.findall(text))
    return sizes[key]


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
        _refuse_unknown(
            tree, "no such settings: {got}. Expected the names that spacy elmo init-pretrain-config writes."
        )
    for key, value in (overrides or {}).items():
        _override(tree, key, value)
    _refuse_unknown(
        tree,
        (
            "no such settings: {got}, given on the command line. Expected the names that spacy elmo "
            "init-pretrain-config writes."
        ),
    )
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
        raise SettingsError(f"--{key}: expected a setting in a section, like --training.epochs 2.")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise SettingsError(
                f"no such settings: {key}, given on the command line. Expected the names that spacy elmo "
                "init-pretrain-config writes."
            )
    tree[name] = value


@contextmanager
def _in_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of the file before the message of an error."""
    try:
        yield
    except ElmoError as error:
        raise type(error)(f"{path}: {error}") from error


@contextmanager
def _parsing() -> Iterator[None]:
    """Turn what thinc and configparser raise for malformed files into SettingsError."""
    try:
        yield
    except (OSError, ValueError, configparser.Error, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__  # thinc's have several lines
        raise SettingsError(
            f"not a configuration ({reason}). Expected sections and settings as spaCy's configs have."
        ) from error


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
            raise SettingsError(
                f"{key} is missing. Expected a value for it: set it in the file, or with --{key} VALUE."
            )
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
        raise SettingsError(
            "the section [bilm] is missing. Expected the sizes of the biLM, with the same keys as options.json, "
            "or paths.init: the folder of a biLM to start from, whose sizes are then used."
        )
    folder = find_bilm(init)
    refuse_new_run(folder)
    return read_options(folder / OPTIONS)


# what is code in Markdown: values in quotes, boundaries, null, names of settings and files
_CODE = re.compile(r'"\w+"|</?\w+>|\bnull\b|\b[a-z]+\.[a-z_]+\b|\b[a-z]+_[a-z_]+\b')


class Setting(NamedTuple):
    """key: its full name; default: as it is written in a config, None if it has none; help: what it does."""

    key: str
    default: str | None
    help: str


def settings(section: type = PretrainConfig, prefix: str = "") -> Iterator[Setting]:
    """All settings that have a help text, in the order of the file; sections that have one, too."""
    hints = get_type_hints(section)
    for field in fields(section):
        key, text = prefix + field.name, help_of(field)
        if text is not None:
            yield Setting(key, _written(field.default), text)
        if is_dataclass(hints[field.name]) and key != "bilm":
            yield from settings(hints[field.name], f"{key}.")


def commented(text: str) -> str:
    """A config with a line of explanation above each setting."""
    helps = {setting.key: setting.help for setting in settings()}
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        header, setting = re.fullmatch(r"\[(.+)\]", line), re.match(r"(\w+) = ", line)
        if header:
            section = header[1]
        key = section if header else f"{section}.{setting[1]}" if setting else ""
        if key in helps:
            lines.append(f"# {helps[key]}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def command_help() -> str:
    """A paragraph for each setting, as `pretrain --help` shows them."""
    lines = [
        f"--{key}: {text} ({f'default: {default}' if default else 'required'})"
        for key, default, text in settings()
        if "." in key
    ]
    return "\n\n".join(["Settings, which can be given as options:", *lines])


def reference_table() -> str:
    """The table of docs/reference.md, in Markdown."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for key, default, text in settings():
        if "." in key:
            lines.append(f"| `{key}` | {f'`{default}`' if default else 'required'} | {_CODE.sub(_as_code, text)} |")
    return "\n".join(lines)


def _as_code(match: re.Match[str]) -> str:
    return f"`{match[0]}`"


def _written(default: Any) -> str | None:
    if default is MISSING:
        return None
    return json.dumps(default)
