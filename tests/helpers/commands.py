"""spaCy's commands in this process, and a pipeline as an installed package."""

import subprocess
import sys
import venv
import warnings
from pathlib import Path

import spacy
from spacy.cli._util import app
from typer.testing import CliRunner, Result


def invoke(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
    """A command's result, its exit code checked: through spaCy's own app, without a process of its own."""
    spacy.registry.cli.get_all()  # as `python -m spacy` does: our commands come in by the entry point
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, f"{result.output}{result.exception!r}"
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return result


def run(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> str:
    """What a command prints, with one blank between words, since messages are wrapped."""
    return " ".join(invoke(*arguments, code=code, stdin=stdin).output.split())


def in_fresh_environment(model: Path, folder: Path, code: str) -> str:
    """What a program prints that finds a pipeline as the installed package en_with_elmo."""
    output = folder / "packages"
    output.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # spaCy leaves it to the garbage collector to close its files
        run("package", model, output, "--build", "wheel", "--name", "with_elmo")
    package = output / "en_with_elmo-0.0.0"
    assert "spacy-elmo" in (package / "meta.json").read_text(encoding="utf8")  # an installed package brings us along
    # a fresh environment, that sees the packages of this one but for the pipeline's
    fresh = folder / "fresh"
    venv.create(fresh)
    python = str(fresh / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    )
    paths = "\n".join(f"import site; site.addsitedir({path!r})" for path in sys.path if path.endswith("site-packages"))
    Path(site.stdout.strip(), "others.pth").write_text(paths, encoding="utf8")
    wheel = str(next(package.glob("dist/*.whl")))
    # this environment's pip, since a second one would need seconds to install
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, cwd=fresh)
    assert result.returncode == 0, result.stderr
    return result.stdout
