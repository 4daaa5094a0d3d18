"""One biLM for many African languages beside one for each: how well pipelines on them find entities.

    OMP_NUM_THREADS=1 python -m scripts.languages.compare corpus/languages training/languages swa yor ibo hau sna

The first folder is what `scripts.languages.texts` writes. The second one gets the biLMs: `all` of all languages,
tuned_LANGUAGE that starts from it and goes on with the language's own text, own_LANGUAGE of that text alone, each with
the settings of init-pretrain-config; and floret/LANGUAGE, static vectors of the same text. The networks are those of
`elmo compare`, trained until they get no better, on the words of the corpus. What was measured is put into
results/languages_entities.json. A command that was stopped goes on: what is there is not trained again.
"""

from __future__ import annotations

import json
import shutil
import time
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.cli.train import train
from spacy.training import Corpus
from thinc.api import Config, fix_random_seed

from spacy_elmo.cli.init_config import task_config, without_elmo
from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing
from spacy_elmo.pretraining.evaluating import read_metrics
from spacy_elmo.pretraining.folder import METRICS

from ..bilms.embeddings import train_floret
from ..runs.experiments import keep_result
from ..shared import origin, run_command, run_elmo

GOLD = {f"corpora.{part}.gold_preproc": True for part in ("train", "dev")}
RUN = ["--training.workers", "1"]
LANGUAGE = "xx"  # spaCy has few of them


def train_bilm(text: Path, folder: Path, *more: str, init: Path | None = None, language: str | None = None) -> Path:
    """Train a biLM on a text, unless it is trained, and return its files. more: settings; language: of spaCy."""
    done, config = folder / "done", folder.with_suffix(".cfg")
    if not config.is_file():
        config.parent.mkdir(parents=True, exist_ok=True)
        start = [] if init is None else ["--init", str(init)]
        start += [] if language is None else ["--lang", language]
        run_elmo("init-pretrain-config", str(config), "--train", str(text), *start)
    if not done.is_file():
        run_elmo("pretrain", str(config), str(folder), *RUN, *more)
        done.touch()
    return folder / "model-best"


def facts_of(folder: Path) -> dict[str, Any]:
    """Return what the training of a biLM took, and the size of its weights."""
    last = read_metrics(folder / METRICS)[-1]
    megabytes = (folder / "model-best" / "weights.hdf5").stat().st_size / 1e6
    measured = {"minutes": last.seconds / 60, "perplexity": last.perplexity, "megabytes": megabytes}
    return {"tokens": last.tokens, **{key: round(value, 1) for key, value in measured.items()}}


def config_of(bilm: Path | None, vectors: Path | None) -> Config:
    """Return the config of a network. bilm and vectors: what it has beside the features of its own."""
    config = task_config(LANGUAGE, ["ner"], "efficiency", None if bilm is None else str(bilm.absolute()), {})
    config = without_elmo(config) if bilm is None else config
    config["nlp"]["after_pipeline_creation"] = {"@callbacks": "spacy-elmo.NumpyGemm.v1"}
    if vectors is None:
        return config
    config["initialize"]["vectors"] = str(vectors)
    text = config.to_str().replace("include_static_vectors = false", "include_static_vectors = true")
    return Config().from_str(text, interpolate=False)


def measure(config: Config, corpus: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Train a network in FOLDER, which is deleted after that, and return what was measured, scores in %."""
    paths = {f"paths.{part}": str(corpus / f"{part}.spacy") for part in ("train", "dev")}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config.to_disk(folder / "config.cfg")
    begun, begun_cpu = time.perf_counter(), time.process_time()
    train(folder / "config.cfg", folder, overrides={**paths, **GOLD, "system.seed": seed})
    minutes, cpu_minutes = (time.perf_counter() - begun) / 60, (time.process_time() - begun_cpu) / 60
    fix_random_seed()
    best = folder / "model-best"
    nlp = spacy.load(best)
    test = nlp.evaluate(list(Corpus(corpus / "test.spacy", gold_preproc=True)(nlp)))
    measured = {
        "dev": 100 * nlp.meta["performance"]["ents_f"],
        "test": 100 * test["ents_f"],
        "minutes": minutes,
        "cpu_minutes": cpu_minutes,
        "megabytes": sum(file.stat().st_size for file in best.rglob("*") if file.is_file()) / 1e6,
        "words_per_second": test["speed"],
    }
    of_type = {label: round(100 * scores["f"], 2) for label, scores in test["ents_per_type"].items()}
    shutil.rmtree(folder)
    return {key: round(value, 2) for key, value in measured.items()} | {"types": of_type}


def bilm_of(name: str, language: str, text: Path, out: Path, everything: Path, tokens: int) -> Path | None:
    """Return the files of a biLM, which is trained if it is not there. None: the network has no biLM."""
    if not name:
        return None
    if name == "own":
        return train_bilm(text, out / f"own_{language}")
    length = ["--training.total_tokens", str(tokens), "--evaluation.every", str(max(1, tokens // 10 // 5120))]
    common = train_bilm(everything, out / "all", *length)
    return common if name == "one for all" else train_bilm(text, out / f"tuned_{language}", init=common)


def main(
    corpora: Path,
    out: Path,
    languages: Annotated[list[str], typer.Argument(help="Of the folders of CORPORA")],
    seeds: int = 3,
    tokens: Annotated[int, typer.Option(help="Length of the run of all languages")] = 17_000_000,
) -> None:
    """Train what is compared for LANGUAGES, and score it: each network for all of them, and then the next seed."""
    kept = out / "scores.json"
    scores = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    for seed, name, language in product(range(seeds), ("", "one for all", "tuned", "own"), languages):
        text, vectors = corpora / "text" / f"{language}.txt", out / "floret" / language
        if not vectors.is_dir():
            (part := vectors.with_suffix(".part")).mkdir(parents=True, exist_ok=True)
            train_floret(text, part, LANGUAGE)
            part.rename(vectors)
        bilm = bilm_of(name, language, text, out, corpora / "all.txt", tokens)
        for x, static in (("x", None), ("x with floret", vectors)):
            key = f"{language}/{f'[{x}; {name}]' if name else x}/seed-{seed}"
            if key not in scores:
                print(key, flush=True)
                scores[key] = {
                    **origin(),
                    **measure(config_of(bilm, static), corpora / language, out / "training", seed),
                }
                with replacing(kept, CommandError) as temporary:
                    temporary.write_text(json.dumps(scores), encoding="utf-8")
            keep_result("languages_entities", key, scores[key])
            if bilm:
                keep_result("languages_entities", f"{language}/{name}", facts_of(bilm.parent))


if __name__ == "__main__":
    run_command(main)
