"""spaCy's commands in processes of their own, and a pipeline as an installed package."""

import subprocess
import sys
import venv
from pathlib import Path


def run(*arguments: str, code: int = 0) -> str:
    """As a user would, in a process of its own: that also checks the entry points."""
    command = [sys.executable, "-m", "spacy", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf8")
    assert result.returncode == code, result.stdout + result.stderr
    return " ".join((result.stdout + result.stderr).split())


def in_fresh_environment(model: Path, folder: Path, code: str) -> str:
    """What a program prints that finds a pipeline as the installed package en_with_elmo."""
    output = folder / "packages"
    output.mkdir()
    run("package", str(model), str(output), "--build", "wheel", "--name", "with_elmo")
    package = output / "en_with_elmo-0.0.0"
    assert "spacy-elmo" in (package / "meta.json").read_text(encoding="utf8")  # an installed package brings us along
    # a fresh environment, that sees the packages of this one but for the pipeline's
    fresh = folder / "fresh"
    venv.create(fresh, with_pip=True)
    python = str(fresh / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    )
    paths = "\n".join(f"import site; site.addsitedir({path!r})" for path in sys.path if path.endswith("site-packages"))
    Path(site.stdout.strip(), "others.pth").write_text(paths, encoding="utf8")
    wheel = str(next(package.glob("dist/*.whl")))
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, cwd=fresh)
    assert result.returncode == 0, result.stderr
    return result.stdout
