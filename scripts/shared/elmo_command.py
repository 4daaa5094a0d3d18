"""A former place of what scripts.shared has."""

from . import run_elmo

__all__ = ["run_elmo"]
