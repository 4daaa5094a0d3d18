"""Output files that commands refuse."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from pathlib import Path
from spacy_elmo.cli.shared import refuse_existing, refuse_inputs
from spacy_elmo.errors import CommandError
for force in (False, True):
    try:
        {call}
    except CommandError as error:
        print(error, file=sys.stderr)
"""


@pytest.mark.parametrize("name", ["/dev/stdout", "log"])
@pytest.mark.parametrize("call", ["refuse_existing(Path({name!r}), force)", "refuse_inputs(Path({name!r}), [])"])
def test_where_standard_output_goes_to(tmp_path: Path, name: str, call: str) -> None:
    """Nothing advises --force, which would be refused too."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    code = CODE.format(call=call.format(name=name))
    with log.open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, stdout=file, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr.count(f"{name}: standard output or standard error goes to it") == 2
    assert log.read_text() == "earlier\n"
