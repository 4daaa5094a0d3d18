"""What an epoch of a task costs with ELMo, beside the same network on x alone, and beside ELMo without the cache.

The network is that of a config (configs/ner_elmo.cfg); x alone: the same with spacy.Tok2Vec.v2 in the place of
spacy-elmo.ElmoTok2Vec.v1 and without the elmo pipe. Configs of ner and textcat will do. The sentences are generated,
their gold is random. All train on the same batches in one run and take turns, epoch by epoch: the time is that of
nlp.update and the optimizer, without evaluation. Official sizes have random weights.

    python -m benchmarks.task_epochs                    # en_mini: epochs after the first beside x alone
    python -m benchmarks.task_epochs --size original    # official size: also an epoch without the cache
    OMP_NUM_THREADS=1 python -m benchmarks.task_epochs --numpy-gemm --threads 1    # numpy's matrices beside BLIS's
"""

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

from .common import ROOT, SIZES, Load, Sentences, generated, parser_of, write_model

WORDS, EPOCHS = 1000, 5  # in a batch; after the first


def changed(block: Any, alone: bool, input_only: bool) -> Any:
    """Return a copy of a part of a config.

    alone: each ElmoTok2Vec is replaced by its x and its encoder. input_only: it has no output_elmo.
    """
    if not isinstance(block, dict):
        return block
    if alone and block.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
        return {"@architectures": "spacy.Tok2Vec.v2", "embed": block["embed"], "encode": block["encode"]}
    if input_only and "output_elmo" in block:
        block = {**block, "output_elmo": None}
    return {name: changed(value, alone, input_only) for name, value in block.items() if not alone or name != "elmo"}


def pipeline(config: dict[str, Any], elmo: dict[str, Any] | None, input_only: bool = False) -> Language:
    """Make the components of a config. elmo: settings of the pipe; None: x alone."""
    nlp = spacy.blank(config["nlp"]["lang"])
    for name in config["nlp"]["pipeline"]:
        block = copy.deepcopy(config["components"][name])
        factory = block.pop("factory")
        if factory != "elmo":
            nlp.add_pipe(factory, name=name, config=changed(block, elmo is None, input_only))
        elif elmo is not None:
            nlp.add_pipe("elmo", name=name, config=elmo)
    return nlp


class Run:
    def __init__(self, nlp: Language, sentences: Sentences) -> None:
        fix_random_seed(0)
        self.nlp, source, gold = nlp, random.Random(0), []
        for words in sentences:  # an entity at each twentieth word or so, and a category
            doc = Doc(nlp.vocab, words=words)
            doc.ents = [Span(doc, i, i + 1, source.choice("ABC")) for i in range(len(doc)) if source.random() < 0.05]
            label = source.choice("01234")
            doc.cats = {other: float(other == label) for other in "01234"}
            gold.append(Example(Doc(nlp.vocab, words=words), doc))
        nlp.initialize(lambda: gold)
        self.batches = [list(batch) for batch in minibatch_by_words(gold, size=WORDS)]
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


def in_turns(first: Run, second: Run, names: tuple[str, str]) -> list[tuple[float, float]]:
    """Print the seconds of epochs after the first, in turns, and return them."""
    first.epoch()
    second.epoch()
    times = []
    for number in range(2, EPOCHS + 2):
        times.append((first.epoch(), second.epoch()))
        a, b = times[-1]
        print(f"epoch {number}: {names[0]} {a:.2f} s, {names[1]} {b:.2f} s", flush=True)
    return times


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


def main() -> None:
    parser = parser_of(__doc__, "threads")
    parser.add_argument("--size", choices=SIZES, default="en_mini", help="of the network")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "ner_elmo.cfg", help="of the task")
    parser.add_argument("--sentences", type=int, default=1000, help="of an epoch")
    parser.add_argument("--input-only", action="store_true", help="without output_elmo, if the config has it")
    parser.add_argument("--numpy-gemm", action="store_true", help="compare numpy with BLIS, with the embedded biLM")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences, config = generated(args.sentences, 0), load_config(args.config, interpolate=True)
    print(f"{args.config.name}, {args.size}, {sum(map(len, sentences)):,} tokens, {args.threads} threads")
    load = Load()
    if args.numpy_gemm:
        rates = [gigaflops(NumpyOps(use_blis=use_blis)) for use_blis in (True, False)]
        print(f"1,000 x 384 by 384 x 288 numbers: BLIS {rates[0]:.0f}, numpy {rates[1]:.0f} GFLOPS")
        numpy, blis = (Run(pipeline(config, {"cache_mb": 8192}), sentences) for _ in range(2))
        registry.callbacks.get("spacy-elmo.NumpyGemm.v1")()(numpy.nlp)
        times = in_turns(numpy, blis, ("numpy", "BLIS"))
    else:
        with tempfile.TemporaryDirectory() as folder:
            files = write_model(Path(folder), args.size, sentences)
            alone = Run(pipeline(config, None), sentences)
            cached, uncached = (
                Run(pipeline(config, {"model": files, "cache_mb": size}, args.input_only), sentences)
                for size in (8192, 0)
            )
            times = in_turns(alone, cached, ("x alone", "[x; ELMo] from the cache"))
            slow, again = uncached.epoch(), cached.epoch()
        print(f"without the cache {slow:.2f} s, with it {again:.2f} s: {slow / again:.1f} times less")
    print(f"median ratio {statistics.median(b / a for a, b in times):.2f}")
    print(f"other processes' cores meanwhile: {load.cores():.2f}")


if __name__ == "__main__":
    main()
