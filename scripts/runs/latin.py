"""Latin: what `la_mini` brings to pipelines that are trained on five small treebanks, by `elmo compare`.

    python -m scripts.runs.latin --data FOLDER --vectors VECTORS --seeds 3

A comparison that was stopped goes on. Two of the treebanks are for non-commercial use: nothing of them is shipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..assets import Data, get
from ..shared import origin, read_lines, run_command, run_elmo
from .experiments import keep_result

PARTS = ("train", "dev", "test")
# of these treebanks a part is missing: which one is cut in two, and how many of its sentences are for training
CUT = {"perseus": ("train", 1134), "ittb": ("dev", 1700), "llct": ("dev", 650)}
TREEBANKS = {"udante": "UDante", "circse": "CIRCSE", "perseus": "Perseus", "ittb": "ITTB", "llct": "LLCT"}
SCORES = ("tag_acc", "pos_acc", "morph_acc", "lemma_acc", "dep_uas", "dep_las")
UPDATES = 2000
RATE = {"@schedules": "warmup_linear.v1", "warmup_steps": 100, "total_steps": UPDATES, "initial_rate": 0.002}
SETTINGS = {
    "components.parser.min_action_freq": 5,  # the treebanks have some hundred sentences
    "corpora.train.gold_preproc": True,  # words and sentences of the treebank
    "corpora.dev.gold_preproc": True,
    "training.max_steps": UPDATES,
    "training.eval_frequency": 500,
    "training.patience": 0,
    "training.batcher.size": 300,
    "training.optimizer.learn_rate": RATE,
}


def write_parts(treebank: str, folder: Path) -> dict[str, Path]:
    """Write the parts of a treebank, each with whole sentences, and return their files."""

    def sentences(part: str) -> list[str]:
        lines = read_lines(Path(f"assets/ud_latin/la_{treebank}-ud-{part}.conllu"))
        return [sentence for sentence in "\n".join(lines).split("\n\n") if sentence.strip()]

    if treebank in CUT:
        cut, n_train = CUT[treebank]
        whole = sentences(cut)
        parts = {"train": whole[:n_train], "dev": whole[n_train:], "test": sentences("test")}
    else:
        parts = {part: sentences(part) for part in PARTS}
    files = {part: folder / f"{treebank}-{part}.conllu" for part in PARTS}
    folder.mkdir(parents=True, exist_ok=True)
    for part, file in files.items():
        file.write_text("".join(f"{sentence}\n\n" for sentence in parts[part]), encoding="utf-8", newline="\n")
    return files


def main(
    data: Data = "",
    vectors: Annotated[str, typer.Option(help="Folder of spaCy's vectors of the same text; empty: without them")] = "",
    seeds: Annotated[int, typer.Option(help="Trainings of each network")] = 3,
) -> None:
    """Compare the networks on each treebank, and put their scores into results/latin.json."""
    get(["ud_latin"], data)
    options = ["--pipeline", "tagger,morphologizer,trainable_lemmatizer,parser", "--lang", "la", "--model", "la_mini"]
    options += ["--vectors", vectors] if vectors else []
    for name, value in SETTINGS.items():
        options += [f"--{name}", json.dumps(value)]
    for treebank in TREEBANKS:
        out = Path("training/latin", treebank)
        files = write_parts(treebank, Path("corpus/latin"))
        parts = [text for part in PARTS for text in (f"--{part}", str(files[part]))]
        run_elmo("compare", str(out), *parts, "--seeds", str(seeds), *options)
        for run in json.loads((out / "scores.json").read_text(encoding="utf-8"))["runs"]:
            scores = {key: run["scores"][key] for key in SCORES}
            keep_result("latin", f"{treebank}/{run['network']}/seed-{run['seed']}", {**origin(), "scores": scores})


if __name__ == "__main__":
    run_command(main)
