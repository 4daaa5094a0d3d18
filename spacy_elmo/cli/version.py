"""`elmo --version`: what a bug report needs to say of this installation."""

import platform
from importlib.metadata import version as version_of
from pathlib import Path

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
        raise typer.BadParameter(
            "--json stands before a command's name. Expected it after --version, or after the name."
        )
    if not show:
        return
    import torch

    from ..formats.paths import sha256_of
    from ..inference.linear import has_bfloat16
    from ..kernels import loops_state
    from ..modules.loading import EMBEDDED, embedded_files

    loops = loops_state()
    found = {
        "spacy_elmo": version_of("spacy-elmo"),
        "bilm": EMBEDDED,
        "bilm_sha256": sha256_of(Path(embedded_files()[1]))[:12],
        "compiled_loops": loops.compiled,
        "compiled_loops_missing": loops.reason,
        "instruction_sets": list(loops.instruction_sets),
        "bfloat16": has_bfloat16(torch.device("cpu")),
        "torch": str(torch.__version__),
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        **{name: version_of(name) for name in PACKAGES},
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
    }
    if as_json:
        print_json(found)
        raise typer.Exit
    rows = [
        ("spacy-elmo", found["spacy_elmo"]),
        ("embedded biLM", f"{EMBEDDED}, SHA-256 {found['bilm_sha256']}..."),
        ("compiled loops", "yes" if loops.compiled else f"no, {loops.reason}; torch does the same"),
        ("instruction sets", ", ".join(loops.instruction_sets) or "none: torch runs the LSTMs"),
        ("bfloat16", "multiplied" if found["bfloat16"] else "stored, and multiplied as float32"),
        ("torch", f"{found['torch']} ({found['torch_capability']})"),
        *((name, found[name]) for name in PACKAGES),
        ("Python", found["python"]),
        ("platform", found["platform"]),
    ]
    msg.table(rows)
    raise typer.Exit
