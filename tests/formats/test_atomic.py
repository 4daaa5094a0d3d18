"""Files that replace others when they are complete."""

from pathlib import Path

import pytest

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats.atomic import replacing, writing


def test_a_read_only_file_system_gets_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There even the deletion of a file that does not exist is an error, which must not replace the first one."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    path = tmp_path / "file"
    with (
        pytest.raises(VectorsError, match=r"file: can't be written .*Read-only"),
        replacing(path, VectorsError),
        writing(path, VectorsError),
    ):
        refuse()
