"""What an epoch of a task costs with ELMo, beside the same network on x alone, and beside ELMo without the cache.

The network is that of a config (configs/ner_elmo.cfg); x alone: the same with spacy.Tok2Vec.v2 in the place of
spacy-elmo.ElmoTok2Vec.v1 and without the elmo pipe. Configs of ner and textcat will do. The sentences are generated,
their gold is random. All train on the same batches in one run and take turns, epoch by epoch: the time is that of
nlp.update and the optimizer, without evaluation. Random weights but for the embedded biLM.

    python -m benchmarks.task_epochs                    # the embedded biLM: epochs after the first beside x alone
    python -m benchmarks.task_epochs --size original    # official size: also an epoch without the cache
    OMP_NUM_THREADS=1 python -m benchmarks.task_epochs --numpy-gemm --threads 1    # numpy's matrices beside BLIS's
"""

import argparse
import copy
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.util import load_config, registry
from thinc.api import NumpyOps, fix_random_seed

from .common import ROOT, SIZES, LoadMeter, Sentences, generated, options_of, parser_of, write_model

WORDS, EPOCHS = 1000, 5  # in a batch; after the first


def without_elmo(block: Any) -> Any:
    """Replace each ElmoTok2Vec of a config by its x and its encoder."""
    if not isinstance(block, dict):
        return block
    if block.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
        return {"@architectures": "spacy.Tok2Vec.v2", "embed": block["embed"], "encode": block["encode"]}
    return {name: without_elmo(value) for name, value in block.items() if name != "elmo"}


def pipeline(config: dict[str, Any], elmo: dict[str, Any] | None, input_only: bool = False) -> Language:
    """Make the components of a config. elmo: settings of the pipe; None: x alone."""
    components = copy.deepcopy(dict(config["components"]))
    nlp = spacy.blank(config["nlp"]["lang"])
    for name in config["nlp"]["pipeline"]:
        block = components[name]
        factory = block.pop("factory")
        if factory == "elmo":
            if elmo is not None:
                nlp.add_pipe("elmo", name=name, config=elmo)
            continue
        if elmo is None:
            block = without_elmo(block)
        elif input_only:
            _remove_output(block)
        nlp.add_pipe(factory, name=name, config=block)
    return nlp


def _remove_output(block: dict[str, Any]) -> None:
    if "output_elmo" in block:
        block["output_elmo"] = None
    for value in block.values():
        if isinstance(value, dict):
            _remove_output(value)


def examples(nlp: Language, sentences: Sentences) -> list[Example]:
    """Gold at random: an entity at each twentieth word or so, and a category."""
    source = random.Random(0)
    gold = []
    for words in sentences:
        doc = Doc(nlp.vocab, words=words)
        doc.ents = [Span(doc, i, i + 1, source.choice("ABC")) for i in range(len(doc)) if source.random() < 0.05]
        label = source.choice("01234")
        doc.cats = {other: float(other == label) for other in "01234"}
        gold.append(Example(Doc(nlp.vocab, words=words), doc))
    return gold


class Run:
    def __init__(self, nlp: Language, sentences: Sentences, words: int) -> None:
        fix_random_seed(0)
        self.nlp = nlp
        gold = examples(nlp, sentences)
        nlp.initialize(lambda: gold)
        self.batches = [list(batch) for batch in minibatch_by_words(gold, size=words)]
        self.optimizer = nlp.create_optimizer()

    def epoch(self) -> float:
        """Return the seconds of an epoch, as `spacy train` runs it."""
        begin = time.perf_counter()
        for batch in self.batches:
            # False, not None: the optimizer is applied below (spacy train does it so, against its own types)
            self.nlp.update(batch, sgd=False, drop=0.1, losses={})  # type: ignore[arg-type]
            pipes: list[Any] = [pipe for _, pipe in self.nlp.pipeline]
            for pipe in pipes:
                pipe.finish_update(self.optimizer)
        return time.perf_counter() - begin

    def timed(self) -> tuple[float, float]:
        """Return the seconds of an epoch, and those in the elmo pipe's update."""
        pipe: Any = self.nlp.get_pipe("elmo")
        inside = 0.0
        update = pipe.update

        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            begin = time.perf_counter()
            try:
                return update(*args, **kwargs)
            finally:
                inside += time.perf_counter() - begin

        pipe.update = counted
        try:
            return self.epoch(), inside
        finally:
            del pipe.update

    def layers(self, sentences: Sentences) -> list[Any]:
        pipe: Any = self.nlp.get_pipe("elmo")
        return list(pipe.predict([Doc(self.nlp.vocab, words=words) for words in sentences]))


