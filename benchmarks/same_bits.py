"""Hash what the package computes and writes, so that two versions can be compared bit by bit.

    python benchmarks/same_bits.py --json runs/same_bits/now.json
    python benchmarks/same_bits.py --json runs/same_bits/now.json --compare runs/same_bits/before.json

Only public interfaces are used: the factory `elmo`, `python -m spacy elmo ...`, `Elmo`, `nlp.update`, `nlp.to_disk`,
and `spacy_elmo.formats` and `BiLM` for the inputs. So this file, which imports nothing else of the project, also runs
in the environment of an earlier version: `OTHER/.venv/bin/python benchmarks/same_bits.py`. Both runs need the same
machine, the same versions of torch and numpy, and the same folder of inputs (`--data`), which the first run writes.

Each line is a name and a SHA-256. Parts, each in a process of its own:

    layers     layers and mix of 500 sentences at three sizes, float32 and bfloat16, in batches and one by one;
               and carried states
    embed      `Elmo` (AllenNLP's interface) with its gradients, and a file of `python -m spacy elmo embed`
    pretrain   ten steps of small networks: weights, softmax, checkpoint and metrics; `evaluate --json` of one
    update     ten steps of `nlp.update` with the biLM frozen and ten with it tuned: losses and saved pipelines
    plain      parts of the same without the compiled loops

Gradients of a tuned biLM run on one thread: with more, torch sums some of them in no fixed order.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy as np

PLAIN = ("projection float32", "projection bfloat16", "full")  # networks that also run without the compiled loops
PRECISIONS = ("float32", "bfloat16")
OFFICIAL_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
MINI = Path(__file__).parents[1] / "packages" / "en_mini" / "spacy_elmo_en_mini"  # in each version that is compared
SIZES = {"small": (1024, 128, 1), "original": (4096, 512, 2)}  # LSTM, projection, highway layers
Found = Iterator[tuple[str, str]]  # names and hashes
UNICODE = ["naïve", "Zürich", "coöperate", "Ελλάδα", "москва", "東京都", "北京", "😀", "👩\u200d🚀", "e\u0301tude", "…"]
UNICODE += ["—", "“", "”", "ẞ", "Ἀ" * 30, "x" * 60, "3.14159", "$", "U.S.", "don't", "\u00a0", "  "]
TIMES = ("seconds", "tokens_per_second")  # of metrics.jsonl: no two runs have the same
# beside the defaults of `init-pretrain-config`
PRETRAIN = {"bilm.lstm.dim": "128", "bilm.lstm.projection_dim": "64", "corpus.shuffle_block": "64"}
PRETRAIN |= {"bilm.char_cnn.filters": "[[1, 16], [2, 16], [3, 32], [4, 64]]", "training.schedule.warmup_steps": "3"}
PRETRAIN |= {"vocabulary.size": "2000", "vocabulary.min_count": "1", "training.streams": "16"}
PRETRAIN |= {"training.total_tokens": "3200", "training.precision": "float32", "training.softmax.kind": "sampled"}
PRETRAIN |= {"training.softmax.negatives": "256", "training.optimizer.name": "adamw"}
PRETRAIN |= {"training.optimizer.learning_rate": "0.004"}
PRETRAIN |= {f"evaluation.{name}": n for name, n in {"every": "5", "checkpoint_every": "5", "sentences": "50"}.items()}
ADAGRAD = {"name": "adagrad", "learning_rate": "0.2", "clip_norm": "10.0", "loss_scale": "20.0"}
ADAGRAD = {f"training.optimizer.{name}": value for name, value in ADAGRAD.items()}
NETWORKS = {
    "projection float32": {},
    "no projection float32": {"bilm.lstm.projection_dim": "128"},
    "projection bfloat16": {"training.precision": "bfloat16"},
    "full": {"training.softmax.kind": "full"},
    "adagrad": ADAGRAD,
    "full, adagrad": {"training.softmax.kind": "full"} | ADAGRAD,
    "muon": {"training.optimizer.name": "muon"},
    "muon, bfloat16": {"training.optimizer.name": "muon", "training.precision": "bfloat16"},
    "dropout, accumulate": {"training.dropout": "0.1", "training.accumulate": "2"},
    "weight decay, cosine": {"training.optimizer.weight_decay": "0.1", "training.schedule.kind": "cosine"},
    "four workers": {"training.workers": "4"},
}


LISTENER = {"@architectures": "spacy-elmo.Listener.v1", "width": None, "upstream": "elmo"}
EMBED = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 32, "attrs": ["NORM", "SHAPE"], "rows": [500, 500]}
EMBED |= {"include_static_vectors": False}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 32,
    "window_size": 1,
    "maxout_pieces": 2,
    "depth": 1,
}
MIXED = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": LISTENER, "mix": {"@layers": "spacy-elmo.ScalarMix.v1"}}
TOK2VEC = {"@architectures": "spacy-elmo.ElmoTok2Vec.v1", "embed": EMBED, "encode": ENCODE, "elmo": MIXED}


def digest(*values: Any) -> str:
    """SHA-256 of arrays (type, shape and bytes), bytes, and of anything else as JSON."""
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            total.update(f"{value.dtype} {value.shape}".encode())
            total.update(np.ascontiguousarray(value).tobytes())
        else:
            total.update(value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, default=str).encode())
    return total.hexdigest()


def hdf5_digest(path: Path) -> str:
    """SHA-256 of the names and values of all datasets and attributes of an HDF5 file."""
    values: list[Any] = []

    def add(name: str, node: Any) -> None:
        values.append(name)
        if isinstance(node, h5py.Dataset):
            value = node[()]
            values.append(str(value.tolist()) if isinstance(value, np.ndarray) and value.dtype.hasobject else value)

    with h5py.File(path) as file:
        values.append(sorted((name, str(value)) for name, value in file.attrs.items()))
        file.visititems(add)
        return digest(*values)


def command(*arguments: str) -> str:
    """Run a command of `python -m spacy elmo` in this process and return what it prints on stdout."""
    import torch
    from typer.testing import CliRunner

    from spacy_elmo.cli import app

    threads = torch.get_num_threads()
    result = CliRunner().invoke(app, list(arguments))
    torch.set_num_threads(threads)
    if result.exit_code:
        raise SystemExit(f"elmo {' '.join(arguments)}: {result.exit_code}\n{result.output}\n{result.exception!r}")
    return result.stdout


def sentences(n: int, seed: int) -> list[list[str]]:
    """Words of generated sentences, 1 to 60 each, which return about as often as in English; one in 25 is odd."""
    source = random.Random(seed)
    onsets = ("b", "ch", "d", "gr", "l", "m", "st", "th", "w", "")
    syllables = [onset + vowel + coda for onset in onsets for vowel in "aeiou" for coda in ("", "n", "r")]
    lexicon = ["the", ",", "of", "and", "to", "in", "a", "is", "bank", "river"]
    lexicon += ["".join(source.choice(syllables) for _ in range(source.randint(1, 4))) or "I" for _ in range(6000)]
    lexicon = [word.capitalize() if source.random() < 0.1 else word for word in lexicon]
    weights = [1 / (rank + 1) for rank in range(len(lexicon))]
    found = []
    for _ in range(n):
        length = min(60, max(1, round(source.lognormvariate(3.0, 0.6))))
        words = source.choices(lexicon, weights, k=length)
        found.append([source.choice(UNICODE) if source.random() < 0.04 else word for word in words])
    return found


def write_inputs(data: Path) -> None:
    """Write the biLMs of random weights and the texts, if they are not there."""
    import torch

    from spacy_elmo.formats import read_options, write_weights
    from spacy_elmo.modules import BiLM

    for name, (dim, projection, n_highway) in SIZES.items():
        folder = data / name
        if (folder / "weights.hdf5").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
        lstm["use_skip_connections"] = True
        cnn = {"embedding": {"dim": 16}, "filters": OFFICIAL_FILTERS, "n_highway": n_highway, "n_characters": 262}
        cnn |= {"max_characters_per_token": 50, "activation": "relu"}
        (folder / "options.json").write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}), encoding="utf-8")
        bilm = BiLM(read_options(folder / "options.json"))
        bilm.reset_parameters(torch.Generator().manual_seed(0))
        write_weights(folder / "weights.hdf5", bilm.options, bilm.to_arrays())
    for name, n, seed in (("train", 800, 1), ("heldout", 80, 2)):
        lines = [" ".join(word for word in words if word.strip()) for words in sentences(n, seed)]
        (data / f"{name}.txt").write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")


def layers_of(data: Path, size: str, words: list[list[str]], batch: int, starts: Any = None, **more: Any) -> str:
    """SHA-256 of the layers and mixes of docs of these words.

    starts: for each doc, which words begin a sentence; None: a doc is one sentence. more: settings of the model.
    """
    import spacy
    from spacy.tokens import Doc

    nlp = spacy.blank("en")
    folder = MINI if size == "mini" else data / size
    files = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/weights.hdf5"}
    nlp.add_pipe("elmo", config={"model": files | more})
    total = hashlib.sha256()
    of_docs = [None] * len(words) if starts is None else starts
    docs = (Doc(nlp.vocab, words=part, sent_starts=begins) for part, begins in zip(words, of_docs))
    for doc in nlp.pipe(docs, batch_size=batch):
        total.update(digest(np.asarray(doc._.elmo_layers), np.asarray(doc._.elmo)).encode())
        doc._.elmo = None
    return total.hexdigest()


# The parts. data: the inputs. folder: for files


def layers(data: Path, folder: Path) -> Found:
    words = sentences(500, 0)
    for size in ("mini", "small", "original"):
        for precision in PRECISIONS:
            yield f"layers {size} {precision}", layers_of(data, size, words, 128, precision=precision)
            alone = layers_of(data, size, words[:24], 1, precision=precision)
            yield f"layers {size} {precision} one by one", alone
    yield "layers mini few words cached", layers_of(data, "mini", words, 32, cached_words=50)
    three = [list(chain.from_iterable(words[k : k + 3])) for k in range(0, 60, 3)]
    starts = [[k == 0 for part in words[n : n + 3] for k in range(len(part))] for n in range(0, 60, 3)]
    zero, carried = (layers_of(data, "mini", three, 4, starts, stateful=stateful) for stateful in (False, True))
    assert zero != carried  # or no state would be carried
    yield "layers mini stateful", carried
    yield "layers mini windows", layers_of(data, "mini", [list(chain.from_iterable(words[:30]))], 1)


def embed(data: Path, folder: Path) -> Found:
    """What AllenNLP's users run: `Elmo` with two representations, the gradients of its weights, and `embed`."""
    import torch

    from spacy_elmo import Elmo, batch_to_ids

    words = [[w for w in part if w.strip()] for part in sentences(500, 0)[:50]]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    files = (str(MINI / "options.json"), str(MINI / "weights.hdf5"))
    for frozen in (True, False):
        elmo = Elmo(*files, 2, requires_grad=not frozen, dropout=0.0)
        out = elmo(batch_to_ids([part or ["a"] for part in words[:40]]))
        name = f"Elmo {'frozen' if frozen else 'tuned'}"
        yield name, digest(*(part.detach().numpy() for part in out["elmo_representations"]), out["mask"].numpy())
        sum(part.square().sum() for part in out["elmo_representations"]).backward()
        gradients = [p.grad.numpy() for p in elmo.parameters() if p.grad is not None]
        yield f"{name}: gradients", digest(sorted((str(gradient.shape), digest(gradient)) for gradient in gradients))
    text = folder / "text.txt"
    text.write_text("\n".join(map(" ".join, words)) + "\n", encoding="utf-8")
    command("embed", str(text), str(folder / "out.hdf5"))
    yield "embed", hdf5_digest(folder / "out.hdf5")


