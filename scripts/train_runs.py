"""Train a config once for each seed, with `spacy train`, and note minutes and dev score beside each model.

A run that was trained before from the same config, corpora and biLM is left as it is, so a stopped command goes on.

    python scripts/train_runs.py configs/ner_elmo.cfg training/ner/elmo --seeds "0 1 2" [--section.setting value ...]
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from command import run_command
from messages import Messages
from spacy.util import load_config
from thinc.api import Config
from weasel.util import get_checksum, parse_config_overrides  # type: ignore[import-untyped]

from spacy_elmo import bilms
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing


def seeds_of(text: str) -> list[int]:
    """The seeds in a text, separated by blanks. Raises CommandError."""
    seeds = text.split()
    if not seeds or not all(seed.isdecimal() for seed in seeds):
        raise CommandError(Messages.SEEDS.format(got=text))
    return [int(seed) for seed in seeds]


def overrides_for(seed: int, more: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run; [system] seed is set too, as it is what spaCy saves and other parts may read."""
    return {**more, "system.seed": seed, "training.seed": seed}


def fingerprint(config: Config) -> str:
    """MD5 of the settings of a run and of the contents of all files they name, the embedded biLM included."""
    text = config.to_str()
    digest = hashlib.md5(text.encode())
    embedded = bilms.paths("en_mini") if "spacy-elmo.BiLM.v1" in text else ()
    for path in [*sorted(_files(config)), *embedded]:
        digest.update(get_checksum(path).encode())
    return digest.hexdigest()


def _files(tree: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for value in tree.values():
        if isinstance(value, Mapping):
            found |= _files(value)
        elif isinstance(value, str) and "/" in value and Path(value).is_file():
            found.add(value)
    return found


def train(config_path: Path, output: Path, overrides: Mapping[str, Any], gpu_id: int) -> None:
    """Run `spacy train` and write run.json. Raises CommandError where training fails; run.json is written last."""
    mark = fingerprint(load_config(config_path, dict(overrides), interpolate=True))
    record = output / "run.json"
    if record.is_file() and json.loads(record.read_text(encoding="utf-8"))["fingerprint"] == mark:
        print(f"{output}: trained before from the same settings and files")
        return
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "spacy", "train", str(config_path), "--output", str(output)]
    command += ["--gpu-id", str(gpu_id)]
    for name, value in overrides.items():
        command += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    begin = time.perf_counter()
    if subprocess.run(command, check=False).returncode:
        raise CommandError(Messages.TRAIN_FAILED.format(output=output, command=" ".join(command)))
    seconds = time.perf_counter() - begin
    meta = json.loads((output / "model-best" / "meta.json").read_text(encoding="utf-8"))
    run = {"fingerprint": mark, "seconds": round(seconds, 1), "gpu_id": gpu_id, "dev": meta["performance"]}
    with replacing(record, CommandError) as temporary:
        temporary.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(f"{output}: {seconds / 60:.1f} minutes")


def main(
    context: typer.Context,
    config_path: Path,
    output: Path,
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
) -> None:
    """Train CONFIG_PATH for each seed to OUTPUT/seed-N. Further options are settings, as `spacy train` takes them."""
    more = parse_config_overrides(list(context.args), None)
    for seed in seeds_of(seeds):
        train(config_path, output / f"seed-{seed}", overrides_for(seed, more), gpu_id)


if __name__ == "__main__":
    run_command(main, allow_extra_args=True, ignore_unknown_options=True)
