"""Labels of tokens by the name of an attribute."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.analysis.probing import label_getter
from spacy_elmo.errors import SettingsError


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


def test_entities_that_are_not_annotated() -> None:
    assert list(map(label_getter("ent"), Doc(Vocab(), words=["a", "b"]))) == ["", ""]


@pytest.mark.parametrize("attribute", ["", "colour", "pos_", "__class__", "_.", "_"])
def test_no_attribute(attribute: str) -> None:
    with pytest.raises(SettingsError, match=r"--attr is .*do not have.* Expected upos, tag, ent"):
        label_getter(attribute)


@pytest.mark.parametrize("attribute", ["head", "children", "check_flag"])
def test_values_that_are_no_labels(attribute: str, doc: Doc) -> None:
    getter = label_getter(attribute)
    with pytest.raises(SettingsError, match=f"--attr is '{attribute}', but its value"):
        getter(doc[0])
