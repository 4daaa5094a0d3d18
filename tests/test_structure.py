"""What holds the package together: imports point one way, the core stands alone, registered names resolve."""

import ast
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import numpy as np
import pytest
import spacy

import spacy_elmo

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
    "cli": "analysis corpus pipeline pretraining allennlp models inference modules text formats kernels",
}
CORE = ("errors", "locks", "formats", "kernels", "bilms", "modules", "inference", "models", "pipeline")
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


ALONE = """
import json, sys
sys.meta_path = [finder for finder in sys.meta_path if "__editable__" not in finder.__module__]  # finds the other rooms
import spacy, spacy_elmo
from spacy.training import Example

nlp = spacy.blank("en")
nlp.add_pipe("elmo")
text, tags = "Stick to the river bank .", ["V", "P", "D", "N", "N", "."]
before = nlp(text)._.elmo
listener = {"@architectures": "spacy-elmo.Listener.v1", "width": None, "upstream": "elmo"}
embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 32, "attrs": ["NORM"], "rows": [500]}
encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 32, "window_size": 1, "maxout_pieces": 3}
mixed = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": listener, "mix": {"@layers": "spacy-elmo.ScalarMix.v1"}}
both = {"@architectures": "spacy-elmo.ElmoTok2Vec.v1", "embed": embed | {"include_static_vectors": False}}
both |= {"elmo": mixed, "encode": encode | {"depth": 1}}
nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": both}})
examples = [Example.from_dict(nlp.make_doc(text), {"tags": tags})]
optimizer = nlp.initialize(lambda: examples)
losses = [nlp.update(examples, sgd=optimizer)["tagger"] for _ in range(10)]
nlp.to_disk("saved")
trained, again = nlp(text), spacy.load("saved")(text)
same = [bool((doc._.elmo == before).all()) for doc in (trained, again)]
found = [[token.tag_ for token in doc] for doc in (trained, again)]
loaded = sorted(name for name in sys.modules if name.startswith("spacy_elmo."))
print(json.dumps([spacy_elmo.__file__, before.tolist(), losses, same, found == [tags, tags], loaded]))
"""


@pytest.mark.slow
def test_the_core_stands_alone(tmp_path: Path) -> None:
    """Without the other rooms it gives the same vectors, trains a tagger on [x; ELMo], and is saved and loaded."""
    copy = tmp_path / "spacy_elmo"
    shutil.copytree(PACKAGE, copy, ignore=lambda folder, names: {*names} & {*ARROWS} - {*CORE})
    assert not (copy / "cli").exists()
    metadata = tmp_path / f"spacy_elmo-{spacy_elmo.__version__}.dist-info"  # comes before that of the whole package
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: spacy-elmo\n", encoding="utf8")
    points = [
        f"[{point.group}]\n{point.name} = {point.value}\n" for point in registered() if room_of(point.value) in CORE
    ]
    (metadata / "entry_points.txt").write_text("".join(points), encoding="utf8")
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file, vectors, losses, same, found, loaded = json.loads(done.stdout)
    assert Path(file).parent == copy
    assert {room_of(name) for name in loaded} <= {*CORE}
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    np.testing.assert_allclose(vectors, nlp("Stick to the river bank .")._.elmo, rtol=0, atol=1e-6)
    assert losses[-1] < losses[0]
    assert same == [True, True]
    assert found


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
