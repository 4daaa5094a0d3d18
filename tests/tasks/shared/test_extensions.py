"""Extension attributes: set once, read by our function, and never those of something else."""

from collections.abc import Iterator

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.errors import SettingsError
from spacy_elmo.tasks.shared.extensions import set_getter

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
    with pytest.raises(SettingsError, match=expected):
        set_getter(Doc, NAME, words_longer_than, length=4)


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
