"""Read damaged files of strangers for some minutes, and keep what crashes, hangs, or raises what is no ElmoError.

    python -m scripts.harness.fuzz --minutes 3                     # all targets, 3 minutes each
    python -m scripts.harness.fuzz --target weights --seed 123     # one input again

An input is a valid file in which bytes, or parts of its structure, were changed at random. Each is read in a fork with
limits on memory and processor time. If an HDF5 file makes it crash, hang or take too much memory, it is read apart, as
SECURITY.md promises; if that reads or refuses it, it is counted as contained.
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

from spacy_elmo.errors import ElmoError
from spacy_elmo.formats import (
    BiLMOptions,
    VectorsWriter,
    read_options,
    read_vectors,
    read_weights,
    write_options,
    write_weights,
)
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.softmax import AdaptiveSoftmax, Softmax
from spacy_elmo.pretraining.language_model import read_output_layer, write_output_layer

SECONDS, BYTES = 20, 2 * 2**30  # of processor time and of memory, for one input
WAITING_SECONDS = 300  # by the clock, for an input that waits and so uses no processor
BATCH = 100  # inputs that one fork reads
KEPT, FOUND = 3, Path("runs/fuzz")  # inputs of a kind of finding
OPTIONS = BiLMOptions(4, ((1, 4), (2, 8)), 1, "relu", 20, 16, 8, 2, 3.0, 3.0, True)
FORK = multiprocessing.get_context("fork")  # the imports are paid for once


class Target(NamedTuple):
    """A kind of file.

    make: writes an input into an empty folder. load: reads it; only an ElmoError may come of it. apart: the same in a
    process of its own.
    """

    make: Callable[[Path, Random], None]
    load: Callable[[Path], object]
    apart: Callable[[Path], object] | None = None


# Random changes. The same generator makes the same changes

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
ODD_TEXTS = (
    *("", " ", "\0", "\ufeff", "\ud800", "\udfff", "\u2028", "\x85", "\r", "\u202e", "e\u0301" * 50, "👩‍👩‍👧"),
    *("\U0010ffff", "a" * 100_000, "../../etc/passwd", "${paths.train}", "{0.__class__}", "%s%n", "NaN", "1e999"),
)
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**200, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *([], {}, [[]], [1, 2], {"a": 1}, [None] * 50, *ODD_TEXTS),
)
ODD_VALUES = (*JSON_VALUES, b"", b"\xff\xfe")


def mutated(data: bytes, random: Random) -> bytes:
    """Return a copy of some bytes with 1 to 8 changes: bits, numbers, blocks, cuts, and copies of other places."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            return random.randbytes(random.randint(1, 20))
        place, kind, source = random.randrange(len(changed)), random.randrange(8), random.randrange(len(changed))
        end = min(len(changed), place + random.choice((1, 2, 4, 8, 64, 512)))
        if kind <= 1:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == 2:
            changed[place:end] = random.randbytes(end - place)
        elif kind == 3:
            size = random.choice((1, 2, 4, 8))
            number = random.choice(NUMBERS) & (256**size - 1)
            changed[place : place + size] = number.to_bytes(size, random.choice(("little", "big")))
        elif kind == 4:
            del changed[place:end]
        elif kind == 5:
            changed[place:end] = changed[source : source + end - place]
        elif kind == 6:
            changed[place:place] = changed[source : source + end - place]
        else:
            del changed[place:]
    return bytes(changed)


def changed_tree(tree: Any, random: Random, odd: Sequence[Any]) -> Any:
    """Return a copy of a tree of dicts and lists, in which up to 3 places have odd or others' values, or are gone."""
    tree = copy.deepcopy(tree)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return copy.deepcopy(random.choice(odd))
        holder, key = random.choice(places)
        kind = random.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, name = random.choice(places)
            if isinstance(other, dict) or name < len(other):
                holder[key] = copy.deepcopy(other[name])
        elif kind == 2 and isinstance(holder, dict):
            holder[random.choice((*ODD_TEXTS[:12], "extra"))] = copy.deepcopy(random.choice(odd))
        elif kind == 3 and isinstance(holder[key], bytes):
            holder[key] = mutated(holder[key], random)
        elif kind == 4:
            for _ in range(random.choice((1, 2, 200))):
                holder[key] = [holder[key]]
        else:
            holder[key] = copy.deepcopy(random.choice(odd))
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    keys: Sequence[Any] = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        found += [(tree, key), *_places(tree[key])]
    return found


