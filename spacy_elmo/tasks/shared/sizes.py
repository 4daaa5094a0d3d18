"""Checks of a component's settings."""

from typing import Any

from ...errors import Errors, SettingsError, shown
from ...models.numbers import is_whole


def check_sizes(**sizes: Any) -> None:
    """Raise SettingsError if one of the sizes is no whole number of 1 or more. sizes: name of a setting -> value."""
    for name, size in sizes.items():
        if not is_whole(size) or size < 1:
            raise SettingsError(Errors.TASK_SIZE.format(name=name, got=shown(size)))
