"""What an epoch of a task costs with ELMo, beside the same network on x alone, and beside ELMo without the cache.

The network is that of a config (configs/ner_elmo.cfg); x alone: the same with spacy.Tok2Vec.v2 in the place of
spacy-elmo.ElmoTok2Vec.v1 and without the elmo pipe. Configs of ner and textcat will do. The sentences are generated,
their gold is random. All train on the same batches in one run and take turns, epoch by epoch: the time is that of
nlp.update and the optimizer, without evaluation. Random weights but for the embedded biLM.

    python -m benchmarks.speed.task_epochs                    # the embedded biLM: epochs after the first beside x alone
    python -m benchmarks.speed.task_epochs --size original    # official size: also an epoch without the cache
"""

import copy
import os
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
from spacy.util import load_config
from thinc.api import fix_random_seed

from ..common.arguments import SIZES, add_common, count, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of, write_model

CONFIG = Path(__file__).parents[2] / "configs" / "ner_elmo.cfg"


def without_elmo(block: Any) -> Any:
    """A config with each ElmoTok2Vec replaced by its x and its encoder."""
    if not isinstance(block, dict):
        return block
    if block.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
        parts = {name: block[name] for name in ("embed", "encode")}
        return {"@architectures": "spacy.Tok2Vec.v2"} | parts
    return {name: without_elmo(value) for name, value in block.items() if name != "elmo"}


def pipeline(config: dict[str, Any], elmo: dict[str, Any] | None, width: int, input_only: bool = False) -> Language:
    """The components of a config; elmo: settings of the pipe, None: x alone."""
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
        else:
            _set_width(block, width, input_only)
        nlp.add_pipe(factory, name=name, config=block)
    return nlp


def _set_width(block: dict[str, Any], width: int, input_only: bool) -> None:
    if input_only and "output_elmo" in block:
        block["output_elmo"] = None
    if block.get("@architectures") == "spacy-elmo.Listener.v1":
        block["width"] = width
    for value in block.values():
        if isinstance(value, dict):
            _set_width(value, width, input_only)


def examples(nlp: Language, sentences: list[list[str]]) -> list[Example]:
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
    """A pipeline and its batches."""

    def __init__(self, nlp: Language, sentences: list[list[str]], words: int) -> None:
        fix_random_seed(0)
        self.nlp = nlp
        gold = examples(nlp, sentences)
        nlp.initialize(lambda: gold)
        self.batches = [list(batch) for batch in minibatch_by_words(gold, size=words)]
        self.optimizer = nlp.create_optimizer()

    def epoch(self, batches: int | None = None) -> float:
        """Seconds of an epoch, as `spacy train` runs it, or of its first batches."""
        begin = time.perf_counter()
        for batch in self.batches[:batches]:
            # False, not None: the optimizer is applied below (spacy train does it so, against its own types)
            self.nlp.update(batch, sgd=False, drop=0.1, losses={})  # type: ignore[arg-type]
            pipes: list[Any] = [pipe for _, pipe in self.nlp.pipeline]
            for pipe in pipes:
                pipe.finish_update(self.optimizer)
        return time.perf_counter() - begin


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--size", choices=SIZES, default="mini", help="of the network")
    parser.add_argument("--config", type=Path, default=CONFIG, help="of the task")
    parser.add_argument("--sentences", type=count, default=1000, help="of an epoch")
    parser.add_argument("--words", type=count, default=1000, help="words in a batch")
    parser.add_argument("--epochs", type=count, default=5, help="epochs after the first")
    parser.add_argument("--input-only", action="store_true", help="without output_elmo, if the config has it")
    add_common(parser, "threads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences, config = generated(args.sentences, 0), load_config(args.config, interpolate=True)
    options = options_of(args.size)
    with tempfile.TemporaryDirectory() as folder:
        files: dict[str, Any] = {}
        if args.size != "mini":
            write_model(Path(folder), options, 0, sentences)
            paths = {"options_file": f"{folder}/options.json", "weight_file": f"{folder}/model.hdf5"}
            files = {"model": paths}
        alone = Run(pipeline(config, None, options.width), sentences, args.words)
        cached, uncached = (
            Run(pipeline(config, {**files, "cache_mb": size}, options.width, args.input_only), sentences, args.words)
            for size in (8192, 0)
        )
        tokens = sum(map(len, sentences))
        size = f"{len(sentences)} sentences, {tokens} tokens, {len(alone.batches)} batches"
        print(f"{args.config.name}, {args.size}, {size}, {args.threads} threads")
        meter = LoadMeter([os.getpid()])
        alone.epoch()
        print(f"first epoch with the cache: {cached.epoch():.2f} s")
        times = [(alone.epoch(), cached.epoch()) for _ in range(args.epochs)]
        for number, (x, elmo) in enumerate(times, 2):
            print(f"epoch {number}: x alone {x:.2f} s, [x; ELMo] from the cache {elmo:.2f} s, ratio {elmo / x:.2f}")
        print(f"median ratio {statistics.median(elmo / x for x, elmo in times):.2f}")
        slow, slow_pipe = timed(uncached)
        again, again_pipe = timed(cached)
        print(f"without the cache {slow:.2f} s, with it {again:.2f} s: {slow / again:.1f} times less")
        share = f"{slow_pipe:.2f} s, with it {again_pipe:.3f} s: {slow_pipe / again_pipe:.0f} times less"
        print(f"the elmo pipe's own part of that: {share}")
        print(f"load of the machine before, and other processes' cores meanwhile: {meter.stop()}")
        vectors = [docs_layers(run, sentences[:50]) for run in (cached, uncached)]
        print(f"largest difference of their layers: {max(np.abs(a - b).max() for a, b in zip(*vectors)):.1e}")


def timed(run: Run) -> tuple[float, float]:
    """Seconds of an epoch, and those in the elmo pipe's update."""
    pipe: Any = run.nlp.get_pipe("elmo")
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
        return run.epoch(), inside
    finally:
        del pipe.update


def docs_layers(run: Run, sentences: list[list[str]]) -> list[Any]:
    """The layers of some docs, as the pipeline gives them."""
    pipe: Any = run.nlp.get_pipe("elmo")
    return list(pipe.predict([Doc(run.nlp.vocab, words=words) for words in sentences]))


if __name__ == "__main__":
    main()