# HDF5: changed bytes, and valid files of another structure than expected

TYPES = ("<f4", ">f4", "<f2", "<f8", "<i4", "u1", "?", "<c8", "S7", [("a", "<f4"), ("b", "<i2")])
FILTERS: tuple[dict[str, Any], ...] = (
    *({"compression": "gzip"}, {"compression": "lzf"}, {"shuffle": True}, {"fletcher32": True}),
    *({"scaleoffset": 2}, {"compression": "szip"}),
)


def restructured(path: Path, random: Random) -> None:
    """Replace up to four datasets or groups of a file by something else, or add something."""
    refused = (ValueError, TypeError, OSError, RuntimeError, KeyError, OverflowError, MemoryError)
    with suppress(*refused), h5py.File(path, "a") as file:  # h5py itself refuses some of them
        for _ in range(random.choice((1, 1, 2, 4))):
            names: list[str] = []
            file.visit(names.append)
            if not names:
                return
            name = random.choice(names)
            values = np.zeros(3, np.float32)
            if isinstance(file[name], h5py.Dataset) and (file[name].size or 0) < 10_000:
                values = np.ones(file[name].shape, np.float32)
            if random.random() < 0.1:
                name += random.choice(ODD_TEXTS[:4]).replace("\0", "") + "x"
            else:
                del file[name]
            random.choice(_others(file, name, values, random))()


