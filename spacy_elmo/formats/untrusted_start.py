"""The script that `process.ask` starts. Its arguments are folders in which modules are looked for."""

import sys
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    # An empty package in the place of spacy_elmo, whose own __init__ loads torch and spaCy.
    package = ModuleType("spacy_elmo")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["spacy_elmo"] = package
    sys.path += [folder for folder in sys.argv[1:] if folder not in sys.path]
    from spacy_elmo.formats.untrusted import main

    main()
