"""`elmo pretrain`: train a biLM, or resume a run."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli._util import parse_config_overrides
from typer.core import TyperCommand

from ..errors import CheckpointError, CommandError, ElmoError, OtherProcessError, SettingsError
from ..formats.atomic import folder_lock
from .console import telling_if_stopped
from .shared import folder_argument

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}  # other options are settings


class PretrainCommand(TyperCommand):
    """The command, whose help lists all settings at its end."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from ..pretraining.config import command_help

        self.epilog = command_help()
        super().format_help(ctx, formatter)


def pretrain(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG", help="Config, as elmo init-pretrain-config writes it", exists=True, dir_okay=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder of the run; a run that was stopped there is resumed", parser=folder_argument
        ),
    ],
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Start again from the first update; an earlier run in OUT is renamed to OUT.1"),
    ] = False,
) -> None:
    """Train a biLM on text, or resume a stopped run.

    Settings can be overridden here: --training.epochs 2 is epochs in the section training.
    Ctrl-C, SIGTERM and SIGHUP write a checkpoint and end the run; the same command resumes it,
    without --restart.
    """
    from ..pretraining import run
    from ..pretraining.config import read_config
    from ..pretraining.distributed import environment, local_rank
    from ..pretraining.evaluating import Reporter
    from ..pretraining.folder import check_new_run, refuse_other_folder
    from .reporter import ConsoleReporter, same_command

    if restart and output.name in ("", ".."):
        output = output.resolve()  # a folder without a name can't be renamed
    rank, _ = environment()
    first_on_machine = local_rank() == 0
    prefix = f"process {rank}: " if rank else ""
    try:
        settings = read_config(config, _overrides_of(context.args))
    except ElmoError as error:
        if first_on_machine:  # all processes of a machine read the same file
            raise CommandError(prefix + str(error)) from error
        raise typer.Exit(1) from error
    reporter = Reporter() if rank else ConsoleReporter(restart=restart, language=settings.corpus.language)
    stopped = f"{prefix}stopped at once. Run {same_command(restart)} again: it goes on from the last checkpoint, if "
    with telling_if_stopped(f"{stopped}there is one."):
        try:
            if restart and not rank:
                refuse_other_folder(output)
                renamed = _move_aside(output, partial(check_new_run, settings, output))
                if renamed is not None:
                    reporter.message(f"the earlier run is kept in {renamed}")
            outcome = run.pretrain(settings, output, reporter)
        except OtherProcessError as error:  # the other process prints it
            raise typer.Exit(1) from error
        except (ElmoError, OSError) as error:
            raise CommandError(prefix + str(error)) from error
        finally:
            reporter.close()
    if outcome.stopped_by is not None:
        raise typer.Exit(128 + outcome.stopped_by)


def _overrides_of(arguments: list[str]) -> dict[str, Any]:
    """Return the settings in arguments like --training.epochs 2, by their full names, as `spacy train` reads them."""
    for argument in arguments:
        name = argument.removeprefix("--").partition("=")[0]
        if argument.startswith("--") and "." not in name:
            raise CommandError(f"--{name}: expected a setting in a section, like --training.epochs 2.")
    overrides: dict[str, Any] = parse_config_overrides(arguments)
    return {name: _as_written(value) for name, value in overrides.items()}


def _as_written(value: Any) -> Any:
    """Return the number that was written: spaCy's parser reads 0.6 as 0.6000000000000001, unlike a config file."""
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _move_aside(output: Path, check: Callable[[], None]) -> Path | None:
    """Rename a folder to the first free name of OUT.1, OUT.2 ..., and return it; None if there is nothing in it.

    check: raises ElmoError if a new run can't start in `output`. It is called before and after: if the run misses
        something then, the folder gets its name back.

    Raises ElmoError as `check` does, CheckpointError if a run is active in the folder, and SettingsError if the new run
    would read something that is in it.
    """
    check()
    if not output.exists() or not any(output.iterdir()):
        return None
    renamed = _renamed(output)
    try:
        check()
    except BaseException as error:
        renamed.rename(output)
        if isinstance(error, ElmoError):
            raise SettingsError(
                f"{output}: --restart would rename it, but the new run reads something that is in it: {error} "
                "Nothing was changed. Give another folder for the new run, or paths outside of this one."
            ) from error
        raise
    return renamed


def _renamed(output: Path) -> Path:
    number = 1
    while (renamed := output.parent / f"{output.name}.{number}").exists():
        number += 1
    with folder_lock(output, CheckpointError):  # an active run would continue to write there
        if os.name != "nt":
            return output.rename(renamed)
    return output.rename(renamed)  # Windows renames no folder whose lock is open
