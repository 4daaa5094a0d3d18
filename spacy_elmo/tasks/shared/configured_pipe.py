"""The base of components whose config may change the settings that they were saved with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy.pipeline import TrainablePipe

_CONFIGURED = "configured"


class ConfiguredPipe(TrainablePipe):
    """A component whose settings can be changed in the config of a saved pipeline, and in `cfg` before it is saved.

    spaCy saves `cfg` and passes it to the scorer. When it loads it, the saved settings would replace those of the
    config, so that `spacy.load(path, config=...)` and an edited config.cfg would change nothing. So `cfg` also has the
    settings that the component was made with. If the config has another value now, that one counts.
    """

    def configure(self, **settings: Any) -> None:
        """Set `cfg` to the settings that the component is made with."""
        self.cfg: dict[str, Any] = {**settings, _CONFIGURED: settings}

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
        """Load what `to_bytes` returned. See spaCy for the parameters."""
        with self._keeping_what_the_config_changes():
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> ConfiguredPipe:
        """Load what `to_disk` wrote. See spaCy for the parameters."""
        with self._keeping_what_the_config_changes():
            super().from_disk(path, exclude=exclude)
        return self

    @contextmanager
    def _keeping_what_the_config_changes(self) -> Iterator[None]:
        own = self.cfg[_CONFIGURED]
        yield
        saved = self.cfg[_CONFIGURED]  # own, if version 0.1.0 has saved the component
        self.cfg.update({name: value for name, value in own.items() if value != saved.get(name)})
        self.cfg[_CONFIGURED] = own
