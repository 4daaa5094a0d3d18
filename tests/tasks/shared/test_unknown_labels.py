"""Labels that a component does not have: a warning that names them."""

import warnings

import pytest

from spacy_elmo.errors import UnknownLabelWarning
from spacy_elmo.tasks.shared import warn_of_unknown


def test_the_warning_names_them() -> None:
    said: set[str] = set()
    with pytest.warns(UnknownLabelWarning, match=r"'x' does not have .*: B, C\. .*initialize.components.x.labels"):
        warn_of_unknown("x", ["C", "A", "B"], ["A"], said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_unknown("x", ["A", "C"], ["A"], said)  # was said before
        warn_of_unknown("x", ["A"], ["A", "B"], set())
        warn_of_unknown("x", [], [], set())
