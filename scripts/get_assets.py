"""Get the files named under `assets` in project.yml: from a folder that has them, else from their addresses.

A file is used only if it has the MD5 in project.yml. Files in the folder, or in folders inside it, are copied. The
others are fetched as `spacy project assets` does it.

    python scripts/get_assets.py --data FOLDER
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from command import run_command
from messages import Messages
from weasel.cli.assets import fetch_asset  # type: ignore[import-untyped]
from weasel.util import get_checksum, load_project_config  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError, DownloadError
from spacy_elmo.formats.atomic import replacing


def is_right(path: Path, asset: dict[str, Any]) -> bool:
    """Return whether a file exists and has the MD5 of the asset."""
    return path.is_file() and get_checksum(path) == asset["checksum"]


def copy_present(project: Path, assets: Iterable[dict[str, Any]], data: Path) -> None:
    """Copy the assets that the folder `data` has to their places. Raises CommandError if it is not a folder."""
    if not data.is_dir():
        raise CommandError(Messages.DATA_FOLDER.format(path=data))
    for asset in assets:
        target = project / asset["dest"]
        if is_right(target, asset):
            continue
        source = next((path for path in sorted(data.rglob(target.name)) if is_right(path, asset)), None)
        if source is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target, CommandError) as temporary:
                shutil.copyfile(source, temporary)
            print(f"{source} -> {asset['dest']}")


def get_assets(project: Path, data: Path | None) -> None:
    """Get all assets. Raises DownloadError, which names those that are missing or have another MD5."""
    assets = load_project_config(project)["assets"]
    if data is not None:
        copy_present(project, assets, data)
    for asset in assets:
        if not is_right(project / asset["dest"], asset):
            try:
                fetch_asset(project, asset["url"], project / asset["dest"], asset["checksum"])
            except (OSError, SystemExit) as error:  # the second is how it ends where nothing came
                print(f"{asset['url']}: {error}")
    wrong = [asset for asset in assets if not is_right(project / asset["dest"], asset)]
    for asset in wrong:  # another file that came in its place, or a part of it
        (project / asset["dest"]).unlink(missing_ok=True)
    if wrong:
        lines = [Messages.ASSET_MISSING.format(path=one["dest"], md5=one["checksum"], url=one["url"]) for one in wrong]
        raise DownloadError("\n".join([Messages.ASSETS_MISSING, *lines]))


def main(
    project: Annotated[Path, typer.Argument(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")] = "",
) -> None:
    """Get the project's assets."""
    get_assets(project, Path(data).expanduser() if data else None)


if __name__ == "__main__":
    run_command(main)
