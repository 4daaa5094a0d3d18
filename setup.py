"""Builds the compiled loops, which are optional: without a compiler the package installs and torch does the same."""

import hashlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = Path("spacy_elmo/kernels")
SOURCES = sorted(path.as_posix() for path in FOLDER.glob("*.c"))
HEADERS = sorted(path.as_posix() for pattern in ("*.h", "*.inc") for path in FOLDER.glob(pattern))
# no -ffast-math: linked into a library it switches off denormal numbers for the whole process
GNU = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-fvisibility=hidden"]


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


setup(
    ext_modules=[
        Extension(
            "spacy_elmo.kernels._loops",
            SOURCES,
            depends=HEADERS,
            define_macros=[("FINGERPRINT", f'"{fingerprint()}"')],
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildLoops, "bdist_wheel": WheelForAllPythons},
)
