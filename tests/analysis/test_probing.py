"""Labels of tokens by the name of an attribute."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from fake_bilm import fake_bilm
from spacy.tokens import Doc, DocBin
from spacy.training.converters.conllu_to_docs import conllu_to_docs
from spacy.vocab import Vocab

from spacy_elmo.analysis import probing
from spacy_elmo.analysis.probing import (
    L2,
    LabelledCorpus,
    LinearClassifier,
    Probes,
    Score,
    embed,
    fit,
    label_getter,
    read_labelled,
    score,
)
from spacy_elmo.errors import CorpusError, SettingsError


@pytest.fixture
def doc() -> Doc:
    doc = Doc(
        spacy.blank("xx").vocab,
        words=["Ann", "Lee", "sings"],
        pos=["PROPN", "", "VERB"],
        tags=["NNP", "NNP", "VBZ"],
        ents=["B-PER", "I-PER", "O"],
        heads=[2, 0, 2],
        deps=["nsubj", "flat", "ROOT"],
        morphs=["Number=Sing", "", "Tense=Pres"],
    )
    doc.user_data["._.", "mood", doc[2].idx, None] = "gay"
    return doc


@pytest.mark.parametrize(
    ("attribute", "labels"),
    [
        ("upos", ["PROPN", "", "VERB"]),
        ("pos", ["PROPN", "", "VERB"]),
        ("tag", ["NNP", "NNP", "VBZ"]),
        ("xpos", ["NNP", "NNP", "VBZ"]),
        ("ent", ["B-PER", "I-PER", "O"]),
        ("ent_type", ["PER", "PER", ""]),
        ("dep", ["nsubj", "flat", "ROOT"]),
        ("morph", ["Number=Sing", "", "Tense=Pres"]),
        ("is_title", ["True", "True", "False"]),
        ("n_rights", ["1", "0", "0"]),
        ("_.mood", ["", "", "gay"]),
        ("_.none", ["", "", ""]),
    ],
)
def test_labels(attribute: str, labels: list[str], doc: Doc) -> None:
    assert list(map(label_getter(attribute), doc)) == labels


@pytest.mark.parametrize("attribute", ["", "colour", "pos_", "__class__", "_.", "_"])
def test_no_attribute(attribute: str) -> None:
    with pytest.raises(SettingsError, match=r"--attr is .*do not have.* Expected upos, tag, ent"):
        label_getter(attribute)


@pytest.mark.parametrize("attribute", ["head", "children", "check_flag"])
def test_values_that_are_no_labels(attribute: str, doc: Doc) -> None:
    getter = label_getter(attribute)
    with pytest.raises(SettingsError, match=f"--attr is '{attribute}', but its value"):
        getter(doc[0])


def gradients(fitted: LinearClassifier, x: np.ndarray, labels: np.ndarray, l2: float) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean of -log p and of the penalty, by the weights and by the bias."""
    standardised = (x - x.mean(0)) / x.std(0, ddof=1)
    weight = fitted.weight.numpy().astype(np.float64)
    scores = standardised @ weight.T + fitted.bias.numpy()
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(x)), labels] -= 1
    return p.T @ standardised / len(x) + 2 * l2 * weight, p.mean(0)


