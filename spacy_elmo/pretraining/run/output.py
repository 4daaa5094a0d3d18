"""The names in the output folder of a run, and what may be there before it: nothing that the run would replace."""

from pathlib import Path

from ...errors import Errors, SettingsError
from ..model.files import BEST, COUNTS, FILES, LAST, RUN
from ..text.prepared_meta import META
from .checkpoint import CHECKPOINTS
from .curve import CURVE
from .metrics import METRICS

CONFIG, TRAIN_TEXT = "config.cfg", "corpus"
WRITTEN = (CONFIG, *FILES, COUNTS, METRICS, CURVE, BEST, LAST)


def is_run(output: Path) -> bool:
    """Return whether a folder is that of a run, which may have been stopped while its text was prepared."""
    own = (output / RUN, output / TRAIN_TEXT / META, output / CHECKPOINTS)
    return any(path.exists() for path in own)


def refuse_foreign(output: Path) -> None:
    """Raise SettingsError if a folder is not that of a run, and has files of the names that a run or a biLM has.

    output: folder of the run.
    """
    if not is_run(output):
        foreign = [name for name in WRITTEN if (output / name).exists()]
        if foreign:
            raise SettingsError(Errors.RUN_FOREIGN.format(folder=output, got=", ".join(foreign[:3])))


def refuse_other_folder(output: Path) -> None:
    """Raise SettingsError if a folder has files, and is not that of a run: it would be renamed by a restart.

    Hidden files do not count: an attempt that failed early leaves them.

    output: folder of the run.
    """
    if output.is_dir() and not is_run(output) and any(not path.name.startswith(".") for path in output.iterdir()):
        raise SettingsError(Errors.RESTART_OTHER.format(folder=output))
