"""`elmo package`: a biLM as a Python package, which others install."""

import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from enum import Enum
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.version import InvalidVersion, Version
from spacy.cli._util import Arg, Opt

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from ..formats.atomic import replacing, replacing_folder, writing
from ..formats.names import GROUP as BILMS
from ..formats.names import PUBLISHED
from ..modules.loading import CARD, EMBEDDED, WEIGHTS
from ..pretraining import language_model as files
from ..pretraining.pack import pack
from . import shared
from .console import msg

Place = Enum("Place", {"inside": "inside", "apart": "apart", "none": "none"})
Built = Enum("Built", {"wheel": "wheel", "sdist": "sdist", "none": "none"})
_PYPROJECT = '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
_INSTALLATION = """
## Installation

Install spacy-elmo first, and then this package. pip does not get spacy-elmo by itself.
"""
_INIT = '''\
"""{description}."""

from pathlib import Path


def folder() -> Path:
    """Where the files are."""
    return Path(__file__).parent
'''


def package(
    model: str = Arg(..., metavar="MODEL", help=shared.MODEL),
    output: Path = Arg(..., metavar="OUT", help="Folder to write the package's folder in", file_okay=False),
    name: str = Opt(..., metavar="NAME", help="Name of the biLM where it is installed, such as la_mini"),
    bits: int = Opt(8, min=2, max=16, metavar="N", help="Bits of the matrices, as in pack"),
    softmax: Place = Opt(Place.inside, help="Where the softmax is; apart: in a second package; none: left out"),
    version: str = Opt("0.1.0", metavar="VERSION", help="Version of the package"),
    licence: str = Opt("", "--license", metavar="LICENSE", help="Licence of the weights, such as CC-BY-SA-4.0"),
    build: Built = Opt(Built.none, help="What to build in the package's dist; needs pip install build"),
    force: shared.Force = False,
) -> None:
    """Others install spacy-elmo, and then the package with pip. Then NAME names the biLM in add_pipe, in configs and in
    commands. A model card that is there already stays.
    """
    problem = number = None
    with suppress(InvalidVersion):
        number = Version(version)
    if not licence.isprintable():
        problem = f"--license is {licence!r}. Expected a name without line breaks, such as CC-BY-SA-4.0"
    elif number is None:
        problem = f"--version is {version!r}. Expected one that Python packages can have, such as 0.1.0 or 1.0rc1"
    elif not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or name in PUBLISHED:
        problem = f"--name is {name!r}. Expected small letters, digits and single _, and no name of a published biLM"
    elif name == EMBEDDED and softmax is not Place.apart:
        problem = f"--name is {name}, which names the embedded biLM, not one of a package. Give another name"
    elif softmax is Place.apart and files.softmax_folder(model) is None:
        problem = f"--softmax is apart, but {files.no_softmax(model)} Or give --softmax inside or none"
    elif build is not Built.none and find_spec("build") is None:
        problem = "the module build is missing. Expected it for --build: pip install build 'setuptools>=77' wheel"
    if problem is not None:
        raise CommandError(f"{problem}.")
    folders = [name, f"{name}_softmax"] if softmax.value == "apart" else [name]
    for folder in folders:
        marks = (f"spacy_elmo_{folder}/__init__.py",)
        shared.hold(output / folder, BiLMChoice(model).files, names=_names(folder), marks=marks, force=force)
    with shared.folder_of_bilm(model) as source, tempfile.TemporaryDirectory() as temporary:
        packed = Path(temporary) / "packed"
        pack(source, packed, bits=bits, softmax="none" if softmax.value == "none" else "float16")
        with ExitStack() as written, writing(output, CommandError):  # all are complete before the first appears
            for folder in folders:
                root = written.enter_context(replacing_folder(output / folder, _names(folder), CommandError))
                _write(root, output, folder, name, packed, folders, str(number), licence)
    for folder in folders:
        msg.good(f"{output / folder}: written. Before you publish it, edit spacy_elmo_{folder}/{CARD}, its model card.")
        if build.value != "none":
            _build(output / folder, build.value)
    if not licence:
        msg.warn("The package names no licence. The weights have that of their text: give --license.")


