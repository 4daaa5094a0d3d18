"""Extension attributes: set once, read by our function, and never those of something else."""

from collections.abc import Iterator

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.errors import SettingsError
from spacy_elmo.tasks.shared import set_getter

NAME = "words_of_a_test"


def words_longer_than(doc: Doc, length: int) -> list[str]:
    return [token.text for token in doc if len(token.text) > length]


@pytest.fixture(autouse=True)
def removed() -> Iterator[None]:
    yield
    if Doc.has_extension(NAME):
        Doc.remove_extension(NAME)


def test_the_function_is_called_with_its_arguments() -> None:
    set_getter(Doc, NAME, words_longer_than, length=3)
    set_getter(Doc, NAME, words_longer_than, length=3)
    doc = Doc(spacy.blank("en").vocab, words=["two", "three", "four"])
    assert getattr(doc._, NAME) == ["three", "four"]


def test_an_attribute_of_something_else_is_refused() -> None:
    expected = rf"Doc\._\.{NAME} was set by something else.*Doc\.remove_extension\('{NAME}'\)"
    Doc.set_extension(NAME, default=None)
    with pytest.raises(SettingsError, match=expected):
        set_getter(Doc, NAME, words_longer_than, length=3)
    Doc.remove_extension(NAME)
    set_getter(Doc, NAME, words_longer_than, length=3)


def test_arguments_of_another_component_are_named() -> None:
    set_getter(Doc, NAME, words_longer_than, length=3)
    expected = rf"Doc\._\.{NAME} is already the attribute of a component .*with length = 3\. This one has length = 4"
    with pytest.raises(SettingsError, match=expected):
        set_getter(Doc, NAME, words_longer_than, length=4)


def test_two_prefixes_of_coreference_that_need_one_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner in ("doc", "span"):
        others = dict(spacy.tokens.underscore.Underscore.__dict__[f"{owner}_extensions"])
        others.pop("coref_head", None)
        monkeypatch.setattr(spacy.tokens.underscore.Underscore, f"{owner}_extensions", others)
    nlp = spacy.blank("en")
    nlp.add_pipe("coreference")
    with pytest.raises(
        SettingsError, match=r"made with prefix = 'coref_clusters'\. This one has prefix = 'coref', and"
    ):
        nlp.add_pipe("coreference", name="second", config={"prefix": "coref"})
    nlp.add_pipe("coreference", name="second", config={"prefix": "chains"})


@pytest.mark.parametrize(
    ("factory", "owner", "name"),
    [("coreference", Doc, "coref_clusters"), ("answers", spacy.tokens.Span, "answer_score")],
)
def test_components_do_not_show_what_another_package_wrote(
    factory: str, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = dict(spacy.tokens.underscore.Underscore.__dict__[f"{owner.__name__.lower()}_extensions"])
    monkeypatch.setattr(spacy.tokens.underscore.Underscore, f"{owner.__name__.lower()}_extensions", others)
    owner.set_extension(name, default=None, force=True)  # as other packages for coreference do
    nlp = spacy.blank("en")
    with pytest.raises(SettingsError, match=rf"{owner.__name__}\._\.{name} was set by something else"):
        nlp.add_pipe(factory)
    owner.remove_extension(name)
    nlp.add_pipe(factory)
