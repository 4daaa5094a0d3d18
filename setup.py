"""Builds the package: the compiled loops, the page of the index, and files that are equal in every byte each time.

The loops are optional: without a compiler the package installs and torch does the same.
"""

import gzip
import hashlib
import os
import re
import sys
import tarfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

REPOSITORY = "https://github.com/spacy-elmo/spacy-elmo"  # also in CITATION.cff; see docs/releasing.md
INSTALL = """## Install

On Linux without a GPU, install the small build of torch first, or pip brings several GB of CUDA libraries:
```bash
pip install torch --index-url https://download.pytorch.org/whl/cpu
pip install "spacy-elmo[plot]"
python -m spacy elmo demo out    # writes vectors of sample sentences, and a picture of a word's senses
```

If there is no wheel for your system, pip builds the compiled loops, for which it needs a C compiler; without them
everything is slower. `pip install spacy-elmo-en-core-softmax` adds what `predict`, `evaluate` and tuning of `en_core`
need.

"""
FOLDER = Path("spacy_elmo/kernels")
SOURCES = sorted(path.as_posix() for path in FOLDER.glob("*.c"))
HEADERS = sorted(path.as_posix() for pattern in ("*.h", "*.inc") for path in FOLDER.glob(pattern))
# Aligned loops: without that their addresses, which any change moves, cost up to 10 % (en_core, batches of 32, AVX2 of
# an AMD EPYC).
# No -ffast-math: linked into a library it switches off denormal numbers for the whole process.
GNU = ["-O3", "-falign-loops=64", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-fvisibility=hidden"]


def fingerprint() -> str:
    """Of all sources; kernels/__init__.py computes the same and loads no library that was built from others."""
    parts = [Path(name).read_bytes().replace(b"\r\n", b"\n") for name in sorted(SOURCES + HEADERS)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


class BuildLoops(build_ext):
    """Compiler options by compiler."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/O2", "/fp:precise"]
        else:
            ext.extra_compile_args = GNU + self._supported(["-mprefer-vector-width=512"])
            ext.libraries = ["m"]
            if sys.platform == "linux":  # no names of folders in the library, and no symbols that nobody needs
                ext.extra_link_args = ["-Wl,--strip-all", "-Wl,--build-id=none"]
        super().build_extension(ext)

    def _supported(self, flags: list[str]) -> list[str]:
        import platform

        return flags if platform.machine().lower() in ("x86_64", "amd64") else []

    # a plain library that ctypes loads, no Python module: it has no PyInit function, and one file is for all Pythons

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + EXTENSION_SUFFIXES[-1]


class WheelForAllPythons(bdist_wheel):
    """The wheel's tags: any Python 3, this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class ReproducibleSdist(sdist):
    """The same bytes from the same files: no times, if SOURCE_DATE_EPOCH is set, and no names of users."""

    def make_archive(self, base_name: str, format: str, *arguments: object, **options: object) -> str:
        if format != "gztar" or "SOURCE_DATE_EPOCH" not in os.environ:
            archive: str = super().make_archive(base_name, format, *arguments, **options)
            return archive
        time = int(os.environ["SOURCE_DATE_EPOCH"])

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        folder = Path(str(options["base_dir"]))
        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path in (folder, *sorted(folder.rglob("*"))):
                tar.add(path, recursive=False, filter=plain)
        return name


def index_page(readme: str, version: str) -> str:
    """README for an index: pip in place of the clone, and addresses of this version's pages and pictures."""
    text = re.sub(r"## Set up\n.*?(?=\n## )", INSTALL.strip() + "\n", readme, count=1, flags=re.DOTALL)
    for package in ("en_core_softmax", "en_mini", "la_mini"):
        text = text.replace(f"pip install ./packages/{package}", f"pip install spacy-elmo-{package.replace('_', '-')}")
    pages, pictures = f"{REPOSITORY}/blob/v{version}/", f"{REPOSITORY}/raw/v{version}/"
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\g<1>{pictures}", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{pages}", text)


if __name__ == "__main__":
    found = re.search(r'^__version__ = "(.+)"$', Path("spacy_elmo/__init__.py").read_text("utf8"), re.MULTILINE)
    assert found is not None
    setup(
        long_description=index_page(Path("README.md").read_text("utf8"), found[1]),
        project_urls={
            "Source": REPOSITORY,
            "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
            "Issues": f"{REPOSITORY}/issues",
        },
        ext_modules=[
            Extension(
                "spacy_elmo.kernels._loops",
                SOURCES,
                depends=HEADERS,
                define_macros=[("FINGERPRINT", f'"{fingerprint()}"')],
                optional=True,
            )
        ],
        cmdclass={"build_ext": BuildLoops, "bdist_wheel": WheelForAllPythons, "sdist": ReproducibleSdist},
    )
