"""What is said about annotations whose label a component does not have."""

import warnings
from collections.abc import Iterable

from ...errors import Errors, UnknownLabelWarning


def warn_of_unknown(name: str, found: Iterable[str], labels: Iterable[str], said: set[str]) -> None:
    """Issue an UnknownLabelWarning if examples have labels that a component lacks, once for each label.

    name: of the component.
    found: labels of the examples.
    labels: of the component.
    said: labels that it was warned of before; new ones are added.
    """
    unknown = sorted(set(found).difference(labels, said))
    if unknown:
        said.update(unknown)
        warnings.warn(
            Errors.TASK_UNKNOWN_LABELS.format(name=name, got=", ".join(unknown)), UnknownLabelWarning, stacklevel=2
        )