@pytest.mark.parametrize(("scores", "l2"), [(1 << 25, L2), (22, L2), (22, 0.1)])
def test_the_gradient_is_zero(scores: int, l2: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_SCORES", scores)  # 22: seven rows of three labels
    monkeypatch.setattr(probing, "L2", l2)
    random = np.random.default_rng(0)
    x = random.normal(3, 2, (60, 4))
    labels = random.integers(0, 3, 60)
    fitted = fit(torch.tensor(x, dtype=torch.float32), torch.tensor(labels), 3)
    for gradient in gradients(fitted, x, labels, l2):
        assert np.abs(gradient).max() < 1e-4
    expected = (x - x.mean(0)) / x.std(0, ddof=1) @ fitted.weight.numpy().T + fitted.bias.numpy()
    assert fitted.predict(torch.tensor(x, dtype=torch.float32)).tolist() == expected.argmax(1).tolist()


def test_the_features_are_not_changed() -> None:
    x = torch.tensor([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    fitted = fit(x, torch.tensor([0, 1, 1]), 2)
    assert x.tolist() == [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]
    assert fitted.predict(x).tolist() == [0, 1, 1]
    assert fitted.predict(x[:0]).tolist() == []


CONLLU = """# text = Du rivage .
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tDe\tde\tADP\tP\t_\t3\tcase\t_\t_
2\tle\tle\tDET\tD\t_\t3\tdet\t_\t_
3\trivage\trivage\tNOUN\tN\t_\t0\troot\t_\t_
3.1\tnothing\t_\tNOUN\tN\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tVa\taller\tVERB\tV\t_\t0\troot\t_\t_

"""


def write(path: Path, *docs: Doc) -> Path:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def read(path: Path, attribute: str = "upos", limit: int | None = None) -> LabelledCorpus:
    return read_labelled(path, attribute, label_getter(attribute), limit)


@pytest.mark.parametrize(
    "text",
    [
        CONLLU,
        CONLLU.replace("\t3\t", "\t_\t").replace("\t0\t", "\t_\t"),  # no heads
        CONLLU.replace("\t3\tdet", "\t0\troot"),  # two roots
        CONLLU.replace("\n\n", "\n \n", 1),
        CONLLU.replace("4\t.", "# a comment\n4\t."),
        CONLLU + "# the end\n\n",
    ],
)
def test_conllu(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(text, encoding="utf8")
    corpus = read(path)
    assert corpus.sentences == [["De", "le", "rivage", "."], ["Va"]]
    assert corpus.labels == ["ADP", "DET", "NOUN", "PUNCT", "VERB"]
    assert read(path, limit=1).sentences == [["De", "le", "rivage", "."]]
    assert read(path, limit=2**63) == read(path)


def test_words_of_conllu_without_a_value(tmp_path: Path) -> None:
    """spaCy gives them the UPOS as XPOS, and "_" as lemma and relation. A word may be an underscore."""
    path = tmp_path / "a.conllu"
    rows = [
        "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tde\t_\tADP\t_\t_\t2\t_\t_\t_",
        "2\tle\tle\tDET\tDT\t_\t0\troot\t_\t_",
        "2.1\tx\tx\tX\tXX\t_\t_\t_\t_\t_",
        "3\t_\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_",
    ]
    path.write_text("\n".join(rows) + "\n\n" + rows[2].replace("2", "1", 1) + "\n", encoding="utf8")
    assert read(path, "tag").labels == ["", "DT", "", "DT"]
    assert read(path, "lemma").labels == ["", "le", "_", "le"]
    assert read(path, "dep").labels == ["", "ROOT", "punct", "ROOT"]
    assert read(path).labels == ["ADP", "DET", "PUNCT", "DET"]
    path.write_text(rows[1].replace("2", "0") + "\n")
    with pytest.raises(CorpusError, match="no token has a value of the attribute 'tag'"):
        read(path, "tag")


def test_entities_of_conllu(tmp_path: Path) -> None:
    """As spaCy reads them: if a file has entities, the other words are outside of them, else nothing is known."""
    path = tmp_path / "a.conllu"
    named = CONLLU.replace("0\troot\t_\t_", "0\troot\t_\tname=U-LOC", 1)
    for text, labels in ((named, ["O", "O", "B-LOC", "O", "O"]), (CONLLU, [""] * 5)):
        path.write_text(text, encoding="utf8")
        docs = list(conllu_to_docs(text.partition("\n")[2], n_sents=1, no_print=True))
        assert [label_getter("ent")(token) for doc in docs for token in doc] == labels
        if any(labels):
            assert read(path, "ent").labels == labels
        else:
            with pytest.raises(CorpusError, match="no token has a value of the attribute 'ent'"):
                read(path, "ent")


def test_docs(tmp_path: Path) -> None:
    """Sentence boundaries are followed, whitespace is left out, and a doc without boundaries is one sentence."""
    marked = Doc(
        Vocab(),
        words=["It", " ", "rains", "Stay"],
        pos=["PRON", "SPACE", "VERB", "VERB"],
        sent_starts=[True, False, False, True],
    )
    blank = Doc(Vocab(), words=["   "])
    other = Doc(Vocab(), words=["Go", "home"], pos=["VERB", ""])
    write(tmp_path / "a.spacy", marked, blank)
    write(tmp_path / "b.spacy", other)
    corpus = read(tmp_path)
    assert corpus.sentences == [["It", "rains"], ["Stay"], ["Go", "home"]]
    assert corpus.labels == ["PRON", "VERB", "VERB", "VERB", ""]


def test_refusals(tmp_path: Path) -> None:
    tagged = write(tmp_path / "tagged.spacy", Doc(Vocab(), words=["Go"], tags=["VB"]))
    (tmp_path / "a.txt").write_text("a")
    write(tmp_path / "none.spacy")
    write(tmp_path / "blank.spacy", Doc(Vocab(), words=[" "]))
    (tmp_path / "cut.spacy").write_bytes(tagged.read_bytes()[:-4])
    bad = "bad.conllu, the sentence at line"
    for name, text, message in (
        ("tagged.spacy", None, "tagged.spacy: no token has a value of the attribute 'upos'"),
        ("none.spacy", None, "no words"),
        ("blank.spacy", None, "no words"),
        ("gone", None, "gone: no such file. Expected an annotated corpus"),
        ("a.txt", None, "a.txt: not a .spacy or .conllu file"),
        ("cut.spacy", None, "cut.spacy: damaged"),
        ("bad.conllu", "1\tword\n\n", f"{bad} 1: no line of CoNLL-U, which has 10 columns divided by tabs: '1\\tword'"),
        ("bad.conllu", CONLLU.replace("4\t.", "x\t."), f"{bad} 1: line 7 is no line of CoNLL-U"),
        ("bad.conllu", CONLLU.replace("VERB", "FOO"), f"{bad} 9: "),
        ("bad.conllu", f"{CONLLU}1\tx\0\n\n", f"{bad} 11: a NUL character. Correct or remove it"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(CorpusError, match=re.escape(message)):
            read(tmp_path / name)


def vector(layer: int, words: Sequence[str], place: int) -> Sequence[float]:
    """Layer 0 knows the word, layer 1 whether it is the first one."""
    return [words[place] == "x", words[place] == "y"] if layer == 0 else [place == 0, place != 0]


BILM = fake_bilm(2, 2, vector)
TRAIN = LabelledCorpus([["x", "y"], ["y", "x"], ["x", "x", "y"]], ["F", "N", "F", "N", "F", "", "N"])
DEV = LabelledCorpus([["y", "x", "x", "y"]], ["F", "N", "", "Z"])


def test_embed() -> None:
    told: list[int] = []
    layers = embed(BILM, TRAIN.sentences, told.append)
    assert layers[0].tolist() == [[1, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0], [0, 1]]
    assert layers[1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]]
    assert sorted(told) == [2, 2, 3]


def test_probes() -> None:
    """Of three labelled tokens one has a label that the training part does not have.

    In the training part x is F twice and N once, y is N twice and F once; in the other part they are the reverse. So
    layer 0 and the baseline are wrong, and layer 1 is right, because the first word is F and the others N.
    """
    probes = Probes(TRAIN, DEV, "dep", 100)
    assert (probes.labels, probes.train_tokens, probes.dev_tokens) == (["F", "N"], 6, 3)
    assert probes.unknown_tokens == 1
    assert probes.majority() == Score(0, None)
    scores = list(probes.run(BILM, lambda tokens: None))
    assert scores[:2] == [Score(0, None), Score(2 / 3, None)]
    assert len(scores) == 3
    for sentences, labels, message in (
        ([["a", "b"]], ["X", ""], "the same value of the attribute 'dep': 'X'"),
        (TRAIN.sentences, TRAIN.labels, r"it has \['Z'\], and the training part has \['F', 'N'\]"),
    ):
        with pytest.raises(CorpusError, match=message):
            Probes(LabelledCorpus(sentences, labels), LabelledCorpus([["x", "y"]], ["Z", ""]), "dep", 100)


def test_entities_have_f1() -> None:
    train = LabelledCorpus(TRAIN.sentences, ["B-X", "O", "B-X", "O", "B-X", "O", "O"])
    dev = LabelledCorpus([["y", "x", "x"]], ["B-X", "B-X", "O"])
    scores = list(Probes(train, dev, "ent", 100).run(BILM, lambda tokens: None))
    assert scores[1].accuracy == pytest.approx(2 / 3)
    assert scores[1].f1 == pytest.approx(2 / 3)  # all that is found is right, half of it is found


def test_the_mean_of_the_layers_knows_what_no_layer_knows() -> None:
    """Only an x that comes first has the label "yes".

    Each layer alone sees "no" more often, whether the word is x or not, and whether it is the first one or not. So in
    the other part, where each case occurs once, a layer is wrong in one of four, and the mean of both in none.
    """
    sentences = [["x", "x", "y"], ["x", "x"], ["y", "x"], ["y", "y"], ["y", "y"]]
    train = LabelledCorpus(sentences, ["yes", "no", "no", "yes", *["no"] * 7])
    dev = LabelledCorpus([["x", "y"], ["y", "x"]], ["yes", "no", "no", "no"])
    probes = Probes(train, dev, "dep", 100)
    assert probes.labels == ["yes", "no"]
    told: list[int] = []
    assert list(probes.run(BILM, told.append)) == [Score(3 / 4, None), Score(3 / 4, None), Score(1, None)]
    assert sum(told) == 11 + 4


def test_scores() -> None:
    assert score(["A", "B", "A", "C"], ["A", "B", "B", "A"], None) == Score(0.5, None)
    # three are found, two are present, and one is right: precision 1/3, recall 1/2
    predicted, labels = ["B-X", "I-X", "B-Y", "O", "O"], ["B-X", "B-X", "O", "O", "O"]
    assert score(predicted, labels, "O") == Score(3 / 5, 0.4)
    assert score(["O", "O"], ["O", "O"], "O") == Score(1.0, 0.0)


def test_majority() -> None:
    training = [("can", "V"), ("can", "N"), ("can", "V"), ("a", "D"), ("run", "N"), ("run", "V"), ("the", "D")]
    words, labels = map(list, zip(*training))
    # of run's two labels N came first; for an unknown word V is the most frequent of all (three of seven)
    dev = LabelledCorpus([["can", "run", "the", "Can", "run"]], ["V", "N", "D", "V", "V"])
    assert Probes(LabelledCorpus([words], labels), dev, "pos", 1).majority() == Score(4 / 5, None)
