"""LitBank's columns become docs: sentences, words, nested mentions and clusters, in the parts of its paper."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.corpora.convert_coreference import DEV, TEST, main, to_doc
from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.coreference.annotations import clusters_of

ROWS = (
    ("Her", "(0)|(1"),
    ("sister", "1)"),
    ("slept", "_"),
    (".", ""),
    None,
    ("She", "(1)"),
    ("and", "-"),
    ("I", "(2)"),
)


def text_of(rows: tuple[tuple[str, str] | None, ...] = ROWS) -> str:
    lines = ["" if row is None else "\t".join(["x", "0", "0", row[0], "_", row[1]]) for row in rows]
    return "\n".join(["#begin document (x); part 0", *lines, "", "#end document", ""])


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_sentences_words_and_clusters(tmp_path: Path) -> None:
    doc = to_doc(written(tmp_path, "1_x.conll", text_of()), spacy.blank("en").vocab)
    assert [sent.text for sent in doc.sents] == ["Her sister slept .", "She and I"]
    found = [[(span.start, span.text) for span in cluster] for cluster in clusters_of(doc)]
    assert found == [[(0, "Her")], [(0, "Her sister"), (4, "She")], [(6, "I")]]
    assert doc.has_unknown_spaces


def test_parts(tmp_path: Path) -> None:
    for number in (DEV[0], TEST[0], 9, 10):
        written(tmp_path, f"{number}_x_brat.conll", text_of((("Anna", "(5)"), (str(number), "_"))))
    main(tmp_path, tmp_path / "corpus")
    vocab = spacy.blank("en").vocab
    found = {
        name: [doc[1].text for doc in DocBin().from_disk(tmp_path / f"corpus/{name}.spacy").get_docs(vocab)]
        for name in ("train", "dev", "test")
    }
    assert found == {"train": ["9", "10"], "dev": [str(DEV[0])], "test": [str(TEST[0])]}


def test_the_parts_of_the_paper_are_apart() -> None:
    assert len({*DEV, *TEST}) == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\t0\t0\n", r"line 1: got 'x\\t0\\t0'. Expected columns"),
        (text_of((("a", "(x)"),)), r"line 2: got '\(x\)'"),
        (text_of((("a", "3)"),)), r"line 2: got '3\)'"),
        (text_of((("a", "(3"),)), "got an open cluster 3"),
    ],
)
def test_damaged_documents(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        to_doc(written(tmp_path, "1_x.conll", text), spacy.blank("en").vocab)


def test_a_name_without_a_number(tmp_path: Path) -> None:
    written(tmp_path, "x.conll", text_of())
    with pytest.raises(CorpusError, match=r"x\.conll: no number"):
        main(tmp_path, tmp_path / "corpus")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no sentences in it"):
        main(tmp_path, tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()
