"""The biLMs that are part of the package. Each has a folder here."""

from pathlib import Path


def paths(name: str) -> tuple[str, str]:
    """Return the paths of options.json and weights.hdf5 of an embedded biLM.

    name: of its folder, such as "en_core".
    """
    folder = Path(__file__).parent / name
    return str(folder / "options.json"), str(folder / "weights.hdf5")
