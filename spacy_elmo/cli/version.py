"""`elmo --version`: what a bug report needs to say of this installation."""

import platform
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import typer
from spacy.cli._util import Opt

from .console import msg, print_json

PACKAGES = ("spacy", "thinc", "h5py", "numpy")


def version(
    show: bool = Opt(False, "--version", help="Show the versions that a report of a bug should name, and exit"),
    as_json: bool = Opt(False, "--json", help="With --version: print JSON only"),
) -> None:
    """Handle the options that stand before a command's name."""
    if as_json and not show:
        raise typer.BadParameter("--json stands before a command's name. Expected it after --version or the name.")
    if not show:
        return
    import torch

    from ..formats.names import folders_of_packages
    from ..formats.paths import sha256_of
    from ..inference.linear import has_bfloat16
    from ..kernels import loops_state
    from ..modules.loading import EMBEDDED, embedded_files
    from .shared import origin_of

    loops = loops_state()
    found: dict[str, Any] = {"spacy_elmo": version_of("spacy-elmo"), "bilm": EMBEDDED}
    found |= {"bilm_sha256": sha256_of(Path(embedded_files()[1]))[:12]}
    bilms = {name: origin_of(name) for name in (EMBEDDED, *sorted(folders_of_packages()))}
    found |= {"bilms": bilms, "compiled_loops": loops.compiled, "compiled_loops_missing": loops.reason}
    found |= {"instruction_sets": list(loops.instruction_sets), "bfloat16": has_bfloat16(torch.device("cpu"))}
    found |= {"torch": str(torch.__version__), "torch_capability": torch.backends.cpu.get_cpu_capability()}
    found |= {name: version_of(name) for name in PACKAGES}
    found |= {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    found |= {"platform": platform.platform()}
    if as_json:
        print_json(found)
        raise typer.Exit
    shown = found | {
        "bilms": ", ".join(f"{name} {about['version']} ({about['licence']})" for name, about in bilms.items()),
        "compiled_loops": "yes" if loops.compiled else "no; torch does the same",
        "instruction_sets": ", ".join(loops.instruction_sets) or "none: torch runs the LSTMs",
        "bfloat16": "multiplied" if found["bfloat16"] else "stored, and multiplied as float32",
    }
    msg.table([(name.replace("_", " "), value) for name, value in shown.items() if value != ""])
    raise typer.Exit
