"""Output files that commands refuse."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from pathlib import Path
from spacy_elmo.cli.shared.outputs import refuse_existing, refuse_inputs
{call}
"""


@pytest.mark.parametrize("name", ["/dev/stdout", "log"])
@pytest.mark.parametrize("call", ["refuse_existing(Path({name!r}), {force})", "refuse_inputs(Path({name!r}), [])"])
def test_where_standard_output_goes_to(tmp_path: Path, name: str, call: str) -> None:
    """Nothing advises --force, which would be refused too."""
    log = tmp_path / "log"
    for force in (False, True):
        log.write_text("earlier\n")
        code = CODE.format(call=call.format(name=name, force=force))
        with log.open("ab") as file:
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=tmp_path, stdout=file, stderr=subprocess.PIPE, text=True, check=False
            )
        assert f"CommandError: {name}: standard output or standard error goes to it" in done.stderr
        assert log.read_text() == "earlier\n"
