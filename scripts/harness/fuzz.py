"""Read damaged files of strangers for some minutes, and keep what crashes, hangs, or raises what is no ElmoError.

    python -m scripts.harness.fuzz --minutes 3                     # all targets, 3 minutes each
    python -m scripts.harness.fuzz --target weights --seed 123     # one input again

An input is a valid file in which bytes, or parts of its structure, were changed at random. Each is read in a fork with
limits on memory and processor time. If an HDF5 file makes it crash, hang or take too much memory, that is counted as a
flaw of the HDF5 library, from which SECURITY.md promises no protection, and is no finding.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import h5py
import numpy as np
import spacy
import srsly
import torch
from spacy.tokens import Doc

from spacy_elmo import formats
from spacy_elmo.errors import ElmoError
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.language_model import read_output_layer, write_output_layer
from spacy_elmo.pretraining.softmax import Softmax

SECONDS, BYTES = 20, 2 * 2**30  # of processor time and of memory, for one input
WAITING_SECONDS = 300  # by the clock, for an input that waits and so uses no processor
BATCH = 100  # inputs that one fork reads
KEPT, FOUND = 3, Path("runs/fuzz")  # inputs of a kind of finding
OPTIONS = formats.BiLMOptions(4, ((1, 4), (2, 8)), 1, "relu", 20, 16, 8, 2, 3.0, 3.0, True)
FORK = multiprocessing.get_context("fork")  # the imports are paid for once


class Target(NamedTuple):
    """A kind of file.

    make: writes an input into an empty folder. load: reads it; only an ElmoError may come of it. hdf5: whether the HDF5
    library reads it first.
    """

    make: Callable[[Path, Random], None]
    load: Callable[[Path], object]
    hdf5: bool = False


# Random changes. The same generator makes the same changes

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
ODD_TEXTS = ["", " ", "\0", "\ufeff", "\ud800", "\u2028", "\r", "\u202e", "e\u0301" * 50, "👩‍👩‍👧", "\U0010ffff"]
ODD_TEXTS += ["a" * 100_000, "../../etc/passwd", "${paths.train}", "{0.__class__}", "%s%n", "NaN", "1e999"]
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 2**200, 10**400, 0.5, 1e308, float("nan"), float("inf"))
JSON_VALUES: tuple[Any, ...] = (None, True, [], {}, [[]], [1, 2], {"a": 1}, [None] * 50, *ODD_NUMBERS, *ODD_TEXTS)
ODD_VALUES = (*JSON_VALUES, b"", b"\xff\xfe")


def mutated(data: bytes, random: Random) -> bytes:
    """Return a copy of some bytes with 1 to 8 changes: bits, numbers, blocks, cuts, and copies of other places."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            return random.randbytes(random.randint(1, 20))
        place, source = random.randrange(len(changed)), random.randrange(len(changed))
        end = min(len(changed), place + random.choice((1, 2, 4, 8, 64, 512)))
        kind, size = random.randrange(7), random.choice((1, 2, 4, 8))
        if kind <= 1:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == 2:
            number = random.choice(NUMBERS) & (256**size - 1)
            changed[place : place + size] = number.to_bytes(size, random.choice(("little", "big")))
        elif kind == 3:
            changed[place:] = b""
        else:  # a block becomes random, is cut out, or is replaced by another one
            new = (random.randbytes(end - place), b"", changed[source : source + end - place])[kind - 4]
            changed[place : random.choice((place, end))] = new
    return bytes(changed)


def changed_tree(tree: Any, random: Random, odd: Sequence[Any]) -> Any:
    """Return a copy of a tree of dicts and lists, in which up to 3 places have odd or others' values, or are gone."""
    holder_of_all = [copy.deepcopy(tree)]
    for _ in range(random.choice((1, 1, 2, 3))):
        places, holders = [], [holder_of_all]
        while holders:
            holder: Any = holders.pop()
            inside = [(holder, key) for key in (holder if isinstance(holder, dict) else range(len(holder)))]
            holders += [holder[key] for _, key in inside if isinstance(holder[key], (dict, list))]
            places += inside
        holder, key = random.choice(places[1:] or places)
        (other, name), kind, value = random.choice(places), random.randrange(6), copy.deepcopy(random.choice(odd))
        if kind == 0 and holder is not holder_of_all:
            del holder[key]
        elif kind == 1:
            holder[key] = copy.deepcopy(other[name])
        elif kind == 2 and isinstance(holder, dict):
            holder[random.choice((*ODD_TEXTS[:10], "extra"))] = value
        elif kind == 3 and isinstance(holder[key], bytes):
            holder[key] = mutated(holder[key], random)
        elif kind == 4:
            for _ in range(random.choice((1, 2, 200))):
                holder[key] = [holder[key]]
        else:
            holder[key] = value
    return holder_of_all[0]


