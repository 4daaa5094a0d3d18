"""Builds sanitized loops, and runs the tests of the loops and random calls with each instruction set.

python -m scripts.harness.sanitize --calls 10000
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from .build import BUILDS, ROOT, build, environment

# three build libraries of their own, one loads libraries that were not built, and one compares AMX with the processor's
_SKIPPED = (*("test_build.py", "test_emulated_amx.py", "test_other_processors.py", "test_loading.py", "test_state.py"),)
_TESTS = ["tests/kernels", "tests/inference/lstm/test_stacks.py"]


def main() -> None:
    """Run all builds. The exit code is 1 if a run of any of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "sanitize", help="of the sanitized libraries")
    parser.add_argument("--calls", type=int, default=10_000, help="random calls with each instruction set")
    parser.add_argument("--seed", type=int, default=0, help="of the random calls")
    parser.add_argument("--only", choices=BUILDS, help="one instruction set")
    arguments = parser.parse_args()
    failed = []
    for name in [arguments.only] if arguments.only else BUILDS:
        package = build(name, arguments.folder)
        random_calls = [
            "-m",
            "scripts.harness.sanitize.random_calls",
            str(arguments.calls),
            str(arguments.seed),
            str(package),
        ]
        for title, command in (("tests", _tests(package)), ("random calls", random_calls)):
            start = time.monotonic()
            code = subprocess.run([sys.executable, *command], cwd=package, env=environment(package)).returncode
            print(f"{name}, {title}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
            if code:
                failed.append(f"{name}, {title}")
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def _tests(package: Path) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(ROOT)]
    options += ["-o", f"pythonpath={package} {ROOT / 'tests' / 'helpers'}"]
    options += [f"--ignore={ROOT / 'tests' / 'kernels' / name}" for name in _SKIPPED]
    return ["-m", "pytest", *options, *(str(ROOT / name) for name in _TESTS)]


if __name__ == "__main__":
    main()
