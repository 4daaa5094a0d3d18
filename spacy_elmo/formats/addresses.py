"""Network addresses in places that need a path to a file."""

from __future__ import annotations

import os
import re

from ..errors import ElmoError, Errors

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Refuse an address on the network, such as http://... or s3://...

    path: what the user gave as a path.
    error: class of the exception; its message names the command that downloads.

    Raises `error` if `path` begins with a scheme of two letters or more (one letter is a Windows drive).
    """
    if _SCHEME.match(os.fspath(path)):
        raise error(Errors.FILE_ADDRESS.format(path=path))
