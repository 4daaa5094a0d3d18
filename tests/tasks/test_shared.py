"""What the four tasks share: docs of several texts, extensions, given spans, and torch networks in Thinc models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
import torch
from role_cases import GIVEN, doc_with
from spacy.tokens import Doc, DocBin, Span
from spacy.tokens.underscore import Underscore
from spacy.training import Corpus, Example
from thinc.api import Adam, ArgsKwargs
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spacy_elmo.errors import AnnotationError, SettingsError, WeightsError
from spacy_elmo.tasks.shared import (
    BiLSTM,
    TorchShim,
    batches_of,
    build_given_spans,
    make_doc,
    texts_of,
)

NLP = spacy.blank("xx")
KEYS = ("question", "context")


@pytest.mark.parametrize(
    ("factory", "depth", "settings"),
    [
        ("answers", 1, {"n_best": 3, "longest_answer": 17}),
        ("entailment", 1, {}),
        ("semantic_roles", 4, {"find_predicates": True, "threshold": 0.5, "reach": 100}),
        ("coreference", 4, {"prefix": "coref_clusters", "singletons": True}),
    ],
)
def test_defaults(factory: str, depth: int, settings: dict[str, Any]) -> None:
    """Pipelines that name only a factory, and the tables of docs/tasks.md, rely on them."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory)
    config = nlp.get_pipe_config(factory)
    tok2vec = config["model"]["tok2vec"]
    assert (tok2vec["embed"]["width"], tok2vec["encode"]["depth"]) == (96, depth)
    assert {name: config[name] for name in config.keys() - {"factory", "model", "scorer"}} == settings


# docs of several texts


def texts(doc: Doc) -> list[str] | None:
    parts = texts_of(doc, KEYS)
    return None if parts is None else [part.text.strip() for part in parts]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("Who?", "A man. He slept."), ["Who?", "A man. He slept."]),
        (("Who\nis it? ", " A man.\n\nHe slept."), ["Who is it?", "A man.\n\nHe slept."]),
        (("a", "b"), ["a", "b"]),
        (("", "b"), None),
        (("a", " \n"), None),
        (("", ""), None),
    ],
)
def test_texts_come_back(given: tuple[str, str], expected: list[str] | None) -> None:
    doc = make_doc(NLP, given, KEYS)
    assert texts(doc) == expected
    assert texts(doc.copy()) == texts(Doc(NLP.vocab).from_bytes(doc.to_bytes())) == expected
    spans = ["".join(span.text for span in doc.spans[key]).strip() for key in KEYS]
    assert spans == [text.replace("\n", " ").strip() if i == 0 else text.strip() for i, text in enumerate(given)]
    for key in KEYS:
        del doc.spans[key]
    assert texts(doc) == expected  # from the line breaks alone


def test_spacys_corpus_reader_loses_nothing(tmp_path: Path) -> None:
    words = Doc(NLP.vocab, words=["Who", "?", "\n", "do", "n't"])  # its spaces are unknown, its words are kept
    DocBin(docs=[make_doc(NLP, ("Who\nis?", "A man."), KEYS), words]).to_disk(tmp_path / "x.spacy")
    first, second = Corpus(tmp_path / "x.spacy")(NLP)
    assert not first.predicted.spans
    assert texts(first.predicted) == ["Who is?", "A man."]
    assert texts(second.predicted) == ["Who ?", "do n't"]


def test_spans_go_before_lines() -> None:
    doc = NLP.make_doc("a b\nc d")
    doc.spans["question"], doc.spans["context"] = [doc[3:5]], [doc[0:4]]
    assert texts(doc) == ["c d", "a b\nc"]


def test_docs_that_have_no_such_parts() -> None:
    assert texts(Doc(NLP.vocab)) is None
    assert texts(NLP.make_doc(" \n ")) is None
    with pytest.raises(AnnotationError, match="the text for 'context' is None"):
        make_doc(NLP, ("a", None), KEYS)  # type: ignore[arg-type]
    with pytest.raises(AnnotationError, match="no span groups 'question', 'context', and no line breaks"):
        texts_of(NLP.make_doc("a b"), KEYS)
    doc = NLP.make_doc("a\nb")
    doc.spans["question"] = [doc[0:1]]
    with pytest.raises(AnnotationError, match=r"has \[1, None\] spans"):
        texts_of(doc, KEYS)
    doc.spans["context"] = [doc[0:1], doc[1:2]]
    with pytest.raises(AnnotationError, match=r"has \[1, 2\] spans"):
        texts_of(doc, KEYS)


