"""What design holds the package together: imports point one way, and registered names resolve."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_elmo"
# what the modules of each room may import of the package, besides their own room, errors and locks
ARROWS = {
    "errors": "",
    "locks": "",
    "formats": "",
    "kernels": "",
    "text": "formats",
    "bilms": "",
    "modules": "formats kernels bilms",
    "inference": "modules formats kernels",
    "models": "inference modules formats",
    "pipeline": "models inference modules formats",
    "tasks": "models inference",
    "allennlp": "inference modules text formats",
    "corpus": "pipeline models inference modules text formats",
    "pretraining": "inference modules text formats kernels",
    "analysis": "corpus pretraining allennlp models inference modules text formats",
    "cli": "analysis corpus pipeline pretraining allennlp inference modules text formats kernels",
}
NO_TORCH = ("text", "formats", "bilms", "kernels", "pipeline")


def modules(package: Path) -> dict[str, Path]:
    """The files of a package by their modules' names."""
    return {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(package.rglob("*.py"))
    }


@cache
def imports_of(path: Path, package: Path) -> set[str]:
    """Full names of all that a file imports, in functions too; relative names resolved."""
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
def graph(package: Path) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports, or imports something from."""
    known = modules(package)
    found = {}
    for name, path in known.items():
        imported = imports_of(path, package)
        found[name] = {other if other in known else other.rpartition(".")[0] for other in imported} & set(known) - {
            name
        }
    return found


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_arrows_point_one_way() -> None:
    edges = graph(PACKAGE)
    assert {room_of(module) for module in edges} == {"", *ARROWS}
    for module, imported in edges.items():
        room = room_of(module)
        allowed = {room, "errors", "locks", *ARROWS.get(room, " ".join(ARROWS)).split()}
        assert {room_of(other) for other in imported} - {""} <= allowed, f"{module} imports {imported}: see ARROWS"
        if room in NO_TORCH:
            names = imports_of(modules(PACKAGE)[module], PACKAGE)
            assert not any(name.split(".")[0] == "torch" for name in names), f"{module} imports torch"


@pytest.mark.parametrize("package", ["spacy_elmo", "benchmarks", "scripts"])
def test_no_module_comes_round_to_itself(package: str) -> None:
    edges = graph(ROOT / package)
    assert any(edges.values())
    TopologicalSorter(edges).prepare()


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
