"""What is said about annotations whose label a component does not have."""

import warnings
from collections.abc import Iterable

from ...errors import Errors, UnknownLabelWarning


def warn_of_unknown(name: str, found: Iterable[str], labels: Iterable[str]) -> None:
    """Issue an UnknownLabelWarning if examples have labels that a component lacks. Python shows the same one once.

    name: of the component.
    found: labels of the examples.
    labels: of the component.
    """
    unknown = sorted(set(found).difference(labels))
    if unknown:
        warnings.warn(
            Errors.TASK_UNKNOWN_LABELS.format(name=name, got=", ".join(unknown)), UnknownLabelWarning, stacklevel=2
        )
