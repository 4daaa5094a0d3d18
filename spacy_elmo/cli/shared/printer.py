"""Prints messages and tables as spaCy's commands do, with colours only if they go to a terminal."""

import os
import sys
from typing import Any

from wasabi.printer import Printer


class TerminalPrinter(Printer):
    """wasabi's printer, without colours in files and pipes, or if NO_COLOR is set (https://no-color.org)."""

    def __init__(self, *, no_print: bool = False) -> None:
        """no_print: whether messages are returned, and not printed."""
        super().__init__(no_print=no_print)
        self._colours = self.show_color  # false in terminals that know none, or if wasabi's variables say so

    def text(self, *args: Any, **kwargs: Any) -> Any:
        """Print a message; all others call this. See wasabi for the parameters."""
        self.show_color = self._in_colours()
        return super().text(*args, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        """Print a heading, which wasabi always makes bold. See wasabi for the parameters."""
        if self._in_colours():
            return super().divider(text, *args, **kwargs)
        heading = f"\n{f' {text} ':=^{self.line_max}}"
        return heading if self.no_print else print(heading)

    def _in_colours(self) -> bool:
        try:
            terminal = sys.stdout.isatty()
        except (AttributeError, ValueError):  # it is closed, or a program's own object
            return False
        return self._colours and terminal and not os.environ.get("NO_COLOR")


msg = TerminalPrinter()
