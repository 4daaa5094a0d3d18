"""The README's Python snippets run, in order, as one program, after the command that the text before them names."""

import re
from pathlib import Path

import pytest
import spacy
from typer.testing import CliRunner

from spacy_elmo.cli import app

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf8"), re.DOTALL)
    assert snippets
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["pack", "en_core", "core"])  # as the text before the snippets says
    assert result.exit_code == 0, result.output
    variables: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), variables)
    assert spacy.blank("en").add_pipe("elmo", config={"model": {"bilm": "core"}})  # the folder's short name


def test_the_files_of_snippets_are_made_before_them() -> None:
    """A reader who goes from top to bottom has them."""
    text = README.read_text(encoding="utf8")
    assert 0 < text.index("python -m spacy elmo pack en_core core") < text.index("core/options.json")
    assert '{"model": {"bilm": "core"}}' in text
    assert len(text.splitlines()) <= 150
