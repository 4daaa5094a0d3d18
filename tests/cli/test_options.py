"""The names of the commands' options, compared with those of spaCy's own commands."""

import re
from pathlib import Path
from typing import Any

import pytest
import spacy
import typer
from commands import run_process
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

from spacy_elmo.cli import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
# commands of spaCy that have an option of that name
SPACY = {"lang": "convert", "force": "apply", "gpu_id": "apply", "batch_size": "apply", "code": "apply"}
# options whose help lists what may be given
CHOICES = {("init-config", "optimize"), ("init-pretrain-config", "size"), ("pack", "softmax")}
CODE = """
from spacy.language import Language

@Language.component("of_a_user")
def of_a_user(doc):
    return doc
"""


def options(command: Any) -> dict[str, set[str]]:
    return {
        parameter.name: set(parameter.opts) for parameter in command.params if parameter.param_type_name == "option"
    }


def spacys(name: str) -> set[str]:
    """The spellings of an option in spaCy's commands."""
    root = typer.main.get_command(spacy_app)
    command = root.commands[SPACY[name]]  # type: ignore[attr-defined]
    return next(set(p.opts) for p in command.params if f"--{name.replace('_', '-')}" in p.opts)


@pytest.mark.parametrize("name", COMMANDS)
def test_short_options_are_spacys(name: str) -> None:
    """If a command of ours has an option that spaCy's commands have, it has the same short name."""
    for option, spellings in options(COMMANDS[name]).items():
        if option in SPACY:
            assert spellings == spacys(option)


def test_init_config_has_those_of_spacys_init_config() -> None:
    ours = options(COMMANDS["init-config"])
    init = typer.main.get_command(spacy_app).commands["init"]  # type: ignore[attr-defined]
    theirs = options(init.commands["config"])
    for name, long in (
        ("lang", "--lang"),
        ("pipeline", "--pipeline"),
        ("optimize", "--optimize"),
        ("force", "--force"),
    ):
        assert ours[name] == next(spellings for spellings in theirs.values() if long in spellings)


def test_a_pipeline_can_have_code_wherever_it_is_loaded() -> None:
    assert [name for name, command in COMMANDS.items() if "code" in options(command)] == [
        "info",
        "embed",
        "similar",
        "neighbours",
        "weights",
        "probe",
        "wsd",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_values_are_named_in_capitals(command: str) -> None:
    for parameter in COMMANDS[command].params:
        shows_choices = (command, parameter.name) in CHOICES
        if not (getattr(parameter, "is_flag", False) or parameter.hidden or shows_choices):
            assert re.fullmatch("[A-Z]+", parameter.metavar or ""), parameter.name


def test_commands_are_listed_in_the_order_of_use() -> None:
    output = CliRunner().invoke(spacy_app, ["elmo", "--help"]).output
    looks, components = "demo info download embed similar neighbours", "init-config weights"
    order = f"{looks} {components} init-pretrain-config vocab pretrain evaluate pack"
    places = [re.search(rf"^\W*{name} ", output, re.MULTILINE).start() for name in order.split()]  # type: ignore[union-attr]
    assert places == sorted(places)


def test_the_list_cuts_no_line() -> None:
    """Click ends a line with ... if it does not fit into 80 columns."""
    output = CliRunner().invoke(spacy_app, ["elmo", "--help"], terminal_width=80).output
    assert "..." not in output.partition("Commands")[2]


@pytest.mark.slow
def test_code_is_imported_before_a_pipeline_is_loaded(tmp_path: Path, golden: Path) -> None:
    """Each command runs in a process of its own, in which nobody has registered the component."""
    code = tmp_path / "code.py"
    code.write_text(CODE, encoding="utf8")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(golden / "random_a")}})
    nlp.to_disk(tmp_path / "pipeline")
    config = tmp_path / "pipeline/config.cfg"
    text = config.read_text(encoding="utf8").replace('["elmo"]', '["elmo","of_a_user"]')
    config.write_text(text + '\n[components.of_a_user]\nfactory = "of_a_user"\n', encoding="utf8")
    (tmp_path / "text.txt").write_text("a bank\nthe bank\n", encoding="utf8")
    command = ("elmo", "similar", tmp_path / "pipeline", tmp_path / "text.txt", "--word", "bank")
    with pytest.raises(AssertionError, match="of_a_user"):
        run_process(*command)
    assert "layer 1" in run_process(*command, "-c", code)


def test_hdf5_is_not_written_to_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a bank\n", encoding="utf8")
    result = CliRunner().invoke(spacy_app, ["elmo", "embed", "text.txt", "-"])
    assert result.exit_code == 1
    assert "no vectors can be written" in " ".join(result.output.split())
    assert not (tmp_path / "-").exists()


def test_the_former_name_of_lang_is_accepted_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Don't go!\n", encoding="utf8")
    arguments = ["elmo", "vocab", str(tmp_path / "text.txt"), str(tmp_path / "v.txt")]
    assert CliRunner().invoke(spacy_app, [*arguments, "--language", "en"]).exit_code == 0
    assert (tmp_path / "v.txt").read_text(encoding="utf8").split() == ["<S>", "</S>", "<UNK>", "Do", "n't", "go", "!"]
    for name in ("vocab", "evaluate", "init-pretrain-config"):
        assert "--language" not in CliRunner().invoke(spacy_app, ["elmo", name, "--help"]).output
