"""`elmo pretrain`: train a biLM, or resume a run."""

from pathlib import Path
from typing import Any

import typer
from spacy.cli._util import Arg, Opt
from typer.core import TyperCommand

from ..errors import CheckpointError, CommandError, ElmoError, OtherProcessError, SettingsError
from ..formats.atomic import lock
from ..pretraining import run
from ..pretraining.config import command_help, read_config
from ..pretraining.distributed import environment, local_rank
from ..pretraining.evaluating import Reporter
from ..pretraining.folder import check_new_run, refuse_other_folder
from . import shared
from .console import telling_if_stopped
from .reporter import ConsoleReporter, same_command


class PretrainCommand(TyperCommand):
    """The command, whose help lists all settings at its end."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.epilog = command_help()
        super().format_help(ctx, formatter)


SETTINGS = {"cls": PretrainCommand, **shared.OTHERS_TOO}


def pretrain(
    context: typer.Context,
    config: Path = Arg(..., metavar="CONFIG", help="As init-pretrain-config writes it", exists=True, dir_okay=False),
    output: Path = Arg(..., metavar="OUT", help="Folder of the run; a stopped run is resumed", file_okay=False),
    restart: bool = Opt(False, "--restart", help="Begin anew; an earlier run in OUT is renamed to OUT.1"),
    force: bool = Opt(False, "--force", "-F", help="Start a run in a folder that has other files"),
) -> None:
    """Train a biLM on text, or resume a stopped run.

    Each setting of the config is an option, too: --training.epochs 2 sets epochs in the section training.
    Ctrl-C, SIGTERM and SIGHUP stop the run after it has saved a checkpoint. To resume it, run the same command again,
    without --restart.
    """
    rank, _ = environment()
    prefix = f"process {rank}: " if rank else ""
    try:
        overrides = {name: _as_written(value) for name, value in shared.overrides_of(context.args).items()}
        settings = read_config(config, overrides)
    except ElmoError as error:
        if local_rank() == 0:  # all processes of a machine read the same file
            raise CommandError(prefix + str(error)) from error
        raise typer.Exit(1) from error
    reporter = Reporter() if rank else ConsoleReporter(restart=restart, language=settings.corpus.language)
    stopped = f"{prefix}stopped at once. Run {same_command(restart)} again: it goes on from the last checkpoint, if "
    with telling_if_stopped(f"{stopped}there is one."):
        try:
            if restart and output.name in ("", ".."):
                output = output.resolve()  # a folder without a name can't be renamed
            if not rank and (restart or not force):
                refuse_other_folder(output, restart)
            if restart and not rank:
                renamed = _move_aside(output, settings)
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


def _as_written(value: Any) -> Any:
    """Return the number that was written: spaCy's parser reads 0.6 as 0.6000000000000001, unlike a config file."""
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _move_aside(output: Path, settings: Any) -> Path | None:
    """Rename a folder to the first free name of OUT.1, OUT.2 ..., and return it; None if there is nothing in it.

    If the new run would read something that is in it, it gets its name back.
    """
    check_new_run(settings, output)
    if not output.exists() or not any(output.iterdir()):
        return None
    with lock(output, CheckpointError):  # an active run would continue to write there
        number = 1
        while (renamed := output.with_name(f"{output.name}.{number}")).exists():
            number += 1
        output.rename(renamed)
    try:
        check_new_run(settings, output)
    except ElmoError as error:
        renamed.rename(output)
        raise SettingsError(
            f"{output}: --restart would rename it, but the new run reads something that is in it: {error} "
            "Nothing was changed. Give another folder for the new run, or paths outside of this one."
        ) from error
    return renamed
