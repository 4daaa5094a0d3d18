"""Very long docs, windows, whitespace, words longer than the biLM reads."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.errors import SettingsError, TruncatedWordsWarning
from spacy_elmo.inference import Engine

WHOLE = {"get_spans": {"@span_getters": "spacy-elmo.whole_doc.v1"}}


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Lengths of the sentences that each run of the biLM got."""
    seen: list[list[int]] = []
    run = Engine.run
    monkeypatch.setattr(Engine, "run", lambda self, s, *a: (seen.append([len(w) for w in s]), run(self, s, *a))[1])
    return seen


@pytest.mark.slow
def test_a_million_characters_without_a_sentence_end(batches: list[list[int]]) -> None:
    nlp = pipeline()
    text = ("we sat on the bank of the river and looked at the water " * 20_000)[:1_000_000]
    doc = nlp(text)
    assert len(doc.text) == 1_000_000
    assert max(sum(batch) for batch in batches) <= 8192
    assert {length for batch in batches for length in batch[:-1]} == {250}
    layers = doc._.elmo_layers
    assert layers.shape == (3, len(doc), 32)
    for start in (0, 200, 100_000):  # each token's vector comes from the window where it stands furthest from an edge
        window = nlp(Doc(nlp.vocab, words=[token.text for token in doc[start : start + 250]]))
        np.testing.assert_allclose(layers[:, start + 25 : start + 225], window._.elmo_layers[:, 25:225], atol=1e-5)


def test_windows_as_configured() -> None:
    getter = {"@span_getters": "spacy-elmo.windows.v1", "window": 10, "overlap": 4}
    nlp, whole = pipeline(model={"get_spans": getter}), pipeline(model=WHOLE)
    words = [f"w{k}" for k in range(23)]
    layers = nlp(Doc(nlp.vocab, words=words))._.elmo_layers
    # windows 0-10, 6-16, 12-22 and 18-23; tokens 8 and 9 stand further from an edge in the second one, and so on
    for start, first, last in ((0, 0, 8), (6, 8, 14), (12, 14, 20), (18, 20, 23)):
        alone = whole(Doc(whole.vocab, words=words[start : start + 10]))._.elmo_layers
        expected = alone[:, first - start : last - start]
        np.testing.assert_allclose(layers[:, first:last], expected, rtol=0, atol=1e-5)


@spacy.registry.misc("odd_spans.v1")
def odd_spans(kind: str) -> object:
    """Span getters of people's own."""
    chosen = {
        "overlapping": lambda doc: [doc[0:4], doc[2:6], doc[0:6]],
        "gap": lambda doc: [doc[0:2], doc[3:6]],
        "empty": lambda doc: [doc[0:0], doc[0:6], doc[6:6]],
        "none": lambda doc: [],
        "other doc": lambda doc: [Doc(doc.vocab, words=["x"] * 6)[:]],
        "no spans": lambda doc: ["a"],
        "no list": lambda doc: 3,
        "reversed": lambda doc: [doc[3:6], doc[0:3]],
        "nothing": lambda doc: None,
    }[kind]
    return lambda docs: None if kind == "nothing" else [chosen(doc) for doc in docs]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlapping", "empty", "reversed"])
def test_odd_spans_that_cover_the_doc(kind: str) -> None:
    nlp, whole = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": kind}}), pipeline(model=WHOLE)
    words = list("abcdef")
    got = nlp(Doc(nlp.vocab, words=words))._.elmo_layers
    parts = {"overlapping": [(0, 6)], "empty": [(0, 6)], "reversed": [(0, 3), (3, 6)]}[kind]
    expected = [whole(Doc(whole.vocab, words=words[a:b]))._.elmo_layers for a, b in parts]
    chosen = slice(2, 4) if kind == "overlapping" else slice(None)
    np.testing.assert_allclose(got[:, chosen], np.concatenate(expected, 1)[:, chosen], rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("gap", "no span for token 2 \\('c'\\)"),
        ("none", "no span for token 0"),
        ("other doc", "of another doc"),
        ("no spans", "Expected a list of spans"),
        ("no list", "returned 3 for a doc"),
        ("nothing", "returned None lists of spans"),
    ],
)
@pytest.mark.parametrize("stateful", [False, True])
def test_odd_spans_that_are_refused(kind: str, message: str, stateful: bool) -> None:
    nlp = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": kind}, "stateful": stateful})
    with pytest.raises(SettingsError, match=message):
        nlp("a b c d e f")


def embedded(nlp: Language, words: list[str]) -> np.ndarray:
    return np.asarray(nlp(Doc(nlp.vocab, words=words))._.elmo_layers)


def test_whitespace_is_not_shown_to_the_biLM() -> None:
    nlp = pipeline(None)
    words = [" ", "We", "\n\n", "sat", "\t", "\u3000", "down", ".", " \n"]
    layers = embedded(nlp, words)
    shown = [i for i, word in enumerate(words) if word.strip()]
    np.testing.assert_allclose(layers[:, shown], embedded(nlp, ["We", "sat", "down", "."]), rtol=0, atol=1e-5)
    hidden = [i for i in range(len(words)) if i not in shown]
    assert not layers[:, hidden].any()


