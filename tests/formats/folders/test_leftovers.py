"""What killed runs left is deleted, and nothing else."""

from pathlib import Path

from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats.atomic import remove_leftovers

DIGITS = "0123456789abcdef" * 2
LEFT = [f".{DIGITS}.tmp", f".corpus.{DIGITS}.tmp", f".corpus.{DIGITS}.old"]
MINE = [".lock", ".notes.tmp", f"{DIGITS}.tmp", f".{DIGITS}.txt", f".{DIGITS}0.tmp", f".{DIGITS.upper()}.tmp", "a.old"]


def test_only_what_is_half_written_goes(tmp_path: Path) -> None:
    inside = tmp_path / "model-last"
    for folder in (tmp_path, inside):
        folder.mkdir(exist_ok=True)
        for name in [*LEFT, *MINE]:
            (folder / name).write_text("text")
    deeper = inside / "deeper"
    for folder in (tmp_path / f".{DIGITS[::-1]}.tmp", deeper):
        folder.mkdir()
        (folder / LEFT[0]).write_text("text")
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("text")
    (tmp_path / f".link.{DIGITS}.tmp").symlink_to(elsewhere)
    remove_leftovers(tmp_path, CheckpointError)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*MINE, "model-last"])
    assert sorted(path.name for path in inside.iterdir()) == sorted([*MINE, "deeper"])
    assert [path.name for path in deeper.iterdir()] == [LEFT[0]]
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]
