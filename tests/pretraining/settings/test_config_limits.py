"""Small configurations that would take long or much memory to read are refused at once."""

from pathlib import Path

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.config_file import read_config

# each value has ten times the next one: 10 ** 11 characters in all
KEYS = ["paths.train", "paths.heldout", "paths.init", *(f"training.{c}" for c in "abcdefg"), "training.device"]


def chain() -> str:
    sections: dict[str, list[str]] = {}
    for key, following in zip(KEYS, [*KEYS[1:], None]):
        section, name = key.split(".")
        value = "x" * 10 if following is None else f"${{{following}}}" * 10
        sections.setdefault(section, []).append(f'{name} = "{value}"')
    return "\n".join(f"[{section}]\n" + "\n".join(lines) for section, lines in sections.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain(), r"paths\.train has more than 1,048,576 characters"),
        (chain().replace("training.", "training:"), "has more than 1,048,576 characters"),
        ("[paths]\ntrain = " + '{"a":' * 900 + "1" + "}" * 900, "more than 20 deep"),
        ("[paths]\ntrain = " + "[" * 900 + "1" + "]" * 900, "more than 20 deep"),
        ('[paths]\ntrain = "' + "x" * 2**20 + '"', "more than 1,048,576 bytes"),
        ("[paths]\ntrain = ${paths.heldout}\nheldout = ${paths.train}", "not a configuration"),
    ],
)
def test_limits(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.cfg").write_text(text + "\n", encoding="utf8")
    with pytest.raises(SettingsError, match=message):
        read_config(tmp_path / "a.cfg")
