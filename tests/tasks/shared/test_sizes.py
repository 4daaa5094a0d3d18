"""Settings that are whole numbers of 1 or more."""

from typing import Any

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.tasks.shared import check_sizes


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2", None])
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(SettingsError, match=r"lstm_width is .*Expected a whole number, 1 or more"):
        check_sizes(depth=1, lstm_width=size)