def _names(folder: str) -> list[str]:
    """Return the files that the folder of a package may have, but for its model card."""
    names = ("__init__.py", *files.FILES, files.COUNTS, files.DIGEST)
    return ["setup.cfg", "pyproject.toml", *(f"spacy_elmo_{folder}/{name}" for name in names)]


def _write(
    root: Path, output: Path, folder: str, name: str, packed: Path, folders: list[str], version: str, licence: str
) -> None:
    """Write one of the folders of a package to `root`; its model card, that of the biLM, if there is none."""
    of_bilm, module = folder == name, f"spacy_elmo_{folder}"
    names = {path.name for path in packed.iterdir()} - {files.DIGEST}
    if not of_bilm:
        files.write_digest(packed, packed / WEIGHTS)
        names = names & {files.SOFTMAX, files.WORDS, files.COUNTS} | {files.DIGEST}
    elif len(folders) > 1:
        names -= {files.SOFTMAX, files.COUNTS}
    about = {"name": name, "distribution": module.replace("_", "-"), "version": version, "module": module}
    about |= {"description": f"{'' if of_bilm else 'Softmax and words of '}{name}, a biLM for spacy-elmo"}
    key = "license_expression" if _is_expression(licence) else "license"
    about |= {"licence": f"{key} = {licence}\n" if licence else "", "group": BILMS if of_bilm else files.GROUP}
    about |= {"files": indent("\n".join(sorted(names | {CARD})), "    ")}
    (root / module).mkdir(parents=True)
    for file in names - {CARD}:
        shutil.copyfile(packed / file, root / module / file)
    setup = resources.files("spacy_elmo.cli").joinpath("package_setup.cfg").read_text(encoding="utf8")
    texts = {"setup.cfg": setup, "pyproject.toml": _PYPROJECT, f"{module}/__init__.py": _INIT}
    for file, text in texts.items():
        (root / file).write_text(text.format(**about), encoding="utf8", newline="\n")
    own, present = of_bilm and (packed / CARD).exists(), output / folder / module / CARD
    if present.exists():
        if own and (packed / CARD).read_bytes() not in present.read_bytes():
            msg.warn(
                f"{present}: stays as it is, and differs from the card of this biLM. Change what is not so, or delete "
                "the file and give the command again."
            )
        return
    told = (packed / CARD).read_bytes() if own else "# {name}\n\n{description}.\n".format(**about).encode()
    if licence and licence.encode() not in told:
        if of_bilm and b"licen" in told.lower():
            msg.warn(f"The model card tells of a licence, and not of {licence}: {folder}/{module}/{CARD} has both now.")
        told += f"\n## Licence\n\n{licence}\n".encode()
    (root / module / CARD).write_bytes(told + _INSTALLATION.encode() * (_INSTALLATION.encode() not in told))


def _is_expression(licence: str) -> bool:
    """Whether a licence is named as the index expects it, by an SPDX expression."""
    try:
        return canonicalize_license_expression(licence) == licence
    except InvalidLicenseExpression:
        return False


def _build(folder: Path, kind: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        # of a copy, since what an earlier build has left in a folder would get into the next one
        copy, made = Path(temporary, folder.name), Path(temporary, "made")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".git", "build", "dist", "*.egg-info"))
        command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(made), str(copy)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            told = (result.stderr or result.stdout).strip()[-300:]
            raise CommandError(
                f"{folder}: the {kind} was not built ({told}). Try pip install build 'setuptools>=77' wheel."
            )
        (folder / "dist").mkdir(exist_ok=True)
        for path in sorted(made.iterdir()):
            with replacing(folder / "dist" / path.name, CommandError) as target:
                shutil.copyfile(path, target)
            msg.good(folder / "dist" / path.name)
