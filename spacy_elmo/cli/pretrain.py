"""`elmo pretrain`: train a biLM, or resume a run."""

from pathlib import Path

import typer
from spacy.cli._util import Arg, Opt

from ..errors import CheckpointError, CommandError, ElmoError, OtherProcessError, SettingsError
from ..formats.atomic import lock, real
from ..pretraining import run
from ..pretraining.config import PretrainConfig, command_help, read_config
from ..pretraining.distributed import environment
from ..pretraining.evaluating import Reporter
from ..pretraining.folder import check_new_run
from . import shared
from .reporter import ConsoleReporter

SETTINGS = {"epilog": command_help(), **shared.OTHERS_TOO}


def pretrain(
    context: typer.Context,
    config: Path = Arg(..., metavar="CONFIG", help="As init-pretrain-config writes it", exists=True, dir_okay=False),
    output: Path = Arg(..., metavar="OUT", help="Folder of the run; a stopped run is resumed", file_okay=False),
    restart: bool = Opt(False, "--restart", help="Begin anew; an earlier run in OUT is renamed to OUT.1"),
    force: bool = Opt(False, "--force", "-F", help="Start a run in a folder that has other files"),
) -> None:
    """Each setting of the config is an option, too: --training.epochs 2 sets epochs in the section training.
    Ctrl-C, SIGTERM and SIGHUP stop the run after it has saved a checkpoint. To resume it, run the same command again,
    without --restart.
    """
    rank, _, rank_here = environment()
    prefix = f"process {rank}: " if rank else ""
    try:
        settings = read_config(config, shared.overrides_of(context.args))
    except ElmoError as error:
        if rank_here == 0:  # all processes of a machine read the same file
            raise CommandError(prefix + str(error)) from error
        raise typer.Exit(1) from error
    reporter = Reporter() if rank else ConsoleReporter(settings.corpus.language)
    try:
        if restart and output.name in ("", ".."):
            output = output.resolve()  # a folder without a name can't be renamed
        if restart and not rank:
            renamed = _move_aside(output, settings)
            if renamed is not None:
                reporter.message(f"the earlier run is kept in {renamed}")
        stopped_by = run.pretrain(settings, output, reporter, force)
    except OtherProcessError as error:  # the other process prints it
        raise typer.Exit(1) from error
    except (ElmoError, OSError) as error:
        raise CommandError(prefix + str(error)) from error
    finally:
        reporter.close()
    if stopped_by is not None:
        raise typer.Exit(128 + stopped_by)


def _move_aside(output: Path, settings: PretrainConfig) -> Path | None:
    """Rename a folder to the first free name of OUT.1, OUT.2 ..., and return it; None if there is nothing in it."""
    check_new_run(settings, output, None)
    if not output.exists() or not any(output.iterdir()):
        return None
    for name in ("train", "heldout", "vocabulary", "init"):
        path = getattr(settings.paths, name)
        if path is not None and real(path).is_relative_to(real(output)):
            expected = "Give another folder for the new run, or a path outside of this one"
            raise SettingsError(f"{output}: --restart would rename it, but paths.{name} is {path}. {expected}.")
    with lock(output, CheckpointError):  # an active run would continue to write there
        number = 1
        while (renamed := output.with_name(f"{output.name}.{number}")).exists():
            number += 1
        return output.rename(renamed)
