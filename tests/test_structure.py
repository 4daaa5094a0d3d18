"""What design holds the package together: imports point one way, registered names resolve, files stay small."""

import ast
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "spacy_elmo"
# what each part may import of the package; everything may import errors
ARROWS = {
    "formats": set(),
    "kernels": set(),
    "bilms": set(),
    "errors": set(),
    "modules": {"formats", "kernels", "bilms"},
    "inference": {"modules", "formats", "kernels"},
    "allennlp": {"inference", "modules", "formats"},
    "models": {"inference", "modules", "formats"},
    "pipeline": {"models"},
    "pretraining": {"modules", "formats"},
    "cli": {"pipeline", "pretraining", "allennlp", "inference", "modules", "formats"},
}
NO_TORCH = ("formats", "bilms", "kernels", "pipeline")


def imports_of(path: Path) -> set[str]:
    """Full names of all modules that a file imports, relative ones resolved."""
    names = set()
    package = ("spacy_elmo", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0]
    if part.endswith(".py"):
        return
    imported = {name.split(".")[1] for name in imports_of(path) if name.startswith("spacy_elmo.")}
    assert imported <= ARROWS[part] | {part, "errors"}, f"{path} may not import all of {imported}"
    if part in NO_TORCH:
        assert not any(name.split(".")[0] == "torch" for name in imports_of(path)), f"{path} imports torch"


def test_the_arrows_have_no_circle() -> None:
    below: dict[str, set[str]] = {}
    for _ in ARROWS:
        for part, targets in ARROWS.items():
            below[part] = set(targets).union(*(below.get(target, set()) for target in targets))
    assert not any(part in targets for part, targets in below.items())


def test_files_stay_small() -> None:
    sizes = [len(path.read_text(encoding="utf8").splitlines()) for path in PACKAGE.rglob("*.py")]
    assert max(sizes) <= 250
    assert sorted(sizes)[len(sizes) // 2] < 100


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
