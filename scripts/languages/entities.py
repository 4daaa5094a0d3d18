"""Train pipelines that find the entities of African languages, and score them: with a biLM, with floret, both, neither.

    python -m scripts.languages.entities corpus/languages training/languages swa yor --seed 0
    python -m scripts.languages.entities corpus/languages training/languages swa yor --bilm runs/all/model-best

Each training adds a line to entities.jsonl in the second folder, and is skipped if that has its line. The networks are
those of `elmo compare`, and are trained until they get no better. The words are those of the corpus.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.cli.train import train
from spacy.training import Corpus
from thinc.api import Config, fix_random_seed

from spacy_elmo.cli.init_config import task_config, without_elmo

from ..bilms.embeddings import train_floret
from ..shared import origin, run_command

GOLD = {f"corpora.{part}.gold_preproc": True for part in ("train", "dev")}


def config_of(bilm: Path | None, vectors: Path | None) -> Config:
    """Return the config of a network. bilm and vectors: what it has beside the features of its own."""
    config = task_config("xx", ["ner"], "efficiency", None if bilm is None else str(bilm.absolute()), {})
    config = without_elmo(config) if bilm is None else config
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


def main(
    corpora: Path,
    out: Path,
    languages: Annotated[list[str], typer.Argument(help="Of the folders of CORPORA")],
    seed: int = 0,
    bilm: Annotated[str, typer.Option(help="Folder of a biLM, {} for the language; empty: none")] = "",
    name: Annotated[str, typer.Option(help="Of the biLM, in the records")] = "ELMo",
) -> None:
    """Train and score pipelines for LANGUAGES, each without static vectors and with those of its text."""
    results = out / "entities.jsonl"
    for language in languages:
        vectors = out / "floret" / language
        if not (vectors / "config.cfg").is_file():
            vectors.mkdir(parents=True, exist_ok=True)
            train_floret(corpora / "text" / f"{language}.txt", vectors)
        model = Path(bilm.format(language)) if bilm else None
        for x, static in (("x", None), ("x with floret", vectors)):
            key = {"language": language, "network": f"[{x}; {name}]" if model else x, "seed": seed}
            lines = results.read_text(encoding="utf-8").splitlines() if results.is_file() else []
            if any(key.items() <= json.loads(line).items() for line in lines):
                continue
            print(key, flush=True)
            record = {
                **key,
                **measure(config_of(model, static), corpora / language, out / "training", seed),
                **origin(),
            }
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    run_command(main)