# HDF5: changed bytes, and valid files of another structure than expected

TYPES = ("<f4", ">f4", "<f2", "<f8", "<i4", "u1", "?", "<c8", "S7", [("a", "<f4"), ("b", "<i2")])
FILTERS: tuple[dict[str, Any], ...] = ({"compression": "gzip"}, {"compression": "lzf"}, {"shuffle": True})
FILTERS += ({"fletcher32": True}, {"scaleoffset": 2}, {"compression": "szip"})
REFUSED = (ValueError, TypeError, OSError, RuntimeError, KeyError, OverflowError, MemoryError)  # by h5py itself


def restructured(path: Path, random: Random) -> None:
    """Replace up to four datasets or groups of a file by something else, or add something."""
    with suppress(*REFUSED), h5py.File(path, "a") as file:
        for _ in range(random.choice((1, 1, 2, 4))):
            names: list[str] = []
            file.visit(names.append)
            name = random.choice(names)
            shape = (3,)
            if isinstance(file[name], h5py.Dataset) and (file[name].size or 0) < 10_000:
                shape = file[name].shape
            if random.random() < 0.1:
                name += "x"
            else:
                del file[name]
            _write_odd(file, name, shape, random)


def _write_odd(file: h5py.File, name: str, shape: tuple[int, ...], random: Random) -> None:
    """Write something odd under a name. shape: what one expects there."""
    choice, values, new = random.choice, np.ones(shape, np.float32), partial(file.create_dataset, name)
    odd_shape = choice(((), (0,), (1,), shape[::-1], (*shape, 1), (1,) * 32, shape[1:]))
    huge = choice((shape, (2**40,), (2**40, 8), (2**62,)))  # of which the file holds nothing
    large = choice(((2**12, 2**12), (2**28,), (2**24, 8)))  # of which it holds zeros, packed
    chunks = tuple(max(1, n // choice((1, 2, 3))) for n in shape)
    target, place = choice(("/", "/none", f"/{name}/.", "char_embed")), choice(("file.hdf5", ".", "/etc/passwd"))
    fill = choice((0.0, float("nan"), 1e38))
    layout = h5py.VirtualLayout(shape, "<f4")
    layout[...] = h5py.VirtualSource(place, name, shape)
    links = (h5py.SoftLink(target), h5py.ExternalLink(place, target), file["/"], np.dtype("<f4"))
    writers: list[Callable[[], object]] = [
        lambda: new(shape, np.dtype(choice(TYPES))),
        lambda: new(odd_shape, "<f4"),
        lambda: new(huge, "<f4", fillvalue=fill),
        lambda: new(huge, "<f4", chunks=tuple(min(n, 1024) for n in huge), fillvalue=fill),
        lambda: new(large, "<f4", chunks=True, compression="gzip").__setitem__((slice(0, 1),) * len(large), 1.0),
        lambda: new(data=values, chunks=chunks, **choice(FILTERS)),
        lambda: new(shape, "<f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]),
        lambda: new((3,), choice((h5py.ref_dtype, h5py.regionref_dtype, h5py.string_dtype()))),
        lambda: new(data=values * choice((np.nan, np.inf, 3e38, 1e-45))),
        lambda: new(data=values).attrs.create("x", choice(("a" * 60_000, np.zeros(5000)))),
        lambda: file.create_virtual_dataset(name, layout),
        lambda: file.create_group(name),
        *(partial(file.__setitem__, name, link) for link in links),
    ]
    choice(writers)()


def hdf5_target(valid: bytes, load: Callable[[Path], object]) -> Target:
    """Return the target of a kind of HDF5 file."""

    def make(folder: Path, random: Random) -> None:
        path = folder / "file.hdf5"
        if random.random() < 0.6:
            path.write_bytes(mutated(valid, random))
            return
        path.write_bytes(valid)
        if code := forked(restructured, path, Random(random.random())):  # libhdf5 crashes on some of what it writes
            print(f"what writes an input was ended by {code}", file=sys.stderr, flush=True)
        if random.random() < 0.2:
            path.write_bytes(mutated(path.read_bytes(), random))

    return Target(make, lambda folder: load(folder / "file.hdf5"), hdf5=True)


# The targets. Each function writes valid files once, into a folder


def bilm_in(folder: Path) -> dict[str, str]:
    """Write a random biLM of OPTIONS into a folder. Return the settings that name its files."""
    bilm = BiLM(OPTIONS)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    formats.write_options(files["options_file"], OPTIONS)
    formats.write_weights(files["weight_file"], OPTIONS, bilm.to_arrays())
    return files


def options(folder: Path) -> Target:
    valid = Path(bilm_in(folder)["options_file"]).read_bytes()

    def make(folder: Path, random: Random) -> None:
        changed = json.dumps(changed_tree(json.loads(valid), random, JSON_VALUES)).encode("utf8", "surrogatepass")
        (folder / "options.json").write_bytes(mutated(valid, random) if random.random() < 0.4 else changed)

    return Target(make, lambda folder: formats.read_options(folder / "options.json"))


def weights(folder: Path) -> Target:
    valid = Path(bilm_in(folder)["weight_file"]).read_bytes()
    return hdf5_target(valid, lambda path: formats.read_weights(path, OPTIONS))


def softmax(folder: Path) -> Target:
    layer = Softmax(30, 8)
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    write_output_layer(folder / "softmax.hdf5", layer, np.float32)
    return hdf5_target((folder / "softmax.hdf5").read_bytes(), read_output_layer)


def vectors(folder: Path) -> Target:
    with formats.VectorsWriter(folder / "vectors.hdf5") as writer:
        for n in (2, 1, 5):
            writer.write(" ".join("a" * n), np.ones((3, n, 8), np.float32))
    valid = (folder / "vectors.hdf5").read_bytes()
    return hdf5_target(valid, lambda path: list(formats.read_vectors(path)))


def pipeline_bytes(folder: Path) -> Target:
    new = _pipes(folder)
    valid = new().to_bytes()

    def make(folder: Path, random: Random) -> None:
        (folder / "pipe.bin").write_bytes(changed_message(valid, random))

    return Target(make, lambda folder: _use(new().from_bytes((folder / "pipe.bin").read_bytes())))


def pipeline_folders(folder: Path) -> Target:
    new = _pipes(folder)
    saved = folder / "elmo"
    new().to_disk(saved)
    names = [path.relative_to(saved) for path in sorted(saved.rglob("*")) if path.is_file()]

    def make(folder: Path, random: Random) -> None:
        shutil.copytree(saved, folder / "elmo")
        path, kind = folder / "elmo" / random.choice(names), random.randrange(8)
        if kind == 0:
            path.write_bytes((saved / random.choice(names)).read_bytes())
        elif kind > 2:
            path.write_bytes(changed_message(path.read_bytes(), random))
        else:
            path.unlink()
            if kind == 2:
                path.mkdir()

    return Target(make, lambda folder: _use(new().from_disk(folder / "elmo")))


def _pipes(folder: Path) -> Callable[[], Any]:
    nlp, model = spacy.blank("en"), bilm_in(folder)
    return lambda: nlp.create_pipe("elmo", config={"model": model})


def _use(pipe: Any) -> None:
    """Read a doc: what loaded must also run."""
    docs = [Doc(pipe.vocab, words=["One", "two", "."])]
    pipe.set_annotations(docs, pipe.predict(docs))


def changed_message(data: bytes, random: Random) -> bytes:
    """Return msgpack with another tree, also inside of bytes that are msgpack themselves, or with other bytes."""

    def unpacked(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: unpacked(value) for key, value in tree.items()}
        if isinstance(tree, (list, tuple)):
            return [unpacked(value) for value in tree]
        if isinstance(tree, bytes) and tree[:1] in b"\x81\x82\x83\x84\x85\x86\x92\x93":
            with suppress(Exception):
                return {"msgpack inside": unpacked(srsly.msgpack_loads(tree))}
        return tree

    def packed(tree: Any) -> Any:
        if isinstance(tree, dict):
            if set(tree) == {"msgpack inside"}:
                return srsly.msgpack_dumps(packed(tree["msgpack inside"]))
            return {key: packed(value) for key, value in tree.items()}
        return [packed(value) for value in tree] if isinstance(tree, list) else tree

    if random.random() < 0.6:
        with suppress(Exception):  # it is no msgpack, or msgpack has no such values
            tree = unpacked(srsly.msgpack_loads(data))
            return bytes(srsly.msgpack_dumps(packed(changed_tree(tree, random, ODD_VALUES))))
    return mutated(data, random)


TARGETS: dict[str, Callable[[Path], Target]] = {
    function.__name__: function for function in (options, weights, softmax, vectors, pipeline_bytes, pipeline_folders)
}


def forked(work: Callable[..., None], *arguments: object) -> int | None:
    child = FORK.Process(target=work, args=arguments)
    child.start()
    child.join()
    return child.exitcode


def _read(target: Target, seeds: Iterable[int], folder: Path, current: Synchronized[int]) -> None:
    """Read one input after another until one has a finding, which goes to finding.txt."""
    warnings.simplefilter("ignore")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for seed in seeds:
        current.value = seed
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        signal.alarm(WAITING_SECONDS)  # this and the next line end the process, also inside of a library
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + SECONDS, resource.RLIM_INFINITY))
        target.make(folder, Random(seed))
        try:
            target.load(folder)
            continue
        except ElmoError:
            continue
        except MemoryError:
            kind = "memory"
        except BaseException as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "spacy_elmo" in frame.filename]
            place = f"{frames[-1].filename.rpartition('spacy_elmo/')[2]}:{frames[-1].lineno}" if frames else "outside"
            kind = f"{type(error).__name__} {place}"
        text = f"{kind}\n{traceback.format_exc()}"
        (folder / "finding.txt").write_text(text, encoding="utf8", errors="backslashreplace")
        return


