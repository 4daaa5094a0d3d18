"""What settings do, in words: comments of a config, lines of `--help`, rows of the reference."""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, get_type_hints

from .checks import help_of
from .config import PretrainConfig

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
