"""A former place of what scripts.shared has."""

from . import run_command

__all__ = ["run_command"]
