"""Settings of the listener."""

from typing import Any

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.models.listener import build_listener


@pytest.mark.parametrize("width", [0, -1, True, 256.0, "256", None])
def test_widths_that_are_none(width: Any) -> None:
    with pytest.raises(SettingsError, match=f"width is {width!r}"):
        build_listener(width)


def test_a_width() -> None:
    assert build_listener(256).get_dim("nO") == 256
