"""Standard output that can't show all, or is lost."""

import json
import os
import subprocess
import sys

import pytest

from spacy_elmo.cli import console
from spacy_elmo.cli.console import escaped

pytestmark = pytest.mark.slow


def printed(code: str, encoding: str) -> str:
    """What a program prints whose standard output has that encoding."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "ANSI_COLORS_DISABLED": "1"}
    command = [sys.executable, "-c", f"from wasabi import msg\nfrom spacy_elmo.cli.console import *\n{code}"]
    return subprocess.run(command, capture_output=True, check=True, env=environment).stdout.decode(encoding)


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", "ü\\udce9"), ("ascii", "\\xfc\\udce9")])
def test_what_can_not_be_encoded_is_shown(encoding: str, expected: str) -> None:
    told = printed("show_all(); name = 'ü\\udce9'; print(name); msg.good(escaped(name))", encoding).split()
    assert told[0] == told[2] == expected


def test_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "NO_UTF8", False)
    assert escaped("ü東\udce9") == "ü東\\udce9"
    assert escaped("a\x1b[31m\r\x9b\nb") == "a\\x1b[31m\\r\\x9b\nb"
    monkeypatch.setattr(console, "NO_UTF8", True)
    assert escaped("aü東\udce9") == "a\\xfc\\u6771\\udce9"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no full device")
def test_a_full_standard_output_is_given_up() -> None:
    code = (
        "import sys\nfrom spacy_elmo.cli.console import give_up\n"
        "try:\n    print('x', flush=True)\nexcept OSError:\n    give_up()\n"
        "print('y', flush=True)\nsys.exit(7)"
    )
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")  # 120 where the buffer can't be written at the end


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_json_in_an_encoding_without_all_characters(encoding: str) -> None:
    told = printed("show_all(); print_json({'word': 'bank \\U0001f600 \\udce9'})", encoding)
    assert json.loads(told) == {"word": "bank \U0001f600 \udce9"}
    assert ("\U0001f600" in told) == (encoding == "utf-8")
