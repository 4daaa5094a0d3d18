"""The base of components whose settings come from their config, also if they are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy.pipeline import TrainablePipe

_LEARNED = "labels"  # all else in cfg is a setting


class ConfiguredPipe(TrainablePipe):
    """A component that keeps its settings when it is loaded.

    spaCy passes `cfg` to the scorer and saves it. When it loads it, the saved settings would replace those of the
    config, so that `spacy.load(path, config=...)` and an edited config.cfg would change nothing.
    """

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
        """Load what `to_bytes` returned, but no settings. See spaCy for the parameters."""
        with self._keeping_settings():
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
        """Load what `to_disk` wrote, but no settings. See spaCy for the parameters."""
        with self._keeping_settings():
            super().from_disk(path, exclude=exclude)
        return self

    @contextmanager
    def _keeping_settings(self) -> Iterator[None]:
        settings: dict[str, Any] = {name: value for name, value in self.cfg.items() if name != _LEARNED}
        yield
        self.cfg.update(settings)
