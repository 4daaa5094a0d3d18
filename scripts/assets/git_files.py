"""Fetches a folder of a public repository with git."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from spacy_elmo.errors import DownloadError

from ..shared.messages import Messages


def fetch(repository: str, commit: str, folder: str, target: Path, instead: Iterable[str]) -> Path:
    """Fetch a folder of a repository as it was at a commit. Return its path. Raises DownloadError if git fails.

    repository: its address.
    folder: path in the repository.
    target: folder for the clone. One that is there is used again.
    instead: names of files that a user may give in place of it, for the message.
    """
    commands = [["-C", str(target), "checkout", "--quiet", commit, "--", folder]]
    if not target.exists():
        commands.insert(0, ["clone", "--quiet", "--filter=blob:none", "--no-checkout", repository, str(target)])
    for arguments in commands:
        result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        if result.returncode:
            reason = result.stderr.strip()
            raise DownloadError(Messages.GIT.format(address=repository, reason=reason, files=", ".join(instead)))
    return target / folder
