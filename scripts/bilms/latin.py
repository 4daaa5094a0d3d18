"""Latin: what `la_mini` brings to pipelines that are trained on five small treebanks, by `elmo compare`.

    python -m scripts.bilms.latin --data FOLDER --vectors VECTORS --text FILE --seeds 3

A comparison that was stopped goes on. Two of the treebanks are for non-commercial use: nothing of them is shipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

from ..assets import Data, get
from ..runs.experiments import keep_result
from ..shared import origin, read_lines, run_command, run_elmo
from .embeddings import spacy_pretrain

PARTS = ("train", "dev", "test")
# of these treebanks a part is missing: which one is cut in two, and how many of its sentences are for training
CUT = {"perseus": ("train", 1134), "ittb": ("dev", 1700), "llct": ("dev", 650)}
TREEBANKS = {"udante": "UDante", "circse": "CIRCSE", "perseus": "Perseus", "ittb": "ITTB", "llct": "LLCT"}
SPACY_PRETRAIN = "x from spacy pretrain"  # the other networks are named by `compare`
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


def scores_from_pretrained(out: Path, seed: int, weights: Path) -> dict[str, Any]:
    """Train x alone with tok2vecs that begin with the weights of `spacy pretrain`, and score the test part.

    out: folder of a comparison.
    """
    parts = {part: str(out / "corpus" / f"{part}.spacy") for part in PARTS}
    paths = {"paths.train": parts["train"], "paths.dev": parts["dev"]}
    settings = {**SETTINGS, **paths, "system.seed": seed, "training.seed": seed}
    folder, begun = out / f"pretrained-{seed}", out / f"pretrained-{seed}.begun"
    if not folder.is_dir():
        nlp = init_nlp(load_config(out / "baseline.cfg", settings, interpolate=True))
        for _, component in nlp.pipeline:
            tok2vec = next(node for node in component.model.walk() if "encode" in node.ref_names)  # type: ignore[attr-defined]
            tok2vec.from_bytes(weights.read_bytes())
        begun.mkdir(exist_ok=True)
        train(nlp, begun)
        begun.rename(folder)  # spaCy writes model-last during training too
    best = spacy.load(folder / "model-best")
    return best.evaluate(list(Corpus(parts["test"], gold_preproc=True)(best)))


def main(
    data: Data = "",
    vectors: Annotated[str, typer.Option(help="Folder of spaCy's vectors of the same text; empty: without them")] = "",
    text: Annotated[str, typer.Option(help="Text for half an hour of `spacy pretrain`; empty: without it")] = "",
    seeds: Annotated[int, typer.Option(help="Trainings of each network")] = 3,
) -> None:
    """Compare the networks on each treebank, and put their scores into results/latin.json."""
    get(["ud_latin"], data)
    options = ["--pipeline", "tagger,morphologizer,trainable_lemmatizer,parser", "--lang", "la", "--model", "la_mini"]
    options += ["--vectors", vectors] if vectors else []
    for name, value in SETTINGS.items():
        options += [f"--{name}", json.dumps(value)]
    pretrained = Path("assets/latin_pretrained")
    for treebank in TREEBANKS:
        out = Path("training/latin", treebank)
        files = write_parts(treebank, Path("corpus/latin"))
        parts = [option for part in PARTS for option in (f"--{part}", str(files[part]))]
        run_elmo("compare", str(out), *parts, "--seeds", str(seeds), *options)
        runs = json.loads((out / "scores.json").read_text(encoding="utf-8"))["runs"]
        found = [(run["network"], run["seed"], run["scores"]) for run in runs]
        if text:
            if not (pretrained / "model-last.bin").is_file():
                pretrained.mkdir(parents=True, exist_ok=True)
                one = load_config(out / "baseline.cfg")
                one["nlp"]["pipeline"], one["components"] = ["tagger"], {"tagger": one["components"]["tagger"]}
                spacy_pretrain(Path(text), pretrained, of=one)
            weights = pretrained / "model-last.bin"
            found += [(SPACY_PRETRAIN, seed, scores_from_pretrained(out, seed, weights)) for seed in range(seeds)]
        for network, seed, scores in found:
            kept = {key: scores[key] for key in SCORES}
            keep_result("latin", f"{treebank}/{network}/seed-{seed}", {**origin(), "scores": kept})


if __name__ == "__main__":
    run_command(main)
