import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_elmo.errors import SettingsError
from spacy_elmo.models.bilm import rows_of, to_docs, to_rows
from spacy_elmo.models.span_getters import build_windows

VOCAB = spacy.blank("en").vocab


def test_each_token_comes_from_the_window_where_it_stands_furthest_from_an_edge() -> None:
    doc = Doc(VOCAB, words=[f"w{i}" for i in range(9)])
    rows = rows_of([doc], build_windows(window=6, overlap=4))  # 0-6, 2-8, 4-9
    assert [row.tokens.tolist() for row in rows] == [[0, 1, 2, 3], [4, 5], [6, 7, 8]]
    assert [row.words for row in rows] == [[f"w{i}" for i in range(a, b)] for a, b in [(0, 6), (2, 8), (4, 9)]]
    assert all(row.words[p] == f"w{t}" for row in rows for t, p in zip(row.tokens, row.places))


def test_whitespace_is_not_shown_and_gets_zeros() -> None:
    docs = [Doc(VOCAB, words=["a", "\n", "b"]), Doc(VOCAB, words=[" ", "\t"]), Doc(VOCAB, words=[])]
    rows = rows_of(docs, build_windows())
    assert [(row.doc, row.words) for row in rows] == [(0, ["a", "b"])]
    layers = np.arange(2 * 2 * 3, dtype=np.float32).reshape(2, 2, 3) + 1
    results = to_docs(docs, rows, [layers], 2, 3)
    assert [result.shape for result in results] == [(2, 3, 3), (2, 2, 3), (2, 0, 3)]
    assert (results[0][:, [0, 2]] == layers).all()
    assert not results[0][:, 1].any()
    assert not results[1].any()


def test_layers_that_others_hold_are_copied() -> None:
    docs = [Doc(VOCAB, words=["a", "b"])]
    rows = rows_of(docs, build_windows())
    own, frozen, batch = np.ones((2, 2, 3), "f"), np.ones((2, 2, 3), "f"), np.ones((2, 5, 2, 3), "f")
    frozen.setflags(write=False)
    assert to_docs(docs, rows, [own], 2, 3)[0] is own
    for values in (frozen, batch[:, 1]):
        (result,) = to_docs(docs, rows, [values], 2, 3)
        assert not np.shares_memory(result, values)
        assert result.flags.writeable
        np.testing.assert_array_equal(result, values)


def test_to_rows_is_the_transpose_of_to_docs() -> None:
    rng = np.random.default_rng(0)
    docs = [Doc(VOCAB, words=[*"abcdefg", "\n", *"hij"]), Doc(VOCAB, words=["x"])]
    rows = rows_of(docs, build_windows(window=5, overlap=2))
    row_values = [rng.normal(size=(2, len(row.words), 3)).astype("f") for row in rows]
    doc_values = [rng.normal(size=(2, len(doc), 3)).astype("f") for doc in docs]
    there = sum(float((a * b).sum()) for a, b in zip(to_docs(docs, rows, row_values, 2, 3), doc_values))
    back = sum(float((a * b).sum()) for a, b in zip(row_values, to_rows(rows, doc_values)))
    assert there == pytest.approx(back, rel=1e-5)


def test_tokens_left_out_are_refused() -> None:
    doc = Doc(VOCAB, words=["a", "b", "c"])
    with pytest.raises(SettingsError, match=r"no span for token 1 \('b'\)"):
        rows_of([doc], lambda docs: [[doc[0:1], doc[2:3]] for doc in docs])


def test_spans_of_another_doc_are_refused() -> None:
    doc, other = Doc(VOCAB, words=["a"]), Doc(VOCAB, words=["b"])
    with pytest.raises(SettingsError, match="another doc"):
        rows_of([doc], lambda docs: [[other[:]]])


def test_a_getter_that_forgets_docs_is_refused() -> None:
    with pytest.raises(SettingsError, match="returned 0 lists of spans"):
        rows_of([Doc(VOCAB, words=["a"])], lambda docs: [])


def test_empty_and_overlapping_spans_are_handled() -> None:
    doc = Doc(VOCAB, words=["a", "b"])
    rows = rows_of([doc], lambda docs: [[Span(doc, 0, 0), doc[:], doc[1:2]]])
    assert [row.tokens.tolist() for row in rows] == [[0, 1]]
