"""What design holds the package together: imports point one way, names resolve, folders and files stay small."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_elmo"
# what the modules of each folder may import of the package besides their own folder and errors;
# "modules" stands for the files of that folder, "modules/" for its folders too
ARROWS = {
    "errors": "",
    "formats": "formats/weights formats/strict formats/untrusted",
    "formats/weights": "formats formats/untrusted",
    "formats/strict": "",
    "formats/streamed": "",
    "formats/untrusted": "",
    "formats/text": "formats",
    "formats/published": "formats",
    "formats/named": "formats/published",
    "formats/folders": "formats",
    "formats/contents": "formats formats/weights formats/untrusted",
    "kernels": "",
    "bilms": "",
    "modules": "modules/lstm formats/ kernels bilms",
    "modules/lstm": "modules formats/ kernels",
    "modules/softmax": "modules modules/lstm formats/ kernels",
    "inference": "inference/lstm modules/ formats/ kernels",
    "inference/lstm": "inference modules/ formats/ kernels",
    "allennlp": "inference/ modules/ formats/",
    "models": "models/listening inference/ modules/ formats/",
    "models/listening": "models",
    "pipeline": "pipeline/listening models/ modules/ formats/",
    "pipeline/listening": "pipeline models/",
    "tasks": "",
    "tasks/answers": "tasks tasks/shared models/",
    "tasks/shared": "models/",
    "tasks/coreference": "tasks tasks/shared models/",
    "tasks/roles": "tasks tasks/shared models/",
    "tasks/entailment": "tasks tasks/shared models/",
    "corpus": "corpus/writers pipeline/ models/ inference/ modules/ formats/",
    "corpus/writers": "corpus pipeline formats/",
    "analysis": "modules/ formats/",
    "analysis/probing": "analysis corpus formats/",
    "analysis/senses": "analysis corpus formats/",
    "pretraining": "pretraining/model pretraining/text modules/ formats/",
    "pretraining/text": "formats/",
    "pretraining/model": "pretraining/text modules/ formats/",
    "pretraining/settings": "pretraining/model pretraining/text formats/",
    "pretraining/training": "pretraining/settings pretraining/model pretraining/text modules/ formats/",
    "pretraining/run": "pretraining/ modules/ formats/",
    "neighbours": "pretraining/text allennlp models formats/",
    "cli": "cli/ analysis/ neighbours corpus/ pipeline/ pretraining/ allennlp inference/ modules/ formats/",
    "cli/shared": "corpus/ pipeline/ models/ pretraining/ allennlp modules/ formats/",
    "cli/views": "cli/shared corpus/ pipeline/ pretraining/ modules/ formats/",
    "cli/task_configs": "formats/text modules/",
}
NO_TORCH = ("formats", "bilms", "kernels", "pipeline")
# folders of tests that mirror none of the package: what tests share, and folders beside the package
SHARED = ("helpers", "golden")
BESIDE = ("benchmarks", "scripts")


def modules_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name_of(path: Path, package: Path = PACKAGE) -> str:
    """A module's full name; that of a folder for its __init__.py."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, package: Path = PACKAGE) -> set[str]:
    """Full names of all that a file imports, in functions and for types alone too; relative names resolved."""
    names = set()
    folder = path.relative_to(package.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(folder[: len(folder) - node.level + 1]) if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@cache
def names_in(package: Path) -> frozenset[str]:
    return frozenset(name_of(path, package) for path in modules_in(package))


def modules_imported(path: Path, package: Path = PACKAGE) -> set[str]:
    """Names of the package's modules that a file imports itself or something from."""
    known = names_in(package)
    return {name if name in known else name.rpartition(".")[0] for name in imports_of(path, package)} & known


def room_of(module: str) -> str:
    """The folder of a module, as ARROWS names it; "" for the package's own."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return (path if path.is_dir() else path.parent).relative_to(PACKAGE).as_posix().removeprefix(".")


def allowed(room: str) -> set[str]:
    """All folders that the modules of one may import."""
    names = [*ARROWS[room].split(), "errors"]
    below = tuple(name for name in names if name.endswith("/"))
    return {room} | {other for other in ARROWS if other in names or f"{other}/".startswith(below)}


@pytest.mark.parametrize("path", modules_in(PACKAGE), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_one_way(path: Path) -> None:
    room = room_of(name_of(path))
    if not room:
        return
    refused = {name for name in modules_imported(path) if room_of(name) not in allowed(room)}
    assert not refused, f"{path} may not import {refused}: see ARROWS"
    if room.partition("/")[0] in NO_TORCH:
        assert not any(name.split(".")[0] == "torch" for name in imports_of(path)), f"{path} imports torch"


def test_the_arrows_name_every_folder() -> None:
    assert set(ARROWS) == {room_of(name_of(path)) for path in modules_in(PACKAGE)} - {""}
    assert {name.removesuffix("/") for names in ARROWS.values() for name in names.split()} <= set(ARROWS)


def test_the_arrows_have_no_circle() -> None:
    """Except from a folder to the files beside it: the modules themselves are tested below."""
    parents = {room: room.rpartition("/")[0] for room in ARROWS}
    TopologicalSorter({room: allowed(room) - {room, parents[room]} for room in ARROWS}).prepare()


def check_circles(package: Path) -> None:
    """Raises CycleError, with their names, if modules import one another in a circle."""
    names = {path: name_of(path, package) for path in modules_in(package)}
    TopologicalSorter({name: modules_imported(path, package) - {name} for path, name in names.items()}).prepare()


@pytest.mark.parametrize("package", [PACKAGE, *(ROOT / name for name in BESIDE)], ids=lambda path: path.name)
def test_no_module_comes_round_to_itself(package: Path) -> None:
    check_circles(package)


@pytest.mark.parametrize("package", BESIDE)
def test_no_room_beside_the_package_comes_round_to_itself(package: str) -> None:
    """A room is a folder of scripts or of benchmarks."""
    rooms: dict[str, set[str]] = {}
    for path in modules_in(ROOT / package):
        own, *_ = path.relative_to(ROOT / package).parts
        imported = {name.split(".")[1] for name in modules_imported(path, ROOT / package) if "." in name}
        rooms.setdefault(own, set()).update(imported - {own})
    assert any(rooms.values())
    TopologicalSorter(rooms).prepare()


@pytest.mark.parametrize(
    "imported",
    [
        "from .a import A",
        "from . import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..house.a import A",
        "def late():\n    import house.a",
    ],
)
def test_a_circle_is_seen(imported: str, tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    for name, text in (("__init__", "from .a import A"), ("a", "from .b import B"), ("b", "B = 1")):
        (package / f"{name}.py").write_text(text, encoding="utf8")
    check_circles(package)
    (package / "b.py").write_text(imported, encoding="utf8")
    with pytest.raises(CycleError, match=r"house\.a"):
        check_circles(package)


@pytest.mark.parametrize("package", [PACKAGE, *(ROOT / name for name in BESIDE)], ids=lambda path: path.name)
def test_files_stay_small(package: Path) -> None:
    sizes = {path: len(path.read_text(encoding="utf8").splitlines()) for path in modules_in(package)}
    assert not {str(path): size for path, size in sizes.items() if size > 250}
    assert sorted(sizes.values())[len(sizes) // 2] < 100


def folders() -> set[Path]:
    return {path.parent for package in (PACKAGE, *(ROOT / name for name in BESIDE)) for path in modules_in(package)}


def test_folders_stay_small() -> None:
    counts = {str(folder): len(list(folder.glob("*.py"))) - 1 for folder in folders()}
    assert not {folder: count for folder, count in counts.items() if count > 20}


def test_every_folder_says_what_it_is() -> None:
    silent = [folder for folder in folders() if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))]
    assert not silent


def importers_of(room: str) -> set[str]:
    """Names, as docstrings have them, of what imports from a folder or from those in it: packages, and __init__.py."""
    importers = set()
    for path in modules_in(PACKAGE):
        own = room_of(name_of(path))
        below = [name for name in modules_imported(path) if f"{room_of(name)}/".startswith(f"{room}/")]
        if below and not f"{own}/".startswith(f"{room}/"):
            importers.add(own.partition("/")[0] or "the package's own __init__")
    return importers


def test_docstrings_name_those_who_import_the_folder() -> None:
    named = {}
    for room in ARROWS:
        text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf8"))) or ""
        if found := re.search(r"May be imported by ([^.]*)\.", " ".join(text.split())):
            named[room] = set(re.split(", | and ", found[1]))
    assert named["pipeline"]
    assert named == {room: importers_of(room) for room in named}


def test_the_tests_mirror_the_package() -> None:
    tests = {path.parent.relative_to(ROOT / "tests") for path in modules_in(ROOT / "tests")}
    for folder in tests:
        if folder.parts and folder.parts[0] not in SHARED:
            tested = (ROOT if folder.parts[0] in BESIDE else PACKAGE) / folder
            assert tested.is_dir(), f"tests/{folder} mirrors no folder"


def registered() -> list[EntryPoint]:
    return list(distribution("spacy-elmo").entry_points)


@pytest.mark.parametrize("point", registered(), ids=lambda point: f"{point.group}:{point.name}")
def test_registered_names_resolve(point: EntryPoint) -> None:
    assert callable(point.load())


def test_the_contracts_names_are_registered() -> None:
    names = {(point.group, point.name) for point in registered()}
    assert names >= {
        ("spacy_factories", "elmo"),
        ("spacy_architectures", "spacy-elmo.BiLM.v1"),
        ("spacy_span_getters", "spacy-elmo.sentences.v1"),
        ("spacy_span_getters", "spacy-elmo.windows.v1"),
        ("spacy_span_getters", "spacy-elmo.whole_doc.v1"),
        ("spacy_cli", "elmo"),
    }
