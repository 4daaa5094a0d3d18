"""An index of a small corpus."""

from pathlib import Path

import pytest
from neighbour_cases import CORPUS

from spacy_elmo import ElmoEmbedder, WordIndex, build_index


@pytest.fixture(scope="package")
def embedder(golden: Path) -> ElmoEmbedder:
    return ElmoEmbedder(golden / "random_a")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join([*CORPUS[:2], "", *CORPUS[2:]]) + "\n", encoding="utf8")
    return path


@pytest.fixture
def index(text: Path, tmp_path: Path, embedder: ElmoEmbedder) -> WordIndex:
    build_index(text, tmp_path / "index", embedder, lang=None)
    return WordIndex(tmp_path / "index", embedder)
