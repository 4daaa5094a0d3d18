"""A former place of what scripts.shared has."""

from . import TAGGED, read_lines, write_docs

__all__ = ["TAGGED", "read_lines", "write_docs"]
