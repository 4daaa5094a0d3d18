"""`elmo --version`: what a bug report needs to say of this installation."""

import platform
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ..formats.paths import sha256_of
from ..modules.loading import EMBEDDED, embedded_files
from ..modules.loops import loops_state
from .console import msg, print_json

DIGITS = 12  # of a SHA-256: enough to tell files apart
PACKAGES = ("spacy", "thinc", "h5py", "numpy")


def version(
    show: Annotated[
        bool, typer.Option("--version", help="Show the versions that a report of a bug should name, and exit")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print JSON only")] = False,
) -> None:
    """Handle the options that stand before a command's name."""
    if as_json and not show:
        raise typer.BadParameter(
            "--json was given before a command's name. Expected it after --version, or after the command's name."
        )
    if not show:
        return
    found = installation()
    if as_json:
        print_json(found)
        raise typer.Exit
    loops = "yes" if found["compiled_loops"] else f"no, {found['compiled_loops_missing']}; torch does the same"
    instructions = ", ".join(found["instruction_sets"]) or "none of AVX-512 and AMX: torch runs the LSTMs"
    rows = [
        ("spacy-elmo", found["spacy_elmo"]),
        ("embedded biLM", f"{found['bilm']}, SHA-256 {found['bilm_sha256']}..."),
        ("compiled loops", loops),
        ("instruction sets", instructions),
        ("torch", f"{found['torch']} ({found['torch_capability']})"),
        *((name, found[name]) for name in PACKAGES),
        ("Python", found["python"]),
        ("platform", found["platform"]),
    ]
    msg.table(rows)
    raise typer.Exit


def installation() -> dict[str, Any]:
    """Return the versions of this package and of what it runs on, by name. All values are for JSON.

    The embedded biLM has its name and the first digits of the SHA-256 of its weights. "torch_capability" is the
    instruction set that torch has chosen on this machine.
    """
    loops = loops_state()
    return {
        "spacy_elmo": version_of("spacy-elmo"),
        "bilm": EMBEDDED,
        "bilm_sha256": sha256_of(Path(embedded_files()[1]))[:DIGITS],
        "compiled_loops": loops.compiled,
        "compiled_loops_missing": loops.reason,
        "instruction_sets": list(loops.instruction_sets),
        "torch": str(torch.__version__),
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        **{name: version_of(name) for name in PACKAGES},
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
    }
