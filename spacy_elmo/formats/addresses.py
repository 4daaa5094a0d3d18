"""Addresses where files are expected."""

from __future__ import annotations

import os
import re

from ..errors import ElmoError, Errors

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Raise `error`, which names the command that downloads, for an address (http://..., s3://...)."""
    if _SCHEME.match(os.fspath(path)):
        raise error(Errors.FILE_ADDRESS.format(path=path))
