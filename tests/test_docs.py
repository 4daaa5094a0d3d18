"""The pages in docs/: their tables agree with the code, their snippets and messages are real, and they build."""

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import spacy
import spacy.cli  # complete before our commands join it
from commands import run
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.training import Example

from spacy_elmo import Elmo, ElmoEmbedder, batch_to_ids, bilms
from spacy_elmo.cli import COMMANDS
from spacy_elmo.errors import ChangedBiLMWarning, ElmoError
from spacy_elmo.formats import read_options, read_weights, write_weights
from spacy_elmo.pipeline.attributes import READERS
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, to_config
from spacy_elmo.pretraining.language_model import LanguageModel

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GOLDEN = Path(__file__).parent / "golden" / "random_a"


def table(heading: str) -> list[list[str]]:
    """Cells of the first table under a heading of the reference or of the commands, without its head."""
    pages = "".join((DOCS / name).read_text(encoding="utf8") for name in ("reference.md", "commands.md"))
    text = pages.split(f"# {heading}\n", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines
    return [[cell.strip().strip("`") for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines()[2:]]


def test_attributes() -> None:
    names = [f"{owner}._.elmo{suffix}" for owner in ("token", "span", "doc") for suffix in READERS]
    assert [row[0] for row in table("Attributes")] == names
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("Stick to it")
    sizes = {"layers": 3, "tokens": 3, "width": 512}
    for name, shape, _ in table("Attributes"):
        part = {"doc": doc, "span": doc[:], "token": doc[0]}[name.split(".")[0]]
        assert part._.get(name.split(".")[-1]).shape == tuple(sizes[size] for size in re.findall(r"\w+", shape))


def test_settings() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    defaults = dict(nlp.get_pipe_config("elmo"))
    del defaults["factory"]
    model = dict(defaults.pop("model"))
    rows = table("Settings of the component")
    assert rows[0][:2] == ["model", model.pop("@architectures")]
    assert {row[0]: json.loads(row[1]) for row in rows[1:]} == defaults
    getter = dict(model.pop("get_spans"))
    given = {row[0]: row[1] for row in table("Settings of the model")}
    assert given.pop("get_spans") == getter.pop("@span_getters")
    assert {name: json.loads(value) for name, value in given.items()} == model
    assert dict(re.findall(r"(\w+)` (\d+)", table("What is read as one sentence")[0][1])) == {
        name: str(value) for name, value in getter.items()
    }


def test_settings_of_pretraining() -> None:
    config = to_config(PretrainConfig(PathSettings("text.txt"), read_options(GOLDEN / "options.json")))
    del config["bilm"]
    del config["paths"]["train"]  # it has no default
    rows = {row[0]: row[1] for row in table("Settings of pretraining")}
    assert rows.pop("paths.train") == "required"
    assert {key: json.loads(value) for key, value in rows.items()} == dict(flat(config))


def flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All settings by their full names."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def test_registered_names_and_commands() -> None:
    points = {(point.group, point.name) for point in distribution("spacy-elmo").entry_points}
    assert {(row[0], row[1]) for row in table("Registered names")} == points
    assert sorted(row[0] for row in table("Commands")) == sorted(COMMANDS)


def code(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files that the pages speak of."""
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(GOLDEN / name, tmp_path)
    for source, name in zip(bilms.paths("en_core"), ("en_core.json", "en_core_weights.hdf5")):
        shutil.copy(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "snippet"),
    [
        pytest.param(page, snippet, marks=[pytest.mark.slow] * (page in ("tasks.md", "training.md")))
        for page in ("coming_from.md", "corpora.md", "neighbours.md", "performance.md", "tasks.md", "training.md")
        for snippet in code(page)
    ],
)
def test_snippets_run(page: str, snippet: str, folder: Path) -> None:
    exec(compile(snippet, page, "exec"), {})


def test_the_published_softmax(folder: Path) -> None:
    """Words in the order that bilm-tf allows: each keeps its row, and the line without a row is left out."""
    words, rng = ["</S>", "<S>", "<UNK>", "the", "bank"], np.random.default_rng(0)
    weight, bias = rng.standard_normal((5, 16)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    with h5py.File("elmo_2x4096_512_2048cnn_2xhighway_softmax_weights.hdf5", "w") as file:
        file["softmax/W"], file["softmax/b"] = weight, bias
    Path("vocab-2016-09-10.txt").write_text("\n".join([*words[:3], "!!!MAXTERMID", *words[3:], ""]), encoding="utf8")
    (snippet,) = code("pretraining.md")
    exec(compile(snippet, "pretraining.md", "exec"), {})
    model = LanguageModel.load(folder)
    assert model.vocabulary.words == ["<S>", "</S>", "<UNK>", "the", "bank"]
    for word, row in zip(model.vocabulary.words, model.softmax.weight.tolist()):
        assert row == weight[words.index(word)].tolist()
    assert model.softmax.bias.tolist() == bias[[1, 0, 2, 3, 4]].tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of other libraries
@pytest.mark.parametrize("snippet", code("with_other_libraries.md"), ids=lambda snippet: snippet.split()[1])
def test_snippets_with_other_libraries_run(snippet: str, folder: Path) -> None:
    for name in re.findall(r"^(?:from|import) (\w+)", snippet, re.MULTILINE):
        pytest.importorskip(name, reason=f"{name} is not installed")
    exec(compile(snippet, "with_other_libraries.md", "exec"), {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # `spacy package` leaves its files to the garbage collector
def test_your_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's commands and snippet in order, as they stand but for the options that make the trainings short."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    rng = np.random.default_rng(0)
    words = {"Gallia": "NOUN", "omnis": "ADJ", "divisa": "ADJ", "est": "VERB", "in": "ADP", "partes": "NOUN"}
    sentences = [[*rng.choice(list(words), 5), "."] for _ in range(400)]
    Path("texts/gallia.txt").write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf8")
    for part, chosen in (("train", sentences[:30]), ("dev", sentences[30:40]), ("test", sentences[40:50])):
        with open(f"{part}.conllu", "w", encoding="utf8") as file:
            for sentence in chosen:
                for n, word in enumerate(sentence, 1):
                    head, label = (2, "nmod") if n != 2 else (0, "root")
                    pos = words.get(word, "PUNCT")
                    file.write(f"{n}\t{word}\t{word.lower()}\t{pos}\t{pos}\tCase=Nom\t{head}\t{label}\t_\t_\n")
                file.write("\n")
    short = {
        "init-pretrain-config": ("--size", "tiny"),
        "compare": ("--training.max_steps", "4", "--training.eval_frequency", "2"),
        "parser": ("--build", "none"),  # of spaCy's own package
    }
    page = (DOCS / "your_language.md").read_text(encoding="utf8")
    told: dict[str, str] = {}
    variables: dict[str, Any] = {}

    def follow(line: str) -> None:
        program, *arguments = shlex.split(line, comments=True)
        if program == "mkdir":
            Path(arguments[0]).mkdir(exist_ok=True)
        elif program == "pip":
            folder = arguments[-1]
            site = ["--no-deps", "--no-build-isolation", "--no-index", "--target", "site"]
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", *site, folder], check=True)
            monkeypatch.syspath_prepend(str(tmp_path / "site"))
            importlib.invalidate_caches()
        else:
            command = arguments[3]
            told[command] = run(*arguments[2:], *short.get(command, ()))

    for kind, block in re.findall(r"```(bash|python)\n(.*?)```", page, re.DOTALL):
        if kind == "python":
            exec(compile(block, "your_language.md", "exec"), variables)
        else:
            for line in block.splitlines():
                follow(line)
    assert "x alone [x; ELMo] what ELMo changes" in told["compare"]
    assert "language la" in run("elmo", "info", "la_mine")
    trained = spacy.load("out/elmo-0/model-best", config={"components.elmo.store": "layers"})
    doc = trained(variables["doc"].text)
    expected = ElmoEmbedder("la_mine").embed_sentence([token.text for token in doc])
    np.testing.assert_allclose(doc._.elmo_layers, expected, atol=1e-5)


def add_tagger(nlp: Language, factory: str = "tagger", *, width: int | None = None) -> None:
    """Add a component that listens, ELMo alone its input."""
    source = {"@architectures": "spacy-elmo.Listener.v1", "width": width, "upstream": "elmo"}
    block = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": source, "mix": {"@layers": "spacy-elmo.ScalarMix.v1"}}
    nlp.add_pipe(factory, config={"model": {"tok2vec": block}})


def train(nlp: Language, frozen_components: Sequence[str] = ()) -> None:
    """Initialise, but for what is frozen, and update twice: as `spacy train` does."""
    doc = nlp.make_doc("A bank .")
    gold = [Example.from_dict(doc, {"tags": ["D", "N", "."], "entities": [(2, 6, "X")]})]
    if "entity_linker" in nlp.pipe_names:
        linker = nlp.get_pipe("entity_linker")
        base = InMemoryLookupKB(nlp.vocab, entity_vector_length=64)
        base.add_entity("Q1", 1.0, [0.0] * 64)
        linker.set_kb(lambda vocab: base)
    with nlp.select_pipes(disable=list(frozen_components)):
        nlp.initialize(lambda: gold)
    for _ in range(2):
        nlp.update(gold, exclude=frozen_components)


PAGE_OF_MISTAKES = (DOCS / "mistakes.md").read_text(encoding="utf8")
MISTAKES = re.findall(r"^\| (.*?): `([^`]*)`[^`|]*\| `([^`]*)` \|$", PAGE_OF_MISTAKES, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(("snippet", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistakes_are_told_as_the_page_says(
    snippet: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    arrays = dict(read_weights("en_core_weights.hdf5", read_options("en_core.json")))
    arrays["char_cnn.embedding.weight"] = 2 * arrays["char_cnn.embedding.weight"]
    write_weights("other.hdf5", read_options("en_core.json"), arrays)
    names: dict[str, Any] = {"spacy": spacy, "nlp": nlp, "Path": Path, "Elmo": Elmo, "ElmoEmbedder": ElmoEmbedder}
    names |= {"add_tagger": add_tagger, "train": train}
    with pytest.raises((ElmoError, ChangedBiLMWarning)) as caught:
        exec(compile(snippet, "mistakes.md", "exec"), names | {"batch_to_ids": batch_to_ids})
    assert str(caught.value).replace(f"{folder.resolve()}/", "").split() == message.split()


def test_a_component_that_does_not_listen_is_trained_without_a_message() -> None:
    """As the page says of mistakes that have none: warnings are errors here."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.add_pipe("tagger")
    train(nlp)
    assert not nlp.get_pipe("elmo").listeners  # type: ignore[attr-defined]


def test_there_are_at_least_ten_mistakes() -> None:
    assert len(MISTAKES) == len(re.findall(r"^\| (?!---|what was wrong)", PAGE_OF_MISTAKES, re.MULTILINE)) >= 10


NAMING = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "spacy_elmo" / "kernels").glob("*/*.[chi]*")]


@pytest.mark.parametrize("file", NAMING, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_that_pages_and_c_comments_name_exist(file: Path) -> None:
    """They are named from the top folder or from the package. Files of other projects are in other folders."""
    for name in re.findall(r"[\w./-]+/[\w.-]+\.(?:py|[ch]|inc|cfg|tsv|md)\b", file.read_text(encoding="utf8")):
        is_ours = any((root / name.split("/")[0]).is_dir() for root in (ROOT, ROOT / "spacy_elmo"))
        if is_ours and "NAME" not in name and not name.startswith("."):
            assert any((root / name).is_file() for root in (ROOT, ROOT / "spacy_elmo", file.parent)), name


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf8")
    assert result.returncode == 0, result.stderr
    assert "cache_mb" in (tmp_path / "searchindex.js").read_text(encoding="utf8")  # the search works without a network
    page = (tmp_path / "reference.html").read_text(encoding="utf8")
    reference = (DOCS / "reference.md").read_text(encoding="utf8")
    for name in re.findall(r"auto(?:class|function):: (\S+)", reference):
        assert f'id="{name}"' in page
    # arguments are told in a list, one by one
    assert re.search(r"<li><p><strong>options_file, weight_file</strong>: paths of the official files", page)


def test_the_tutorial_runs(folder: Path) -> None:
    exec(compile("\n".join(code("tutorial.md")), "tutorial.md", "exec"), {})


def test_the_notebook_is_the_tutorial() -> None:
    cells = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf8"))["cells"]
    page = (DOCS / "tutorial.md").read_text(encoding="utf8")
    assert ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"] == [
        snippet.rstrip("\n") for snippet in code("tutorial.md")
    ]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            assert "".join(cell["source"]) in page