def in_turns(first: Run, second: Run, names: tuple[str, str]) -> list[tuple[float, float]]:
    """Print the seconds of epochs, in turns, and return them."""
    times = []
    for number in range(2, EPOCHS + 2):
        times.append((first.epoch(), second.epoch()))
        a, b = times[-1]
        print(f"epoch {number}: {names[0]} {a:.2f} s, {names[1]} {b:.2f} s", flush=True)
    return times


def with_cache(config: dict[str, Any], sentences: Sentences, args: argparse.Namespace) -> None:
    """Print what an epoch costs with ELMo, beside x alone and beside ELMo without the cache."""
    with tempfile.TemporaryDirectory() as folder:
        model = {} if args.size == "mini" else {"model": write_model(Path(folder), options_of(args.size), sentences)}
        alone = Run(pipeline(config, None), sentences, WORDS)
        cached, uncached = (
            Run(pipeline(config, {**model, "cache_mb": size}, args.input_only), sentences, WORDS) for size in (8192, 0)
        )
        alone.epoch()
        print(f"first epoch with the cache: {cached.epoch():.2f} s")
        times = in_turns(alone, cached, ("x alone", "[x; ELMo] from the cache"))
        print(f"median ratio {statistics.median(elmo / x for x, elmo in times):.2f}")
        slow, slow_pipe = uncached.timed()
        again, again_pipe = cached.timed()
        print(f"without the cache {slow:.2f} s, with it {again:.2f} s: {slow / again:.1f} times less")
        share = f"{slow_pipe:.2f} s, with it {again_pipe:.3f} s: {slow_pipe / again_pipe:.0f} times less"
        print(f"the elmo pipe's own part of that: {share}")
        pairs = zip(cached.layers(sentences[:50]), uncached.layers(sentences[:50]))
        print(f"largest difference of their layers: {max(np.abs(a - b).max() for a, b in pairs):.1e}")


def gigaflops(ops: NumpyOps) -> float:
    """Return the rate of a multiplication of the sizes of an encoder's layer, the best of 40."""
    source = np.random.default_rng(0)
    x, y = (source.standard_normal(size, dtype=np.float32) for size in ((1000, 384), (288, 384)))
    seconds = []
    for _ in range(40):
        begin = time.perf_counter()
        ops.gemm(x, y, trans2=True)
        seconds.append(time.perf_counter() - begin)
    return 2e-9 * 1000 * 384 * 288 / min(seconds)


def with_numpy(config: dict[str, Any], sentences: Sentences, args: argparse.Namespace) -> None:
    """Print what an epoch costs with numpy's matrix multiplications, beside one with BLIS."""
    rates = [gigaflops(NumpyOps(use_blis=use_blis)) for use_blis in (True, False)]
    print(f"1,000 x 384 by 384 x 288 numbers: BLIS {rates[0]:.0f}, numpy {rates[1]:.0f} GFLOPS")
    blis, numpy = (Run(pipeline(config, {"cache_mb": 8192}), sentences, WORDS) for _ in range(2))
    registry.callbacks.get("spacy-elmo.NumpyGemm.v1")()(numpy.nlp)
    blis.epoch()
    numpy.epoch()
    times = in_turns(blis, numpy, ("BLIS", "numpy"))
    print(f"median ratio {statistics.median(slow / fast for slow, fast in times):.2f}")


def main() -> None:
    parser = parser_of(__doc__, "threads")
    parser.add_argument("--size", choices=SIZES, default="mini", help="of the network")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "ner_elmo.cfg", help="of the task")
    parser.add_argument("--sentences", type=int, default=1000, help="of an epoch")
    parser.add_argument("--input-only", action="store_true", help="without output_elmo, if the config has it")
    parser.add_argument("--numpy-gemm", action="store_true", help="compare numpy with BLIS, with the embedded biLM")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences = generated(args.sentences, 0)
    print(f"{args.config.name}, {args.size}, {sum(map(len, sentences)):,} tokens, {args.threads} threads")
    meter = LoadMeter()
    run = with_numpy if args.numpy_gemm else with_cache
    run(load_config(args.config, interpolate=True), sentences, args)
    print(f"load of the machine before, and other processes' cores meanwhile: {meter.stop()}")


if __name__ == "__main__":
    main()
