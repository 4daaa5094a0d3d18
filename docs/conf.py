"""Sphinx: `make docs` writes docs/_build/html."""

import re

from spacy_elmo import __version__

project = "spacy-elmo"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "tutorial.ipynb"]  # the notebook is made from tutorial.md
html_theme = "furo"
html_show_copyright = False
html_title = f"spacy-elmo {release}"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
myst_heading_anchors = 3

# our docstrings describe an argument in a line `name: ...`, continued by indented lines
ARGUMENT = re.compile(r"([a-z_0-9]+(?:, [a-z_0-9]+)*): ")


def arguments_as_list(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Make a list item of each described argument."""
    result: list[str] = []
    for line in lines:
        if match := ARGUMENT.match(line):
            if result and result[-1] and not result[-1].startswith(("* ", "  ")):
                result.append("")
            result.append(f"* **{match[1]}**: {line[match.end() :]}")
        elif line.startswith("    ") and result and result[-1].startswith(("* ", "  ")):
            result.append("  " + line.lstrip())
        elif line and result and result[-1].startswith(("* ", "  ")):
            result += ["", line]
        else:
            result.append(line)
    lines[:] = result


def setup(app) -> None:
    app.connect("autodoc-process-docstring", arguments_as_list)