WORDS = [f"w{k % 300}" for k in range(990)]
LONG = {
    "default, no sentences": (WORDS[:245], {}, None),
    "default, windows": (WORDS[:700], {}, None),
    "one sentence just short enough": (WORDS, {}, [0]),
    "small windows": (WORDS[:100], {"@span_getters": "spacy-elmo.windows.v1", "window": 10, "overlap": 4}, None),
    "one long sentence": (
        WORDS[:60],
        {"@span_getters": "spacy-elmo.sentences.v1", "window": 10, "overlap": 4, "longest_sentence": 20},
        [0, 5],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("case", LONG)
def test_whitespace_does_not_move_windows(case: str, stateful: bool) -> None:
    words, getter, starts = LONG[case]
    nlp = pipeline(model={"stateful": stateful} | ({"get_spans": getter} if getter else {}))
    rng = np.random.default_rng(0)
    spaced: list[str] = ["\n"]
    sent_starts = [starts is not None]
    for i, word in enumerate(words):
        spaced.append(word)
        sent_starts.append(starts is not None and i in starts and i > 0)
        blanks = int(rng.choice([0, 0, 0, 1, 12]))
        spaced += ["\n"] * blanks
        sent_starts += [False] * blanks
    plain = Doc(nlp.vocab, words=words, sent_starts=starts and [i in starts for i in range(len(words))])
    doc = Doc(nlp.vocab, words=spaced, sent_starts=sent_starts if starts else None)
    read = [i for i, word in enumerate(spaced) if word.strip()]
    layers = nlp(doc)._.elmo_layers
    np.testing.assert_allclose(layers[:, read], nlp(plain)._.elmo_layers, rtol=0, atol=1e-5)
    assert not np.delete(layers, read, axis=1).any()


def test_a_getter_may_leave_out_whitespace() -> None:
    nlp = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": "gap"}})
    doc = nlp(Doc(nlp.vocab, words=["a", "b", "\n", "c", "d", "e"]))
    assert doc._.elmo_layers[:, [0, 1, 3, 4, 5]].any(2).all()
    assert not doc._.elmo_layers[:, 2].any()


def test_words_longer_than_the_biLM_reads_are_counted_and_said_once() -> None:
    nlp = pipeline(None)
    elmo = nlp.get_pipe("elmo")
    list(nlp.pipe(["x" * 48, "no long words"]))
    assert elmo.n_truncated == 0
    with pytest.warns(TruncatedWordsWarning, match=r"has 49 bytes in UTF-8.*first 48.*n_truncated") as caught:
        docs = list(nlp.pipe(["x" * 49 + " " + "x" * 48 + "y", "\u6771" * 17]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "list(nlp.pipe(" in Path(__file__).read_text(encoding="utf8").splitlines()[caught[0].lineno - 1]
    assert elmo.n_truncated == 3
    np.testing.assert_allclose(docs[0]._.elmo_layers[0, 0], docs[0]._.elmo_layers[0, 1], atol=1e-6)
    nlp("x" * 49)  # no second warning
    assert elmo.n_truncated == 4
    for _ in range(2):  # another pipe says it too, in its own name
        other = pipeline()
        with pytest.warns(TruncatedWordsWarning):
            other("x" * 49)


def test_truncated_words_in_overlapping_windows_count_once() -> None:
    nlp = pipeline(model={"get_spans": {"@span_getters": "spacy-elmo.windows.v1", "window": 4, "overlap": 3}})
    with pytest.warns(TruncatedWordsWarning):
        nlp("a b c " + "x" * 60 + " d e f")
    assert nlp.get_pipe("elmo").n_truncated == 1


def test_the_warning_names_the_pipe_and_counts_docs_once_that_were_tried_again() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", name="mine", config={"model": {"get_spans": {"@misc": "refuses_bad.v1"}}})
    nlp.set_error_handler(lambda *_: None)
    with pytest.warns(TruncatedWordsWarning, match=r"nlp\.get_pipe\('mine'\)\.n_truncated"):
        docs = list(nlp.pipe(["x" * 60, "bad", "y" * 60]))
    assert len(docs) == 2
    assert nlp.get_pipe("mine").n_truncated == 2


def test_where_the_warning_is_an_error_it_stays_one() -> None:
    nlp = pipeline()
    for use in (lambda: nlp("x" * 60), lambda: list(nlp.pipe(["a", "x" * 60]))):
        with pytest.raises(TruncatedWordsWarning):
            use()


def test_stateful_reads_spans_in_the_docs_order() -> None:
    getter = {"@misc": "odd_spans.v1", "kind": "reversed"}
    nlp = pipeline(model={"get_spans": getter, "stateful": True})
    words = list("abcdef")
    doc = Doc(nlp.vocab, words=words, sent_starts=[True, False, False, True, False, False])
    plain = pipeline(model={"stateful": True})
    expected = plain(Doc(plain.vocab, words=words, sent_starts=[True, False, False, True, False, False]))
    np.testing.assert_allclose(nlp(doc)._.elmo_layers, expected._.elmo_layers, rtol=0, atol=1e-5)
