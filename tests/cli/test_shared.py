"""What several commands share: the names of options, files to write, progress, and standard input."""

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
import typer
from commands import run, run_process
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.cli.embed import _corpus_bar
from spacy_elmo.cli.shared import check_output, shown_bar
from spacy_elmo.errors import CommandError

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


def test_short_options_are_spacys() -> None:
    """If a command of ours has an option that spaCy's commands have, it has the same short name."""
    theirs = typer.main.get_command(spacy_app).commands  # type: ignore[attr-defined]
    for command in COMMANDS.values():
        for option, spellings in options(command).items():
            if option in SPACY:
                assert spellings in options(theirs[SPACY[option]]).values()
    config = options(theirs["init"].commands["config"]).values()
    for name in ("lang", "pipeline", "optimize", "force"):
        assert options(COMMANDS["init-config"])[name] in config


def test_a_pipeline_can_have_code_wherever_it_is_loaded() -> None:
    with_code = [name for name, command in COMMANDS.items() if "code" in options(command)]
    assert with_code == ["info", "embed", "similar", "neighbours", "weights", "probe", "wsd"]


@pytest.mark.parametrize("command", COMMANDS)
def test_values_are_named_in_capitals(command: str) -> None:
    for parameter in COMMANDS[command].params:
        shows_choices = (command, parameter.name) in CHOICES
        if not (getattr(parameter, "is_flag", False) or parameter.hidden or shows_choices):
            assert re.fullmatch("[A-Z]+", parameter.metavar or ""), parameter.name


def test_commands_are_listed_in_the_order_of_use() -> None:
    output = CliRunner().invoke(spacy_app, ["elmo", "--help"], terminal_width=80).output
    looks, components = "demo info download embed similar neighbours", "init-config weights"
    order = f"{looks} {components} init-pretrain-config vocab pretrain evaluate pack"
    places = [re.search(rf"^\W*{name} ", output, re.MULTILINE).start() for name in order.split()]  # type: ignore[union-attr]
    assert places == sorted(places)
    assert "..." not in output.partition("Commands")[2]  # with which click ends a line that does not fit


def test_the_former_name_of_lang_is_accepted_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Don't go!\n", encoding="utf8")
    run("elmo", "vocab", tmp_path / "text.txt", tmp_path / "v.txt", "--language", "en")
    assert (tmp_path / "v.txt").read_text(encoding="utf8").split() == ["<S>", "</S>", "<UNK>", "Do", "n't", "go", "!"]
    for name in ("vocab", "evaluate", "init-pretrain-config"):
        assert "--language" not in run("elmo", name, "--help")


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
    assert "of_a_user" in run(*command, code=1)
    assert "layer 1" in run_process(*command, "-c", code)


# Files


def test_a_file_that_standard_output_goes_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing advises --force, which would be refused too."""
    for force in (False, True):
        with pytest.raises(CommandError, match="standard output or standard error goes to it"):
            check_output(Path("/dev/fd/1"), force=force)


@pytest.mark.parametrize("command", ["vocab - v.txt", "embed - a.hdf5", "similar en_mini - --word a"])
def test_standard_input_that_is_closed(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spacy_elmo.corpus.reading.sys", type("", (), {"stdin": None}))  # Python's value for it
    told = run("elmo", *command.split(), code=1)
    assert "standard input: damaged, cut short or unreadable (it is closed)" in told
    assert not list(tmp_path.iterdir())


# Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_in_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_bar(total=40, unit=" sentences", desc="reading") as bar:
        bar.update(40)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("reading: 0 of 40 sentences (0%), ")
    assert last.startswith("reading: 40 of 40 sentences (100%), ")
    assert last.endswith(" sentences/s, 00:00 left")
    with shown_bar(total=None, unit="B", unit_scale=True) as bar:
        bar.update(12_345)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("0.00B, ")
    assert last.startswith("12.3kB, ")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown_bar(total=40) as bar:
        bar.update(40)
    assert "40/40" in terminal.getvalue()
    assert "\r" in terminal.getvalue()


def test_nothing_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with shown_bar(total=40) as bar:
        bar.update(40)
    with _corpus_bar(100, quiet=False) as update:
        update(1, 2)


@pytest.mark.parametrize("total", [100, None])
def test_the_end_of_a_corpus_is_told_once(capsys: pytest.CaptureFixture[str], total: int | None) -> None:
    """The total may have been an estimate."""
    with _corpus_bar(total, quiet=False) as update:
        update(7, 30)
        update(8, 40)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("0.00" if total is None else "0.00 of 100B (0%)")
    assert last.startswith("70.0B, " if total is None else "70.0 of 70.0B (100%), ")
    assert ", 15 tokens, " in last
