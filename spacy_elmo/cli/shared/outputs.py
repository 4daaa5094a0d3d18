"""Files that commands write: what may be replaced, and how."""

from pathlib import Path

from ...errors import CommandError, Errors
from ...formats.atomic import replacing, writing

STANDARD_OUTPUT = Path("-")
_EXPECTED = "the name of a file to write"


def refuse_inputs(output: Path, inputs: list[Path]) -> None:
    """Raise CommandError for an output that is one of the inputs, or no regular file."""
    for path in inputs:
        if path.exists() and output.exists() and output.samefile(path):
            raise CommandError(Errors.EMBED_SAME.format(path=output))
    if output.exists() and not output.is_file():
        raise CommandError(Errors.FILE_NOT_REGULAR.format(path=output, expected=_EXPECTED))


def refuse_existing(path: Path, force: bool) -> None:
    """Raise CommandError for a file that is there, unless `force` is given, and for one that can't be written."""
    if path.exists() and not path.is_file():
        raise CommandError(Errors.FILE_NOT_REGULAR.format(path=path, expected=_EXPECTED))
    if path.exists() and not force:
        raise CommandError(Errors.INIT_EXISTS.format(path=path))
    if not path.parent.is_dir():
        raise CommandError(Errors.FOLDER_MISSING.format(path=path, folder=path.parent))


def write_text(text: str, path: Path) -> None:
    """Write a file, all of it or nothing. Raises CommandError."""
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        temporary.write_text(text, encoding="utf8")
