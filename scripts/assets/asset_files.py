"""A former place of what get_assets.py has."""

from .get_assets import PREPARED

__all__ = ["PREPARED"]
