"""`elmo compare`: the same networks trained with ELMo and without it, to see what it brings on one's own data."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import spacy
import typer
from spacy.cli._util import Arg, Opt, app, parse_config_overrides, setup_gpu, string_to_list
from spacy.cli.init_config import Optimizations
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.util import registry
from thinc.api import Config, fix_random_seed

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from .console import msg, telling_if_stopped
from .init_config import task_config, without_elmo
from .shared import Force, GpuId, write_text

SCORES = "scores.json"
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}  # other options are settings of the training
ALONE, ELMO = "x alone", "[x; ELMo]"
VECTORS, BOTH = "x with vectors", "[x with vectors; ELMo]"
FOLDERS = {ALONE: "baseline", ELMO: "elmo", VECTORS: "vectors", BOTH: "vectors_elmo"}


class Run(NamedTuple):
    """What was measured of one training. minutes: of the training; megabytes: of the saved pipeline."""

    network: str
    seed: int
    minutes: float
    megabytes: float
    words_per_second: float
    scores: dict[str, float]


def compare(
    ctx: typer.Context,
    output: Path = Arg(..., metavar="OUT", help="Folder for the pipelines and scores.json", file_okay=False),
    train_file: Path = Opt(..., "--train", metavar="FILE", help="Training data: .spacy, .conllu, .iob, .conll, .json"),
    dev_file: Path = Opt(..., "--dev", metavar="FILE", help="Development data, by which the best step is chosen"),
    test_file: Path | None = Opt(None, "--test", metavar="FILE", help="Data to score on; default: that of --dev"),
    pipeline: str = Opt("ner", "--pipeline", "-p", metavar="NAMES", help="Components, as in spacy elmo init-config"),
    lang: str | None = Opt(None, "--lang", "-l", metavar="CODE", help="Language; default: that of the biLM, or en"),
    model: str | None = Opt(None, "--model", "-m", metavar="MODEL", help="biLM: its folder or name; default: en_mini"),
    optimize: Optimizations = Opt(Optimizations.efficiency, "--optimize", "-o", help="Size of the networks"),
    vectors: str | None = Opt(
        None, metavar="PIPELINE", help="Pipeline with static vectors: both networks are trained on them, too"
    ),
    seeds: int = Opt(1, min=1, metavar="N", help="Trainings of each network; 3 tell differences from chance"),
    gpu_id: GpuId = -1,
    force: Force = False,
) -> None:
    """Train with ELMo and without it, and compare.

    The networks are the same but for ELMo. OUT gets the pipelines (elmo-0/model-best and baseline-0/model-best for seed
    0) and scores.json. Settings of the training are given as to spacy train: --training.max_steps 2000. A command that
    was stopped goes on after the last training that ended.
    """
    overrides = parse_config_overrides(ctx.args)
    networks = [ALONE, ELMO] if vectors is None else [ALONE, ELMO, VECTORS, BOTH]
    files = {"train": train_file, "dev": dev_file} | ({} if test_file is None else {"test": test_file})
    settings = {name: str(path.absolute()) for name, path in ({"test": dev_file} | files).items()} | {
        "pipeline": pipeline,
        "lang": lang,
        "model": model,
        "optimize": optimize.value,
        "vectors": vectors,
        "gpu_id": gpu_id,
        "overrides": overrides,
    }
    runs = _earlier(output, settings, force)
    for path in files.values():
        if not path.is_file():
            expected = "Expected annotated data: .spacy, .conllu, .iob, .conll or .json."
            raise CommandError(f"{path}: no such file. {expected}")
    bilm = None if model is None else str(Path(model).absolute()) if Path(model).exists() else model
    paths = dict.fromkeys(("elmo_options", "elmo_weights", "knowledge_base"))
    names = [name.strip() for name in string_to_list(pipeline)]
    config = task_config(lang or BiLMChoice(model, None).language, names, optimize.value, paths, bilm)
    steps, every = (
        overrides.get(f"training.{key}", config["training"][key]) for key in ("max_steps", "eval_frequency")
    )
    untrained = (
        f"max_steps is {steps}, so the networks are scored untrained: set --training.eval_frequency to {steps} or less."
    )
    if 0 < steps < every:
        msg.warn(untrained)
    _write(output, settings, runs)
    data = {name: _converted(path, output / "corpus" / f"{name}.spacy") for name, path in files.items()}
    wanted = [(network, seed) for seed in range(seeds) for network in networks]
    with telling_if_stopped(f"stopped. The same command goes on after the trainings in {output / SCORES}."):
        for number, (network, seed) in enumerate(wanted, start=1):
            if any((run.network, run.seed) == (network, seed) for run in runs):
                continue
            msg.divider(f"{number} of {len(wanted)}: {network}, seed {seed}")
            runs.append(_run(network, seed, config, vectors, output, data, overrides, gpu_id))
            _write(output, settings, runs)
    runs = [run for run in runs if (run.network, run.seed) in wanted]
    _show(runs, networks, config, "the development part" if test_file is None else str(test_file))
    if 0 < steps < every:
        msg.warn(untrained)
    msg.good(f"{output}: the pipelines, such as {output / 'elmo-0' / 'model-best'}, and {SCORES}")


def _earlier(output: Path, settings: Mapping[str, Any], force: bool) -> list[Run]:
    """Return the runs that OUT has already. Raises CommandError if they are of other settings."""
    if not (output / SCORES).exists():
        if not force and output.exists() and any(output.iterdir()):
            raise CommandError(f"{output}: has files, but no {SCORES}. Give a new folder, or add --force.")
        return []
    try:
        found = json.loads((output / SCORES).read_text(encoding="utf8"))
        earlier, runs = found["settings"], [Run(**run) for run in found["runs"]]
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{output / SCORES}: not read ({error}). Give a new folder, or delete this one.") from error
    changed = [name for name, value in settings.items() if earlier.get(name) != value] if runs else []
    if changed and not force:
        raise CommandError(
            f"{output}: its trainings had other values of {', '.join(changed)}. Expected the same command: give a new "
            "folder, or add --force to train all again."
        )
    return [] if force else runs


def _write(output: Path, settings: Mapping[str, Any], runs: list[Run]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    written = {"settings": settings, "runs": [run._asdict() for run in runs]}
    write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", output / SCORES)


def _converted(file: Path, target: Path) -> Path:
    """Write a file as .spacy by `spacy convert`, unless it is one."""
    if file.suffix == ".spacy":
        try:
            n_docs = len(DocBin().from_disk(file))
        except Exception as error:  # whatever its bytes make msgpack and zlib raise
            raise CommandError(
                f"{file}: not read ({error}). Expected a .spacy file, as spaCy's DocBin writes it."
            ) from error
        if not n_docs:
            raise CommandError(f"{file}: no doc in it. Expected a .spacy file with some.")
        return file
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with redirect_stdout(io.StringIO()) as said:  # its advice is on other uses
                app(["convert", str(file), folder], standalone_mode=False)
            (made,) = Path(folder).iterdir()
        except (SystemExit, Exception) as error:  # spaCy says why, or its reader failed anywhere
            print(said.getvalue(), end="")
            why = "see above" if isinstance(error, SystemExit) else error
            raise CommandError(
                f"{file}: not converted ({why}). Expected .conllu, .iob, .conll or .json, as spacy convert reads them. "
                "Of another format, such as a table, write the docs to a .spacy file with spaCy's DocBin."
            ) from error
        if "No sentence boundaries" in said.getvalue():
            msg.warn(f"{file}: no sentence boundaries. Expected an empty line after each sentence.")
        if not len(DocBin().from_disk(made)):
            raise CommandError(f"{file}: no sentence in it. Expected .conllu, .iob, .conll or .json with some.")
        shutil.copyfile(made, target)
    return target


def _run(
    network: str,
    seed: int,
    config: Config,
    vectors: str | None,
    output: Path,
    data: Mapping[str, Path],
    overrides: Mapping[str, Any],
    gpu_id: int,
) -> Run:
    made = config.copy() if network in (ELMO, BOTH) else without_elmo(config)
    if network in (VECTORS, BOTH):
        made["paths"]["vectors"] = vectors
        made["initialize"]["vectors"] = "${paths.vectors}"
        for section in _sections(made["components"]):
            if "include_static_vectors" in section:
                section["include_static_vectors"] = True
    path, folder = output / f"{FOLDERS[network]}.cfg", output / f"{FOLDERS[network]}-{seed}"
    write_text(made.to_str() + "\n", path)
    paths = {f"paths.{name}": str(data[name]) for name in ("train", "dev")}
    start = time.perf_counter()
    train(path, folder, use_gpu=gpu_id, overrides={**paths, "system.seed": seed, **overrides})
    minutes = (time.perf_counter() - start) / 60
    best = folder / "model-best"
    fix_random_seed()
    setup_gpu(gpu_id, silent=True)
    nlp = spacy.load(best)
    reader = nlp.config.interpolate()["corpora"]["dev"] | {"path": str(data.get("test", data["dev"]))}
    scores = nlp.evaluate(list(registry.resolve({"corpus": reader})["corpus"](nlp)))
    megabytes = sum(file.stat().st_size for file in best.rglob("*") if file.is_file()) / 1e6
    kept = {name: value for name, value in scores.items() if isinstance(value, float)}
    return Run(network, seed, minutes, megabytes, kept.pop("speed"), kept)


def _sections(tree: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for value in tree.values():
        if isinstance(value, dict):
            yield value
            yield from _sections(value)


def _show(runs: list[Run], networks: list[str], config: Config, part: str) -> None:
    """Print the scores by which spaCy judges the components, what ELMo changes, and what it costs."""
    n = len(runs) // len(networks)
    of = {network: [run for run in runs if run.network == network] for network in networks}
    weights = config["training"]["score_weights"]
    judged = [name for name in runs[0].scores if name in weights and (weights[name] or name.endswith(("_p", "_r")))]
    rows = [_row(name, of, networks) for name in judged]
    costs: list[tuple[str, str, int]] = [
        ("minutes of training", "minutes", 1),
        ("megabytes", "megabytes", 0),
        ("words a second", "words_per_second", 0),
    ]
    for title, field, digits in costs:
        told = [f"{mean(getattr(run, field) for run in of[network]):,.{digits}f}" for network in networks]
        rows.append([title, *told, *[""] * (len(networks) // 2)])
    msg.divider(f"scores in % on {part}")
    differences = ["what ELMo changes", "beside vectors"][: len(networks) // 2]
    msg.table(rows, header=("", *networks, *differences), divider=True, max_col=40)
    if n == 1:
        msg.text("One training of each: another seed changes the scores too. --seeds 3 tells differences from chance.")
    else:
        msg.text(f"Means of {n} seeds ± their standard deviation. Within seeds: the scores of the two overlap.")


def _row(name: str, of: Mapping[str, list[Run]], networks: list[str]) -> list[str]:
    """Return the means of a score, and what ELMo changes in each pair of networks, with the share of the errors."""
    values = {network: [100 * run.scores[name] for run in of[network]] for network in networks}
    row = [name, *map(_mean_of, values.values())]
    for alone, elmo in (networks[k : k + 2] for k in range(0, len(networks), 2)):
        before, after = values[alone], values[elmo]
        told = f"{mean(after) - mean(before):+.1f}"
        if mean(before) < 100:
            told += f", {(mean(after) - mean(before)) / (100 - mean(before)):.0%} of the errors"
        overlap = min(after) <= max(before) and min(before) <= max(after)
        row.append(told + " (within seeds)" * (overlap and len(before) > 1))
    return row


def _mean_of(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")