def run_digests(folder: Path) -> dict[str, str]:
    """Hash the files of a pretraining run by their names, but for those that tell the time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "metrics.jsonl":
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            found[name] = digest([{key: row[key] for key in row if key not in TIMES} for row in rows])
        elif path.suffix == ".hdf5":
            found[name] = hdf5_digest(path)
        elif path.name in ("vocabulary.txt", "options.json"):
            found[name] = digest(path.read_bytes())
    return found


def pretrained(name: str, changes: dict[str, str], data: Path, folder: Path) -> Found:
    """Run `pretrain` for ten steps and hash what it writes."""
    config = str(folder.parent / f"{folder.name}.cfg")
    texts = [part for key in ("train", "heldout") for part in (f"--{key}", str(data / f"{key}.txt"))]
    command("init-pretrain-config", config, *texts)
    overrides = [text for key, value in (PRETRAIN | changes).items() for text in (f"--{key}", value)]
    try:
        command("pretrain", config, str(folder), *overrides)
    except SystemExit as error:
        if "no matrix multiplications in bfloat16" not in " ".join(str(error).split()):
            raise
        print(f"{name}: not on this machine, which has no bfloat16", file=sys.stderr)
        return
    for file, value in run_digests(folder).items():
        yield f"{name}: {'metrics' if file == 'metrics.jsonl' else file}", value


def pretrain(data: Path, folder: Path) -> Found:
    for k, (name, changes) in enumerate(NETWORKS.items()):
        yield from pretrained(f"pretrain {name}", changes, data, folder / f"run{k}")
    model, heldout = str(folder / "run0" / "model-last"), str(data / "heldout.txt")
    table = folder / "sentences.tsv"
    printed = json.loads(command("evaluate", model, heldout, "--json", "--per-sentence", str(table)))
    yield "evaluate --json", digest({k: v for k, v in printed.items() if k not in ("model", "text", "seconds")})
    yield "evaluate --per-sentence", digest(table.read_bytes())
    command("pack", model, str(folder / "packed"))
    for path in sorted((folder / "packed").glob("*.hdf5")):
        yield f"pack: {path.name}", hdf5_digest(path)


def update(data: Path, folder: Path) -> Found:
    for precision, frozen in (("float32", True), ("bfloat16", True), ("float32", False), ("bfloat16", False)):
        name = f"update {'frozen' if frozen else 'tuned'} {precision}"
        yield from updated(name, {"frozen": frozen, "model": {"precision": precision}}, folder / name.replace(" ", "_"))


def updated(name: str, elmo: dict[str, Any], folder: Path) -> Found:
    """Train a tagger with ELMo for ten steps; hash losses, the pipeline's files and what it predicts."""
    import spacy
    import torch
    from spacy.tokens import Doc
    from spacy.training import Example
    from thinc.api import fix_random_seed

    torch.set_num_threads(1)
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=elmo)
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": TOK2VEC}})
    source = random.Random(3)
    examples = []
    for words in sentences(160, 4):
        tags = [source.choice("ABCDE") if len(word) < 3 else "ABCDE"[len(word) % 5] for word in words]
        gold = Doc(nlp.vocab, words=words, spaces=[True] * len(words), tags=tags)
        examples.append(Example(Doc(nlp.vocab, words=words, spaces=[True] * len(words)), gold))
    optimizer = nlp.initialize(lambda: examples)
    losses = []
    for step in range(10):
        got: dict[str, float] = {}
        nlp.update(examples[16 * step : 16 * step + 16], sgd=optimizer, drop=0.1, losses=got)
        losses.append(sorted(got.items()))
    yield f"{name}: losses", digest(losses)
    docs = list(nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences(40, 5)))
    yield f"{name}: tags", digest([[token.tag_ for token in doc] for doc in docs])
    yield f"{name}: layers", digest(*(np.asarray(doc._.elmo_layers) for doc in docs))
    nlp.to_disk(folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.parent != folder):
        if "vocab" not in path.parts:
            relative = path.relative_to(folder)
            yield f"{name}: {relative}", hdf5_digest(path) if path.suffix == ".hdf5" else digest(path.read_bytes())
    again = spacy.load(folder)
    docs = list(again.pipe(Doc(again.vocab, words=words) for words in sentences(40, 5)))
    yield f"{name}: layers after loading", digest(*(np.asarray(doc._.elmo_layers) for doc in docs))


