"""The biLMs that come with the package."""

from pathlib import Path


def paths(name: str) -> tuple[str, str]:
    """The files options.json and weights.hdf5 of an embedded biLM."""
    folder = Path(__file__).parent / name
    return str(folder / "options.json"), str(folder / "weights.hdf5")
