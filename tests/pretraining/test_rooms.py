"""The rooms of pretraining call each other one way only."""

import ast
from pathlib import Path

import pytest

import spacy_elmo.pretraining

ROOT = Path(spacy_elmo.pretraining.__file__).parent
# what each room may import of the others, types included
BELOW = {
    "text": set(),
    "model": {"text"},
    "score_batches.py": set(),
    "scoring.py": {"text", "model", "score_batches.py"},
    "settings": {"text", "model"},
    "training": {"text", "model", "settings"},
    "run": {"text", "model", "settings", "training", "scoring.py"},
    "__init__.py": set(),
}
FILES = sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Modules of pretraining that a file imports, by their paths from its folder."""
    names = set()
    place = ("pretraining", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(place):
            base = [*place[: len(place) - node.level + 1], *(node.module or "").split(".")]
            names |= {"/".join([*base, alias.name]) for alias in node.names}
    return {name.removeprefix("pretraining/") for name in names}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_one_way(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    others = {name.split("/")[0] for name in imported(path)}
    others = {other if (ROOT / other).is_dir() else f"{other}.py" for other in others} - {room}
    assert others <= BELOW[room]


def test_each_room_sees_its_own_sections_alone() -> None:
    """run/folder.py records all settings, and compares them; run/loop.py hands each part its own section."""
    whole = {str(p.relative_to(ROOT)) for p in FILES if "settings/config/PretrainConfig" in imported(p)}
    assert {name for name in whole if not name.startswith("settings/")} == {"run/loop.py", "run/folder.py"}
