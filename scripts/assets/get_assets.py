"""Get the files named in assets.tsv: from a folder that has them, else from their addresses.

A file is used only if it has its MD5. Files in the folder, or in folders inside it, are copied. So are prepared files,
whose originals are not needed then. What is left is fetched as `spacy project assets` does it.
Files whose licence is not free are fetched for the user alone: nothing of them is shipped.

    python -m scripts.assets.get_assets snli mnli sick --data FOLDER    # the files in these folders of assets/
    python -m scripts.assets.get_assets --data FOLDER                   # all files
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from weasel.cli.assets import fetch_asset  # type: ignore[import-untyped]
from weasel.util import get_checksum  # type: ignore[import-untyped]

from spacy_elmo.errors import CommandError, DownloadError

from ..shared import run_command

TABLE = "scripts/assets/assets.tsv"
# A folder given with vars.data may have a corpus in another form than its address has it: prepared files with their
# MD5, and the originals that they stand for, because they give the same docs
PREPARED: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (
        {"assets/snli/snli.dev.tsv": "5fa425bacea219c73c86fed69fdf9812"},
        ("assets/snli/labels.dev", "assets/snli/s1.dev", "assets/snli/s2.dev"),
    ),
    (
        {"assets/snli/snli.test.tsv": "644350bf3a743a6c08788a46111e15e2"},
        ("assets/snli/labels.test", "assets/snli/s1.test", "assets/snli/s2.test"),
    ),
    ({"assets/mnli/mnli_matched_dev.tsv": "40ab4eddf2466496eba46bc53fb06cdd"}, ("assets/mnli/dev.jsonl",)),
    (
        {
            "assets/squad_part/train.jsonl": "bb2e17badeb3007c73e0296b1ef84595",
            "assets/squad_part/dev.jsonl": "e8c164052fb1a098dbb9654b9e99c2f5",
        },
        (
            "assets/squad_part/routerlens/dev.json",
            "assets/squad_part/flan/train.json",
            "assets/squad_part/flan/valid.json",
            "assets/squad_part/flan/test.json",
        ),
    ),
]
Files = dict[str, str]  # path in the project -> MD5


def is_right(path: Path, md5: str) -> bool:
    """Return whether a file exists and has this MD5."""
    return path.is_file() and get_checksum(path) == md5


def read_assets(project: Path, folders: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return dest, url and checksum of each file. Raises CommandError if a folder has none.

    folders: names of folders in assets/. None: all.
    """
    with (project / TABLE).open(encoding="utf-8", newline="") as table:
        files = list(csv.DictReader(table, delimiter="\t"))
    names = sorted({Path(file["dest"]).parts[1] for file in files})
    chosen = list(folders) or names
    if unknown := set(chosen) - set(names):
        got = ", ".join(sorted(unknown))
        raise CommandError(f"assets/{got}: no files there. Expected some of the folders {', '.join(names)}.")
    return [file for file in files if Path(file["dest"]).parts[1] in chosen]


def prepared_or_given(sources: Iterable[Path], project: Path = Path()) -> list[Path]:
    """Return paths in the project. Prepared files that are all there with their MD5 replace their originals."""
    found: dict[Path, list[Path]] = {}
    for files, originals in PREPARED:
        if all(is_right(project / path, md5) for path, md5 in files.items()):
            found |= {Path(original): list(map(Path, files)) for original in originals}
    return list(dict.fromkeys(path for source in sources for path in found.get(source, [source])))


def copy_present(project: Path, files: Files, data: str) -> Files:
    """Copy the files that the folder `data` has to their places. Return those that are not there after that.

    data: "" if there is no folder. Raises CommandError if it is not a folder.
    """
    folder = Path(data).expanduser()
    if data and not folder.is_dir():
        raise CommandError(f"{folder}: no such folder. Change vars.data, or leave it empty.")
    left = {}
    for dest, md5 in files.items():
        target = project / dest
        if is_right(target, md5):
            continue
        found = sorted(folder.rglob(target.name)) if data else []
        source = next((path for path in found if is_right(path, md5)), None)
        if source is None:
            left[dest] = md5
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        print(f"{source} -> {dest}")
    return left


def warn_of_others(project: Path, files: Files) -> None:
    """Say which files that were made are not those that were measured: they have another MD5."""
    for dest, md5 in files.items():
        if not is_right(project / dest, md5):
            print(
                f"warning: {dest} has the MD5 {get_checksum(project / dest)}; the results of this project were made "
                f"with {md5}. Scores can differ: its origin may have changed."
            )


def fetch(repository: str, commit: str, folder: str, target: Path) -> Path:
    """Fetch a folder of a git repository as it was at a commit. Return its path. Raises DownloadError.

    target: folder for the clone. One that is there is used again.
    """
    commands = [["-C", str(target), "checkout", "--quiet", commit, "--", folder]]
    if not target.exists():
        commands.insert(0, ["clone", "--quiet", "--filter=blob:none", "--no-checkout", repository, str(target)])
    for arguments in commands:
        result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        if result.returncode:
            raise DownloadError(
                f"{repository}: can't be fetched with git ({result.stderr.strip()}). Check the connection, or put the "
                "files into a folder and name it with --vars.data FOLDER."
            )
    return target / folder


def main(
    folders: Annotated[list[str] | None, typer.Argument(help="Folders in assets/; none: all")] = None,
    project: Annotated[Path, typer.Option(help="Folder of project.yml")] = Path("."),
    data: Annotated[str, typer.Option(help="Folder with files that need not be fetched; empty: none")] = "",
) -> None:
    """Get the project's assets. A file that can't be got, or has another MD5, is named at the end."""
    assets = {file["dest"]: file for file in read_assets(project, folders or ())}
    for files, originals in PREPARED:
        if set(originals) & set(assets):
            copy_present(project, files, data)
    wanted = [str(path) for path in prepared_or_given(map(Path, assets), project) if str(path) in assets]
    wrong = []
    for dest in copy_present(project, {dest: assets[dest]["checksum"] for dest in wanted}, data):
        url, md5 = assets[dest]["url"], assets[dest]["checksum"]
        try:
            fetch_asset(project, url, project / dest, md5)
        except (OSError, SystemExit) as error:  # the second is how it ends where nothing came
            print(f"{url}: {error}")
        if not is_right(project / dest, md5):
            wrong.append(f"  {dest} (MD5 {md5}), from {url}")
    if wrong:
        raise DownloadError(
            "These files did not come, or have another MD5. Check the connection and run the same command again, or "
            "put them into a folder and name it with --vars.data FOLDER:\n" + "\n".join(wrong)
        )


if __name__ == "__main__":
    run_command(main)
