"""What an epoch of a task costs with numpy's matrix products (spacy-elmo.NumpyGemm.v1), beside one with BLIS.

The network is that of a config (configs/ner_elmo.cfg) with the embedded biLM; sentences are generated, their gold is
random. Both train on the same batches in one run and take turns, epoch by epoch. Layers come from the cache.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.numpy_gemm
"""

import os
import statistics
from pathlib import Path

import torch
from spacy.util import load_config

from spacy_elmo.pipeline.numpy_gemm import build_numpy_gemm

from ..common.arguments import add_common, count, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of
from .task_epochs import CONFIG, Run, pipeline


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG, help="of the task")
    parser.add_argument("--sentences", type=count, default=1000, help="of an epoch")
    parser.add_argument("--words", type=count, default=1000, help="words in a batch")
    parser.add_argument("--epochs", type=count, default=5, help="epochs after the first")
    add_common(parser, "threads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences, config = generated(args.sentences, 0), load_config(args.config, interpolate=True)
    width = options_of("mini").width
    blis, numpy = (Run(pipeline(config, {"cache_mb": 8192}, width), sentences, args.words) for _ in range(2))
    build_numpy_gemm()(numpy.nlp)
    blis.epoch()
    numpy.epoch()
    meter = LoadMeter([os.getpid()])
    times = [(blis.epoch(), numpy.epoch()) for _ in range(args.epochs)]
    for number, (slow, fast) in enumerate(times, 2):
        print(f"epoch {number}: BLIS {slow:.2f} s, numpy {fast:.2f} s, ratio {slow / fast:.2f}")
    print(f"median ratio {statistics.median(slow / fast for slow, fast in times):.2f}")
    print(f"load of the machine before, and other processes' cores meanwhile: {meter.stop()}")


if __name__ == "__main__":
    main()
