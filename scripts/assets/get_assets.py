"""Get the files named under `assets` in project.yml: from a folder that has them, else from their addresses.

A file is used only if it has its MD5. Files in the folder, or in folders inside it, are copied. So are the prepared
files of asset_files.py, whose originals are not needed then. What is left is fetched as `spacy project assets` does it.

An asset with `files` is a folder. `files` names a list with the MD5, a tab and the address of each of its files.

    python -m scripts.assets.get_assets snli mnli sick --data FOLDER    # the files in these folders of assets/
    python -m scripts.assets.get_assets --data FOLDER                   # all files
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from weasel.cli.assets import fetch_asset  # type: ignore[import-untyped]
from weasel.util import get_checksum, load_project_config  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError, DownloadError
from spacy_elmo.formats.atomic import replacing

from ..shared.command import run_command
from ..shared.messages import Messages
from .asset_files import PREPARED, Prepared, is_right, stand_ins


def read_assets(project: Path, folders: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return dest, url and checksum of each file. Raises CommandError if a folder has none.

    folders: names of folders in assets/. None: all.
    """
    files: list[dict[str, Any]] = []
    for asset in load_project_config(project)["assets"]:
        if "files" not in asset:
            files.append(asset)
            continue
        for line in (project / asset["files"]).read_text(encoding="utf-8").splitlines():
            checksum, url = line.split("\t")
            files.append({"dest": f"{asset['dest']}/{Path(url).name}", "url": url, "checksum": checksum})
    names = sorted({_folder(file) for file in files})
    chosen = list(folders) or names
    for name in chosen:
        if name not in names:
            raise CommandError(Messages.ASSET_FOLDER.format(got=name, expected=", ".join(names)))
    return [file for file in files if _folder(file) in chosen]


def _folder(asset: dict[str, Any]) -> str:
    """Return the name of an asset's folder in assets/."""
    return Path(asset["dest"]).parts[1]


def warn_of_others(project: Path, assets: Iterable[dict[str, Any]]) -> None:
    """Say which files that were made are not those that were measured: they have another MD5."""
    for asset in assets:
        path = project / asset["dest"]
        if not is_right(path, asset):
            print(Messages.ASSET_OTHER.format(path=path, got=get_checksum(path), md5=asset["checksum"]))


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


def _checksum(path: Path) -> str | None:
    """Return the MD5 of a file, None if there is no such file."""
    return str(get_checksum(path)) if path.is_file() else None


def _others(data: Path | None, dest: str) -> str:
    """Return which files in the folder have the name of an asset that is missing, so that they are not used."""
    found = [] if data is None else sorted(data.rglob(Path(dest).name))
    return "".join(
        Messages.ASSET_NOT_USED.format(path=path, got=get_checksum(path)) for path in found if path.is_file()
    )


def get_assets(
    project: Path, data: Path | None, folders: Iterable[str] = (), prepared: Iterable[Prepared] = PREPARED
) -> None:
    """Get assets. Raises DownloadError, which names those that are missing or have another MD5.

    data: folder with files that need not be fetched.
    folders: names of folders in assets/. None: all.
    prepared: files that are as good as some assets.
    """
    assets = read_assets(project, folders)
    if data is not None:
        wanted = {asset["dest"] for asset in assets}
        stand_for = [one for one in prepared if wanted.intersection(one.originals)]
        files = [{"dest": dest, "checksum": md5} for one in stand_for for dest, md5 in one.files.items()]
        copy_present(project, [*assets, *files], data)
    replaced = stand_ins(project, prepared)
    assets = [asset for asset in assets if project / asset["dest"] not in replaced]
    before = {asset["dest"]: _checksum(project / asset["dest"]) for asset in assets}
    for asset in assets:
        if not is_right(project / asset["dest"], asset):
            try:
                fetch_asset(project, asset["url"], project / asset["dest"], asset["checksum"])
            except (OSError, SystemExit) as error:  # the second is how it ends where nothing came
                print(f"{asset['url']}: {error}")
    wrong = [asset for asset in assets if not is_right(project / asset["dest"], asset)]
    for asset in wrong:  # another file that came in its place, or a part of it; not one that was there before
        path = project / asset["dest"]
        if _checksum(path) != before[asset["dest"]]:
            path.unlink(missing_ok=True)
    if wrong:
        lines = [
            Messages.ASSET_MISSING.format(
                path=one["dest"], md5=one["checksum"], url=one["url"], others=_others(data, one["dest"])
            )
            for one in wrong
        ]
        raise DownloadError("\n".join([Messages.ASSETS_MISSING, *lines]))


def main(
    folders: Annotated[list[str] | None, typer.Argument(help="Folders in assets/; none: all")] = None,
    project: Annotated[Path, typer.Option(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")] = "",
) -> None:
    """Get the project's assets."""
    get_assets(project, Path(data).expanduser() if data else None, folders or ())


if __name__ == "__main__":
    run_command(main)
