"""Hashes of what ten steps of pretraining write."""

import json
from collections.abc import Iterator
from pathlib import Path

from commands import command
from hashing import digest, hdf5_digest

TIMES = ("seconds", "tokens_per_second")  # of metrics.jsonl: no two runs have the same
PRETRAIN = """
[paths]
train = "{data}/train.txt"
heldout = "{data}/heldout.txt"
vocabulary = null
init = null

[bilm]

[bilm.lstm]
dim = 128
projection_dim = {projection}
n_layers = 2
cell_clip = 3.0
proj_clip = 3.0
use_skip_connections = true

[bilm.char_cnn]
filters = [[1, 16], [2, 16], [3, 32], [4, 64]]
n_highway = 1
n_characters = 262
max_characters_per_token = 50
activation = "relu"

[bilm.char_cnn.embedding]
dim = 16

[corpus]
language = null
shuffle_block = 64

[vocabulary]
size = 2000
min_count = 1

[training]
streams = 16
steps = 20
zero_state_share = 0.75
dropout = 0.0
total_tokens = 3200
workers = 2
precision = "float32"
device = "cpu"
seed = 0

[training.softmax]
kind = "sampled"
negatives = 256
cutoffs = [200, 800]

[training.optimizer]
name = "adamw"
learning_rate = 0.004
clip_norm = 1.0

[training.schedule]
kind = "linear"
warmup_steps = 3
decay_share = 0.5

[evaluation]
every = 5
checkpoint_every = 5
sentences = 50
"""
NETWORKS = {
    "projection float32": {},
    "no projection float32": {"bilm.lstm.projection_dim": "128"},
    "projection bfloat16": {"training.precision": '"bfloat16"'},
}
ADAGRAD = {"name": '"adagrad"', "learning_rate": "0.2", "clip_norm": "10.0", "loss_scale": "20.0"}
VARIANTS = {
    "full": {"training.softmax.kind": '"full"'},
    "adaptive": {"training.softmax.kind": '"adaptive"'},
    "adagrad": {f"training.optimizer.{name}": value for name, value in ADAGRAD.items()},
    "full, adagrad": {"training.softmax.kind": '"full"'}
    | {f"training.optimizer.{name}": value for name, value in ADAGRAD.items()},
    "muon": {"training.optimizer.name": '"muon"'},
    "muon, bfloat16": {"training.optimizer.name": '"muon"', "training.precision": '"bfloat16"'},
    "dropout, accumulate": {"training.dropout": "0.1", "training.accumulate": "2"},
    "weight decay, cosine": {"training.optimizer.weight_decay": "0.1", "training.schedule.kind": '"cosine"'},
    "adaptive, bfloat16": {"training.softmax.kind": '"adaptive"', "training.precision": '"bfloat16"'},
    "four workers": {"training.workers": "4"},
}


def pretrained(name: str, changes: dict[str, str], data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run `pretrain` for ten steps and hash what it writes.

    name: of the run. changes: settings and their values. data: the inputs. folder: the run's.
    """
    config = folder.parent / f"{folder.name}.cfg"
    config.write_text(PRETRAIN.format(data=data, projection=64), encoding="utf-8")
    overrides = [text for key, value in changes.items() for text in (f"--{key}", value.strip('"'))]
    command("pretrain", str(config), str(folder), *overrides)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    yield f"{name}: metrics", digest([{k: v for k, v in row.items() if k not in TIMES} for row in rows])
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.suffix == ".hdf5":
            yield f"{name}: {relative}", hdf5_digest(path)
        elif path.name in ("vocabulary.txt", "options.json"):
            yield f"{name}: {relative}", digest(path.read_bytes())


def pretrain(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The part of this name: ten steps of each network.

    data: the inputs. folder: for the runs.
    """
    for k, (name, changes) in enumerate((NETWORKS | VARIANTS).items()):
        yield from pretrained(f"pretrain {name}", changes, data, folder / f"run{k}")
    model, heldout = str(folder / "run0" / "model-last"), str(data / "heldout.txt")
    if not Path(model).exists():
        model = str(folder / "run0" / "model-best")
    table = folder / "sentences.tsv"
    printed = json.loads(command("evaluate", model, heldout, "--json", "--per-sentence", str(table)))
    yield "evaluate --json", digest({k: v for k, v in printed.items() if k not in ("model", "text", "seconds")})
    yield "evaluate --per-sentence", digest(table.read_bytes())
    command("pack", model, str(folder / "packed"))
    for path in sorted((folder / "packed").glob("*.hdf5")):
        yield f"pack: {path.name}", hdf5_digest(path)