# extension attributes


def without_extension(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test begin without an extension, and put back what there was."""
    attribute = f"{owner.__name__.lower()}_extensions"
    others = {key: value for key, value in getattr(Underscore, attribute).items() if key != name}
    monkeypatch.setattr(Underscore, attribute, others)


def test_two_prefixes_of_coreference_that_need_one_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner in (Doc, Span):
        without_extension(owner, "coref_head", monkeypatch)
    nlp = spacy.blank("xx")
    nlp.add_pipe("coreference")
    with pytest.raises(SettingsError, match=r"Span\._\.coref_head was set by something else.*another prefix"):
        nlp.add_pipe("coreference", name="second", config={"prefix": "coref"})
    nlp.add_pipe("coreference", name="second", config={"prefix": "chains"})


@pytest.mark.parametrize(
    ("factory", "owner", "name"), [("coreference", Doc, "coref_clusters"), ("answers", Span, "answer_score")]
)
def test_components_do_not_show_what_another_package_wrote(
    factory: str, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_extension(owner, name, monkeypatch)
    owner.set_extension(name, default=None)  # as other packages for coreference do
    nlp = spacy.blank("xx")
    expected = rf"{owner.__name__}\._\.{name} was set by something else.*{owner.__name__}\.remove_extension\('{name}'\)"
    with pytest.raises(SettingsError, match=expected):
        nlp.add_pipe(factory)
    owner.remove_extension(name)
    nlp.add_pipe(factory)


# span groups that spaCy's corpus reader drops


def test_a_corpus_keeps_given_spans(tmp_path: Path) -> None:
    docs = [doc_with(*GIVEN[0], NLP.vocab), doc_with("no predicates", None, NLP.vocab)]
    DocBin(docs=docs).to_disk(tmp_path / "x.spacy")
    first, second = Corpus(tmp_path / "x.spacy", augmenter=build_given_spans(["predicates"]))(NLP)
    assert [(span.start, span.text) for span in first.predicted.spans["predicates"]] == [(1, "gave"), (6, "left")]
    assert sorted(first.predicted.spans) == ["predicates"]
    assert not second.predicted.spans


def test_given_spans_of_other_words() -> None:
    reference = doc_with("ab c", {1: []})
    other = Doc(reference.vocab, words=["a", "b", "c"], spaces=[False, True, False])
    (example,) = build_given_spans(["predicates"])(NLP, Example(other, reference))
    assert [span.start for span in example.predicted.spans["predicates"]] == [2]


# a torch network in a Thinc model


def build(width: int) -> nn.Module:
    return nn.Linear(width, 1)


def weights(shim: TorchShim) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in shim.network.state_dict().items()}


def test_a_network_is_built_anew_each_time() -> None:
    shim = TorchShim(build)
    with pytest.raises(KeyError, match="not built yet"):
        _ = shim.network
    shim.prepare(width=3)
    with torch.no_grad():
        shim.network.weight[:] = 5  # out of the range of new weights
    shim.prepare(width=3)
    assert shim.network.weight.abs().max() < 1
    shim.prepare(width=4)
    assert shim.network.in_features == 4


def test_bytes() -> None:
    shim, other = TorchShim(build), TorchShim(build)
    assert TorchShim(build).from_bytes(shim.to_bytes()).sizes == {}
    shim.prepare(width=3)
    saved = shim.to_bytes()
    assert srsly.msgpack_loads(saved)["sizes"] == {"width": 3}
    other.prepare(width=5)
    other.from_bytes(saved)
    assert other.sizes == {"width": 3}
    for name, array in weights(shim).items():
        assert (weights(other)[name] == array).all()
    with torch.no_grad():  # the weights are its own
        other.network.weight += 1
    assert other.to_bytes() != saved == shim.to_bytes()
    another = TorchShim(lambda width: nn.Linear(width, 2))
    with pytest.raises(WeightsError, match=r"(?s)not those of its network .*size mismatch for weight"):
        another.from_bytes(saved)


@pytest.mark.parametrize(
    "damaged",
    [b"no message", b"", b"\x81", {"arrays": {}}, {"sizes": 5, "arrays": {}}, {"sizes": {"depth": 3}, "arrays": {}}],
)
def test_damaged_bytes_change_nothing(damaged: Any) -> None:
    shim = TorchShim(build)
    shim.prepare(width=3)
    before = shim.to_bytes()
    with pytest.raises(WeightsError, match="saved weights of a component are damaged"):
        shim.from_bytes(damaged if isinstance(damaged, bytes) else srsly.msgpack_dumps(damaged))
    assert shim.to_bytes() == before


def test_averages_reach_the_network() -> None:
    """Thinc's average after n updates: (1 - d) w + d a with d = min(0.9999, (n + 1) / (n + 10))."""
    shim, optimizer = TorchShim(build), Adam(0.1, use_averages=True)
    shim.finish_update(optimizer)
    shim.prepare(width=2)
    average = {name: np.zeros_like(array) for name, array in weights(shim).items()}
    for number in range(1, 4):
        output, backprop = shim.begin_update(ArgsKwargs((torch.ones(1, 2),), {}))
        backprop(ArgsKwargs(((output,),), {"grad_tensors": (torch.ones(1, 1),)}))
        shim.finish_update(optimizer)
        decay = min(0.9999, (number + 1) / (number + 10))
        average = {name: (1 - decay) * array + decay * average[name] for name, array in weights(shim).items()}
    last = weights(shim)
    with shim.use_params(optimizer.averages):
        for name, array in weights(shim).items():
            np.testing.assert_allclose(array, average[name], rtol=1e-5)
            assert not np.allclose(array, last[name])
    assert all((last[name] == array).all() for name, array in weights(shim).items())


def test_batches() -> None:
    sizes = [(2,), (7,), (3,), (7,), (40,), (1,)]
    assert batches_of(sizes, 14) == [[5, 0, 2], [1, 3], [4]]
    assert batches_of([], 14) == []
    pairs = [(50, 3), (5, 40), (1, 1), (48, 3), (7, 300), (50, 2)]
    batches = batches_of(pairs, 6000, lambda window, question: window * (window + question))
    assert sorted(number for batch in batches for number in batch) == list(range(len(pairs)))
    for batch in batches:
        window, question = (max(sides) for sides in zip(*(pairs[number] for number in batch)))
        assert len(batch) == 1 or len(batch) * window * (window + question) <= 6000
    assert len(batches) < len(pairs)


LENGTHS = torch.tensor([4, 7, 1])


@pytest.mark.parametrize("depth", [1, 2])
def test_the_bilstm_is_torchs_own_on_packed_rows(depth: int) -> None:
    torch.manual_seed(0)
    ours = BiLSTM(5, 3, depth)
    theirs = nn.LSTM(5, 3, depth, batch_first=True, bidirectional=True)
    own = {}
    for layers, suffix in ((ours.forwards, ""), (ours.backwards, "_reverse")):
        for number, layer in enumerate(layers):
            own |= {f"{name.removesuffix('0')}{number}{suffix}": w for name, w in layer.state_dict().items()}
    theirs.load_state_dict(own)
    x = torch.randn(3, 7, 5)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    packed, _ = theirs(pack_padded_sequence(inputs[1], LENGTHS, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    got = ours(inputs[0], LENGTHS)
    inside = torch.arange(7) < LENGTHS[:, None]
    torch.testing.assert_close(got[inside], expected[inside])
    for values in (got, expected):
        (values[inside] ** 2).sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)


def test_dropout_is_between_the_layers_alone() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 7, 5)
    one, two = BiLSTM(5, 3), BiLSTM(5, 3, 2)
    torch.testing.assert_close(one(x, LENGTHS, 0.5), one(x, LENGTHS))
    assert not torch.allclose(two(x, LENGTHS, 0.5), two(x, LENGTHS))
