"""Errors of commands: where they are printed, and how the command ends."""

import pytest

from spacy_elmo.cli.console import print_error, printing_errors
from spacy_elmo.errors import CommandError


def test_standard_output_is_left_to_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"), printing_errors():
        raise CommandError("wrong\x1b")
    with pytest.raises(KeyboardInterrupt), printing_errors("stopped"):
        raise KeyboardInterrupt
    print_error("and on")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(text in printed.err for text in ("wrong\\x1b", "stopped", "and on"))