def _others(file: h5py.File, name: str, values: np.ndarray, random: Random) -> list[Callable[[], object]]:
    """Return what writes something odd under a name. values: what one expects there."""
    shape, choice = values.shape, random.choice
    odd_shape = choice(((), (0,), (1,), shape[::-1], (*shape, 1), (1,) * 32, shape[1:]))
    huge = choice((shape, (2**40,), (2**40, 8), (2**62,)))
    target = choice(("/", "/none", f"/{name}/.", "char_embed"))
    fill = choice((0.0, float("nan"), 1e38))
    new, odd_values = file.create_dataset, np.full(shape, choice((np.nan, np.inf, 3e38, 1e-45)), np.float32)

    def virtual() -> None:
        layout = h5py.VirtualLayout(shape, "<f4")
        layout[...] = h5py.VirtualSource(choice(("file.hdf5", ".", "/etc/passwd")), name, shape)
        file.create_virtual_dataset(name, layout)

    def zeros() -> None:  # they take little room in the file and much in memory
        size = choice(((2**12, 2**12), (2**28,), (2**24, 8)))
        new(name, size, "<f4", chunks=True, compression="gzip")[(slice(0, 1),) * len(size)] = 1.0

    def put(value: object) -> None:
        file[name] = value

    return [
        lambda: new(name, shape, np.dtype(choice(TYPES))),
        lambda: new(name, odd_shape, "<f4"),
        # of any size, of which the file holds nothing
        lambda: new(name, huge, "<f4", fillvalue=fill),
        lambda: new(name, huge, "<f4", chunks=tuple(min(n, 1024) for n in huge), fillvalue=fill),
        lambda: new(name, data=values, chunks=tuple(max(1, n // choice((1, 2, 3))) for n in shape), **choice(FILTERS)),
        zeros,
        lambda: put(h5py.SoftLink(target)),
        lambda: put(h5py.ExternalLink(choice(("file.hdf5", "/etc/passwd")), target)),
        lambda: put(file["/"]),
        virtual,
        lambda: new(name, shape, "<f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]),
        lambda: new(name, (3,), choice((h5py.ref_dtype, h5py.regionref_dtype, h5py.string_dtype()))),
        lambda: file.create_group(name),
        lambda: put(np.dtype("<f4")),
        lambda: new(name, data=odd_values),
        lambda: new(name, data=values).attrs.create("x", choice(("a" * 60_000, np.zeros(5000)))),
    ]


def hdf5_target(valid: bytes, load: Callable[..., object]) -> Target:
    """Return the target of a kind of HDF5 file. load: takes the path and `untrusted`."""

    def make(folder: Path, random: Random) -> None:
        path = folder / "file.hdf5"
        if random.random() < 0.6:
            path.write_bytes(mutated(valid, random))
            return
        path.write_bytes(valid)
        code = forked(restructured, path, Random(random.random()))  # libhdf5 crashes on some of what it is to write
        if code:
            print(f"what writes an input was ended by {code}", file=sys.stderr, flush=True)
        if random.random() < 0.2:
            path.write_bytes(mutated(path.read_bytes(), random))

    return Target(
        make,
        lambda folder: load(folder / "file.hdf5", untrusted=False),
        lambda folder: load(folder / "file.hdf5", untrusted=True),
    )


# The targets. Each function writes valid files once, into a folder


def bilm_in(folder: Path) -> dict[str, str]:
    """Write a random biLM of OPTIONS into a folder. Return the settings that name its files."""
    bilm = BiLM(OPTIONS)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    write_options(files["options_file"], OPTIONS)
    write_weights(files["weight_file"], OPTIONS, bilm.to_arrays())
    return files


def options(folder: Path) -> Target:
    valid = Path(bilm_in(folder)["options_file"]).read_bytes()

    def make(folder: Path, random: Random) -> None:
        changed = json.dumps(changed_tree(json.loads(valid), random, JSON_VALUES)).encode("utf8", "surrogatepass")
        _write(folder / "options.json", mutated(valid, random) if random.random() < 0.4 else changed)

    return Target(make, lambda folder: read_options(folder / "options.json"))


def weights(folder: Path) -> Target:
    valid = Path(bilm_in(folder)["weight_file"]).read_bytes()
    return hdf5_target(valid, lambda path, untrusted: read_weights(path, OPTIONS, untrusted=untrusted))


def softmax(folder: Path) -> Target:
    return _output_layer(folder, Softmax(30, 8))


def adaptive(folder: Path) -> Target:
    return _output_layer(folder, AdaptiveSoftmax(30, 16, (5, 15)))


def _output_layer(folder: Path, layer: Softmax | AdaptiveSoftmax) -> Target:
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    write_output_layer(folder / "softmax.hdf5", layer, np.float32)
    return hdf5_target((folder / "softmax.hdf5").read_bytes(), read_output_layer)


def vectors(folder: Path) -> Target:
    with VectorsWriter(folder / "vectors.hdf5") as writer:
        for n in (2, 1, 5):
            writer.write(" ".join("a" * n), np.ones((3, n, 8), np.float32))
    valid = (folder / "vectors.hdf5").read_bytes()
    return hdf5_target(valid, lambda path, untrusted: list(read_vectors(path, untrusted=untrusted)))


def pipeline_bytes(folder: Path) -> Target:
    new = _pipes(folder)
    valid = new().to_bytes()
    return Target(
        lambda folder, random: _write(folder / "pipe.bin", changed_message(valid, random)),
        lambda folder: _use(new().from_bytes((folder / "pipe.bin").read_bytes())),
    )


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


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


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

    if random.random() >= 0.4:
        with suppress(Exception):  # it is no msgpack, or msgpack has no such values
            tree = unpacked(srsly.msgpack_loads(data))
            return bytes(srsly.msgpack_dumps(packed(changed_tree(tree, random, ODD_VALUES))))
    return mutated(data, random)


TARGETS: dict[str, Callable[[Path], Target]] = {
    function.__name__: function
    for function in (options, weights, softmax, adaptive, vectors, pipeline_bytes, pipeline_folders)
}


def forked(work: Callable[..., None], *arguments: object) -> int | None:
    child = FORK.Process(target=work, args=arguments)
    child.start()
    child.join()
    return child.exitcode


def _read(target: Target, seeds: Iterable[int], folder: Path, current: Synchronized[int]) -> None:
    """Read one input after another until one has a finding, which is written to finding.txt."""
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
    with "contained" if it was read or refused apart. "" if there is nothing.
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
        if target.apart is not None and kind in ("hang", "crash", "memory"):
            try:
                target.apart(folder)
                kind += ", contained"
            except ElmoError:
                kind += ", contained"
            except Exception as error:
                kind += f", and {type(error).__name__} in a process of its own"
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
    found = sum(n for kind, n in counts.items() if not kind.endswith("contained"))
    print(f"{name}: {seed - first + 1:,} inputs, {found} findings, {counts.total() - found} contained", flush=True)
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
        sys.exit(int(sum(found) > 0))
    folder = FOUND / args.target / f"again-{args.seed}"
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as samples:
        target = TARGETS[args.target](Path(samples))
        target.make(folder, Random(args.seed))
        print(f"{folder}: made", flush=True)
        target.load(folder)


if __name__ == "__main__":
    main()
