"""Help texts of settings: one source for the config's comments, `pretrain --help` and the reference."""

from __future__ import annotations

from pathlib import Path

from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.pretraining.config import PathSettings
from spacy_elmo.pretraining.config_file import commented, reference_table, settings, to_config, to_text
from spacy_elmo.pretraining.presets import Size, config_of_size

REFERENCE = Path(__file__).parents[3] / "docs" / "reference.md"
TEXT = to_text(to_config(config_of_size(Size.mini, PathSettings("a.txt"))))


def keys_of(text: str) -> list[str]:
    """All settings of a config, read without the package's help."""
    section, keys = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line and not section.startswith("bilm"):
            keys.append(f"{section}.{line.split(' = ')[0]}")
    return keys


def test_every_setting_has_a_help_text_of_its_own() -> None:
    found = [setting for setting in settings() if "." in setting.key]
    assert [setting.key for setting in found] == keys_of(TEXT)
    texts = [setting.help for setting in found]
    assert len(set(texts)) == len(texts)
    assert all("product" not in text and "where" not in text and "so many" not in text for text in texts)


def test_comments_stand_above_their_settings() -> None:
    lines = commented(TEXT).splitlines()
    assert [line for line in lines if not line.startswith("# ")] == TEXT.splitlines()
    helps = {setting.key.rpartition(".")[2]: setting.help for setting in settings() if setting.key.count(".") == 1}
    for name in ("streams", "heldout", "min_count", "checkpoint_every"):
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"{name} = "))
        assert lines[place - 1] == f"# {helps[name]}"


def test_the_reference_has_the_table() -> None:
    """If it fails: put what reference_table() returns in its place."""
    assert f"\n{reference_table()}\n\n" in REFERENCE.read_text(encoding="utf8")


def test_the_command_tells_of_every_setting() -> None:
    result = CliRunner().invoke(app, ["elmo", "pretrain", "--help"])
    assert result.exit_code == 0
    told = " ".join(result.output.split())
    for key, default, text in settings():
        if "." in key:
            expected = "required" if key == "paths.train" else f"default: {default}"
            assert f"--{key}: {text} ({expected})" in told
