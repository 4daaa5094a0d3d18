"""What a pipe tells about itself, and about a biLM of another language."""

import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from pipelines import GOLDEN, files, pipeline
from spacy.tokens import Doc
from spacy.training.loggers import console_logger

from spacy_elmo import restore_vectors
from spacy_elmo.errors import NotEmbeddedError, OtherLanguageWarning


def test_sizes_and_text() -> None:
    for name, layers, width in ((None, 3, 256), ("random_a", 3, 32)):
        pipe = pipeline(name).get_pipe("elmo")
        assert (pipe.layers, pipe.width) == (layers, width)  # type: ignore[attr-defined]
        assert repr(pipe) == f"<ElmoPipe 'elmo': attr='elmo', layers={layers}, width={width}, frozen=True>"
    nlp = spacy.blank("en")
    missing = nlp.add_pipe("elmo", config={"model": {"options_file": "no.json", "weight_file": "no.hdf5"}})
    assert repr(missing) == "<ElmoPipe 'elmo': attr='elmo', layers and width unknown, frozen=True>"


@pytest.mark.parametrize(("frozen", "columns"), [(True, []), (False, ["LOSS ELMO"])])
def test_the_training_table_shows_no_loss_of_a_frozen_biLM(
    frozen: bool, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    nlp = pipeline(frozen=frozen)
    _, finalize = console_logger()(nlp)
    finalize()
    assert re.findall("LOSS ELMO", capsys.readouterr().out) == columns


@pytest.mark.parametrize(
    ("lang", "language", "warns"),
    [("de", None, True), ("en", None, False), ("xx", None, False), ("de", "de", False), ("en", "de", True)],
)
def test_a_biLM_of_another_language(lang: str, language: str | None, warns: bool, tmp_path: Path) -> None:
    config: dict[str, object] = {}
    if language is not None:
        config = card(tmp_path, f"| language | {language} |")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spacy.blank(lang).add_pipe("elmo", config=config)
    assert [warning.category for warning in caught] == [OtherLanguageWarning] * warns
    if warns:
        assert f"trained on the language {language or 'en'!r}, but the pipeline's is {lang!r}" in str(caught[0].message)


@pytest.mark.parametrize(
    "row", ["| language | not told; words were separated by blanks |", "| language | xx |", "", None]
)
def test_a_language_that_is_not_known(row: str | None, tmp_path: Path) -> None:
    spacy.blank("de").add_pipe("elmo", config=card(tmp_path, row))


def test_a_file_without_a_card() -> None:
    spacy.blank("de").add_pipe("elmo", config=files("random_a"))


def card(folder: Path, row: str | None) -> dict[str, object]:
    """The component's config for a biLM in the folder, with this row in its model card; None: without a card."""
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(GOLDEN / "random_a" / name, folder)
    if row is not None:
        (folder / "README.md").write_text(f"# A biLM\n\n| | |\n|---|---|\n{row}\n", encoding="utf8")
    return {
        "model": {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")},
    }


def test_a_renamed_pipe_is_named_to_those_who_listen() -> None:
    for upstream in ("elmo", "*"):
        nlp = pipeline()
        listener = {"@architectures": "spacy-elmo.Listener.v1", "width": 32, "upstream": upstream}
        mix = {"@layers": "spacy-elmo.ScalarMix.v1"}
        tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": listener, "mix": mix}
        nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
        assert repr(nlp.get_pipe("elmo")).endswith("frozen=True, listening_components=['tagger']>")
        source = next(node for node in nlp.get_pipe("tagger").model.walk() if "upstream" in node.attrs)  # type: ignore[attr-defined]
        doc = nlp.get_pipe("elmo")(nlp.make_doc("The bank"))
        nlp.rename_pipe("elmo", "second")
        if upstream == "*":
            np.testing.assert_array_equal(source.predict([doc])[0], doc._.elmo_layers)
            continue
        with pytest.raises(
            NotEmbeddedError, match="listens to an elmo pipe named 'elmo', which was renamed to 'second'"
        ):
            source.predict([doc])
        nlp.rename_pipe("second", "elmo")
        np.testing.assert_array_equal(source.predict([doc])[0], doc._.elmo_layers)


@pytest.mark.filterwarnings("ignore:.W109.")  # spaCy says that hooks are not written
def test_vectors_of_a_stream_and_of_joined_docs() -> None:
    nlp = pipeline(set_vectors=True)
    docs = [nlp("The bank"), nlp("of a river")]
    read = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    for doc, other in zip(docs, restore_vectors(iter(read)), strict=True):
        np.testing.assert_array_equal(other.vector, doc.vector)
    joined = restore_vectors(Doc.from_docs(docs))
    np.testing.assert_allclose(joined.vector, np.concatenate([doc._.elmo for doc in docs]).mean(0), atol=1e-6)