def plain(data: Path, folder: Path) -> Found:
    """Some of the same with SPACY_ELMO_KERNELS=0."""
    words = sentences(100, 0)
    for precision in PRECISIONS:
        yield f"plain: layers mini {precision}", layers_of(data, "mini", words, 32, precision=precision)
    for k, name in enumerate(PLAIN):
        yield from pretrained(f"plain: pretrain {name}", NETWORKS[name], data, folder / f"run{k}")
    yield from updated("plain: update tuned float32", {"frozen": False}, folder / "update")


PARTS = {"layers": layers, "embed": embed, "pretrain": pretrain, "update": update, "plain": plain}


def compare(found: dict[str, str], path: Path) -> int:
    """Print what differs from the JSON file of another run, and return how many hashes do."""
    other = json.loads(path.read_text(encoding="utf-8"))
    bad = [name for name in found if other.get(name) != found[name]]
    missing = [name for name in other if name not in found]
    print(f"{len(found) - len(bad)} equal, {len(bad)} different, {len(missing)} in the other alone")
    for name in bad + missing:
        print(f"{'DIFFERENT' if name in other and name in found else 'new' if name in found else 'only there'}: {name}")
    return len(bad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path("runs/same_bits/data")
    parser.add_argument("--data", type=Path, default=default, help="folder of the inputs (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write names and hashes to this file")
    parser.add_argument("--compare", type=Path, help="file of another run; exit code 1 if anything differs")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    data, found = args.data.resolve(), dict[str, str]()
    if args.part:
        import torch

        torch.set_num_threads(args.threads)
        with tempfile.TemporaryDirectory(prefix="same_bits.") as folder:
            for key, value in PARTS[args.part](data, Path(folder)):
                found[key] = value
                print(f"{key:60} {value}", file=sys.stderr, flush=True)
        print(json.dumps(found))
        return
    write_inputs(data)
    for part in args.parts.split(","):
        line = [sys.executable, __file__, "--data", str(data), "--part", part, "--threads", str(args.threads)]
        environment = os.environ | ({"SPACY_ELMO_KERNELS": "0"} if part == "plain" else {})
        result = subprocess.run(line, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        found |= json.loads(result.stdout)
    for name, value in found.items():
        print(f"{name} {value}")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.compare and compare(found, args.compare):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