def read_inputs(target: Target, seeds: range, folder: Path) -> Iterator[tuple[int, str]]:
    """Make and read the input of each seed in a folder. Yield the seeds with findings, and the last one of a fork.

    With a seed comes what its input did that it must not do: "crash", "hang", "memory", or an exception and its place;
    with HDF5 if it may be the library's flaw. "" if there is nothing.
    """
    while seeds:
        current = FORK.Value("q", seeds[0])
        code = forked(_read, target, seeds[:BATCH], folder, current)
        seeds = range(current.value + 1, seeds.stop)
        said = folder / "finding.txt"
        if code != 0:
            kind = "hang" if code in (-signal.SIGXCPU, -signal.SIGALRM) else "crash"
        else:
            kind = said.read_text(encoding="utf8").partition("\n")[0] if said.exists() else ""
        if target.hdf5 and kind in ("hang", "crash", "memory"):
            kind += " in HDF5"
        yield current.value, kind


def fuzz(name: str, minutes: float) -> int:
    """Run a target for some minutes, and keep the files of the first findings of each kind. Return their number."""
    counts: Counter[str] = Counter()
    first, end = int(time.time()) * 1000, time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as samples, tempfile.TemporaryDirectory() as inputs:
        place = Path(inputs, "input")
        for seed, kind in read_inputs(TARGETS[name](Path(samples)), range(first, 2**62), place):
            if kind:
                counts[kind] += 1
                if counts[kind] <= KEPT:
                    kept = FOUND / name / f"seed-{seed}"
                    shutil.copytree(place, kept, symlinks=True, dirs_exist_ok=True)
                    print(f"{name}: seed {seed}: {kind} ({kept})", flush=True)
            if time.monotonic() > end:
                break
    found = sum(n for kind, n in counts.items() if not kind.endswith("HDF5"))
    print(f"{name}: {seed - first + 1:,} inputs, {found} findings, {counts.total() - found} in HDF5", flush=True)
    return found


def main() -> None:
    """Run the targets. The exit code is 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="for each target (default: 3)")
    parser.add_argument("--target", choices=TARGETS, help="else all")
    parser.add_argument("--seed", type=int, help="read the input of this seed in this process, and do nothing else")
    args = parser.parse_args()
    torch.set_num_threads(1)  # a process with threads can't be forked safely
    if args.seed is None:
        found = [fuzz(name, args.minutes) for name in ([args.target] if args.target else TARGETS)]
        sys.exit(int(any(found)))
    folder = FOUND / args.target / f"again-{args.seed}"
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as samples:
        target = TARGETS[args.target](Path(samples))
        target.make(folder, Random(args.seed))
        print(f"{folder}: made", flush=True)
        target.load(folder)


if __name__ == "__main__":
    main()
