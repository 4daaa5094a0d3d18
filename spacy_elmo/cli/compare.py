"""`elmo compare`: the same networks trained with ELMo and without it, to see what it brings on one's own data."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import spacy
import typer
from spacy.cli._util import Arg, Opt, app, setup_gpu, show_validation_error, string_to_list
from spacy.cli.init_config import Optimizations
from spacy.cli.train import train
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import DocBin
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Config, fix_random_seed

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError
from ..formats.atomic import replacing
from ..formats.paths import sha256_of
from . import shared
from .console import msg
from .init_config import task_config, without_elmo

SCORES = "scores.json"
SETTINGS = shared.OTHERS_TOO  # other options are settings of the training
_DATA = "Training data: .spacy, .conllu, .iob, .conll, .json"
_DEV, _TEST = "Development data, by which the best step is chosen", "Data to score on; default: that of --dev"
_BATCH, _EPOCHS, _LEAST_PATIENCE = 1000, 100, 400  # words of an update; what a small text waits for a better score
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
    train_file: Path = Opt(..., "--train", metavar="FILE", exists=True, dir_okay=False, help=_DATA),
    dev_file: Path = Opt(..., "--dev", metavar="FILE", exists=True, dir_okay=False, help=_DEV),
    test_file: Path | None = Opt(None, "--test", metavar="FILE", exists=True, dir_okay=False, help=_TEST),
    pipeline: str = Opt("ner", "--pipeline", "-p", metavar="NAMES", help="Components, as in spacy elmo init-config"),
    lang: shared.LangOfBiLM = None,
    model: shared.BiLMName = None,
    optimize: Optimizations = Opt(Optimizations.efficiency, "--optimize", "-o", help="Size of the networks"),
    vectors: str | None = Opt(None, metavar="PIPELINE", help="Pipeline with static vectors for both networks, too"),
    seeds: int = Opt(1, min=1, metavar="N", help="Trainings of each network; 3 tell differences from chance"),
    gpu_id: shared.GpuId = -1,
    force: shared.Force = False,
) -> None:
    """The networks are the same but for ELMo. OUT gets the pipelines (elmo-0/model-best and baseline-0/model-best for
    seed 0) and scores.json. Settings of the training are given as to spacy train: --training.max_steps 2000. A command
    that was stopped goes on after the last training that ended.
    """
    overrides = shared.overrides_of(ctx.args)
    networks = [ALONE, ELMO] if vectors is None else [ALONE, ELMO, VECTORS, BOTH]
    files = {"train": train_file, "dev": dev_file} | ({} if test_file is None else {"test": test_file})
    told = {name: f"{path.absolute()}, SHA-256 {sha256_of(path)[:12]}" for name, path in files.items()}
    settings: dict[str, Any] = {"test": told["dev"], **told, "pipeline": pipeline, "lang": lang, "model": model}
    settings |= {"optimize": optimize.value, "vectors": vectors, "gpu_id": gpu_id, "overrides": overrides}
    kept: list[str | Path] = [*files.values(), *filter(None, [vectors]), *BiLMChoice(model).files]
    written = [SCORES, "corpus", *(f"{name}.cfg" for name in FOLDERS.values())]
    written += [f"{name}-{seed}" for name in FOLDERS.values() for seed in range(seeds)]
    shared.hold(output, kept, names=written, marks=(SCORES,), beside=force)
    runs = _earlier(output, settings, force)
    bilm = None if model is None else str(Path(model).absolute()) if Path(model).exists() else model
    names = [name.strip() for name in string_to_list(pipeline)]
    config = task_config(lang or BiLMChoice(model, None).language, names, optimize.value, bilm, {})
    with show_validation_error(title="a setting of the training is wrong", show_config=False, hint_fill=False):
        made = Config().from_str(config.to_str(), overrides=overrides)
        training = registry.resolve(made["training"], schema=ConfigSchemaTraining)
    if unknown := sorted(made["training"].keys() - training.keys()):  # spaCy ignores them
        raise CommandError(f"training.{unknown[0]} is no setting. Expected one of {', '.join(sorted(training))}.")
    _write(output, settings, runs)
    data = {name: _converted(path, output / "corpus" / f"{name}.spacy") for name, path in files.items()}
    bare = [name for name in names if name in ("ner", "beam_ner")]  # spaCy refuses others that get no labels
    if bare and not any(doc.ents for doc in DocBin().from_disk(data["train"]).get_docs(Vocab())):
        expected = "Expected annotations of all components of --pipeline."
        raise CommandError(f"{train_file}: no annotations of {', '.join(bare)}. {expected}")
    words = sum(map(len, DocBin().from_disk(data["train"]).tokens))
    patience = max(_LEAST_PATIENCE, words // _BATCH * _EPOCHS)
    if patience < training["patience"] and "training.patience" not in overrides:
        config["training"].update(patience=patience, eval_frequency=patience // 4)
        msg.info(f"{words:,} words are few: a training ends after {patience} updates without a better score")
    if training["max_steps"]:  # without an evaluation the network of the first one would be saved, which is untrained
        config["training"]["eval_frequency"] = min(config["training"]["eval_frequency"], training["max_steps"])
    wanted = [(network, seed) for seed in range(seeds) for network in networks]
    for number, (network, seed) in enumerate(wanted, start=1):
        if any(run[:2] == (network, seed) for run in runs):
            continue
        msg.divider(f"{number} of {len(wanted)}: {network}, seed {seed}")
        runs.append(_run(network, seed, config, vectors, output, data, overrides, gpu_id))
        _write(output, settings, runs)
    of = {network: [run for run in runs if run.network == network and run.seed < seeds] for network in networks}
    _show(of, config["training"]["score_weights"], "the development part" if test_file is None else str(test_file))
    msg.good(f"{output}: the pipelines, such as {output / 'elmo-0' / 'model-best'}, and {SCORES}")


def _earlier(output: Path, settings: Mapping[str, Any], force: bool) -> list[Run]:
    """Return the runs that OUT has already. Raises CommandError if they are of other settings."""
    if force or not (output / SCORES).exists():
        return []
    try:
        found = json.loads((output / SCORES).read_text(encoding="utf8"))
        earlier, runs = dict(found["settings"]), [Run(**run) for run in found["runs"]]
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{output / SCORES}: not read ({error}). Give a new folder, or delete this one.") from error
    old, new = ({**given, **given.get("overrides", {}), "overrides": None} for given in (earlier, settings))
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if runs and changed:
        told = "; ".join(f"{name} = {old.get(name)}, but now it is {new.get(name)}" for name in changed)
        expected = "Expected the same command and data: give a new folder, or add --force to train all again"
        raise CommandError(f"{output}: its trainings had {told}. {expected}.")
    return runs


def _write(output: Path, settings: Mapping[str, Any], runs: list[Run]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    written = {"settings": settings, "runs": [run._asdict() for run in runs]}
    shared.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", output / SCORES)


def _converted(file: Path, target: Path) -> Path:
    """Write a file as .spacy by `spacy convert`, unless it is one."""
    expected = ".spacy, .conllu, .iob, .conll or .json, as spacy convert reads them. Of another format, such as a "
    expected += "table, or texts with entities by offsets, write the docs to a .spacy file with spaCy's DocBin: "
    expected += "docs/training.md of spacy-elmo has the lines"
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as said:  # its advice is on other uses
        try:
            made = file
            if (kind := file.suffix.lower()) != ".spacy":
                app(["convert", str(file), folder, "--converter", kind[1:] or "auto"], standalone_mode=False)
                (made,) = Path(folder).iterdir()
            n_docs = len(DocBin().from_disk(made))
        except (SystemExit, Exception) as error:  # spaCy says why, or its reader failed anywhere
            why = re.sub(r"\x1b\[[\d;]*m|✘ ", "", said.getvalue()).strip() if isinstance(error, SystemExit) else error
            raise CommandError(f"{file}: not read ({why}). Expected {expected}.") from error
        if not n_docs:
            raise CommandError(f"{file}: no sentence in it. Expected {expected}.")
        if made != file:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target, CommandError) as temporary:
                shutil.copyfile(made, temporary)
    if "No sentence boundaries" in said.getvalue():
        msg.warn(f"{file}: no sentence boundaries. Expected an empty line after each sentence.")
    return file if made == file else target


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
    text = made.to_str()
    if network in (VECTORS, BOTH):
        made["paths"]["vectors"], made["initialize"]["vectors"] = vectors, "${paths.vectors}"
        text = made.to_str().replace("include_static_vectors = false", "include_static_vectors = true")
    path, folder = output / f"{FOLDERS[network]}.cfg", output / f"{FOLDERS[network]}-{seed}"
    shared.write_text(text + "\n", path)
    paths = {f"paths.{name}": str(data[name]) for name in ("train", "dev")}
    start = time.perf_counter()
    try:
        train(path, folder, use_gpu=gpu_id, overrides={**paths, "system.seed": seed, **overrides})
    except ValueError as error:
        if not str(error).startswith(("[E143]", "[E867]", "[E923]")):  # too few labels, or no examples
            raise
        expected = "Expected annotations of all components of --pipeline, for textcat of two labels or more."
        raise CommandError(f"{data['train']}: {error} {expected}") from error
    minutes = (time.perf_counter() - start) / 60
    best = folder / "model-best"
    fix_random_seed()
    setup_gpu(gpu_id, silent=True)
    nlp = spacy.load(best)
    reader = nlp.config.interpolate()["corpora"]["dev"] | {"path": str(data.get("test", data["dev"]))}
    examples = list(registry.resolve({"corpus": reader})["corpus"](nlp))
    nlp.evaluate(examples[:1])  # what is read and compiled for the first doc does not count in the words a second
    scores = nlp.evaluate(examples)
    megabytes = sum(file.stat().st_size for file in best.rglob("*") if file.is_file()) / 1e6
    kept = {name: value for name, value in scores.items() if isinstance(value, float)}
    return Run(network, seed, minutes, megabytes, kept.pop("speed"), kept)


def _show(of: Mapping[str, list[Run]], weights: Mapping[str, float | None], part: str) -> None:
    """Print the scores by which spaCy judges the components, what ELMo changes, and what it costs."""
    first, *_ = runs = next(iter(of.values()))
    weighty = {name for name, weight in weights.items() if weight}  # with the precision and recall of an F1 score
    weighty |= {f"{name[:-1]}{letter}" for name in weighty if name.endswith("_f") for letter in "pr"}
    judged = [name for name in first.scores if name in weights and name in weighty]
    rows = [_row(name, {network: [100 * run.scores[name] for run in of[network]] for network in of}) for name in judged]
    costs = {"minutes of training": ("minutes", 1), "megabytes": ("megabytes", 0)}
    costs["words a second"] = "words_per_second", 0
    for title, (field, digits) in costs.items():
        told = [f"{mean(getattr(run, field) for run in group):,.{digits}f}" for group in of.values()]
        rows.append([title, *told, *[""] * (len(of) // 2)])
    msg.divider(f"scores in % on {part}")
    differences = ["what ELMo changes", "beside vectors"][: len(of) // 2]
    msg.table(rows, header=("", *of, *differences), divider=True, max_col=40)
    if len(runs) == 1:
        msg.text("One training of each: another seed changes the scores too. --seeds 3 tells differences from chance.")
    else:
        msg.text(f"Means of {len(runs)} seeds ± their standard deviation. Within seeds: the scores of the two overlap.")
    if not judged:
        msg.warn(f"nothing is scored, because {part} has no annotations of these components. Expected annotated data.")
    if (alike := first.scores.get("token_acc", 1)) < 0.95:
        msg.warn(
            f"spaCy's tokenizer finds {alike:.0%} of the words of {part}, and the others are never right. To train and "
            "score on the data's own words, add --corpora.train.gold_preproc true --corpora.dev.gold_preproc true."
        )


def _row(name: str, values: Mapping[str, list[float]]) -> list[str]:
    """Return the means of a score, and what ELMo changes in each pair of networks, with the share of the errors."""
    row = [name]
    for group in values.values():
        row.append(f"{mean(group):.1f}" + (f" ± {stdev(group):.1f}" if len(group) > 1 else ""))
    for alone, elmo in ((ALONE, ELMO), (VECTORS, BOTH))[: len(values) // 2]:
        before, after = values[alone], values[elmo]
        change = mean(after) - mean(before)
        told = f"{change:+.1f}"
        if mean(before) < 100:
            share = change / (100 - mean(before))
            told += f", {share:.0%} of the errors" if share > -0.005 else f", {-share:.0%} more errors"
        overlap = min(after) <= max(before) and min(before) <= max(after)
        row.append(told + " (within seeds)" * (overlap and len(before) > 1))
    return row
