"""What an epoch of a task costs with numpy's matrix products (spacy-elmo.NumpyGemm.v1), beside one with BLIS.

The network is that of a config (configs/ner_elmo.cfg) with the embedded biLM; sentences are generated, their gold is
random. Both train on the same batches in one run and take turns, epoch by epoch. Layers come from the cache.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.numpy_gemm
"""

import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from spacy.util import load_config
from thinc.api import NumpyOps

from spacy_elmo.pipeline.callbacks import build_numpy_gemm

from ..common.arguments import add_common, count, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of
from .task_epochs import CONFIG, Run, pipeline


def gigaflops(ops: NumpyOps, rows: int = 1000, columns: int = 384, width: int = 288) -> float:
    """The rate of a product of the sizes of an encoder's layer, the best of 40."""
    source = np.random.default_rng(0)
    x, y = (source.standard_normal(size, dtype=np.float32) for size in ((rows, columns), (width, columns)))
    seconds = []
    for _ in range(40):
        begin = time.perf_counter()
        ops.gemm(x, y, trans2=True)
        seconds.append(time.perf_counter() - begin)
    return 2e-9 * rows * columns * width / min(seconds)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG, help="of the task")
    parser.add_argument("--sentences", type=count, default=1000, help="of an epoch")
    parser.add_argument("--words", type=count, default=1000, help="words in a batch")
    parser.add_argument("--epochs", type=count, default=5, help="epochs after the first")
    add_common(parser, "threads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rates = [gigaflops(NumpyOps(use_blis=use_blis)) for use_blis in (True, False)]
    print(f"a product of 1,000 x 384 and 384 x 288 numbers: BLIS {rates[0]:.0f}, numpy {rates[1]:.0f} GFLOPS")
    sentences, config = generated(args.sentences, 0), load_config(args.config, interpolate=True)
    width = options_of("mini").width
    with_blis, with_numpy = (Run(pipeline(config, {"cache_mb": 8192}, width), sentences, args.words) for _ in range(2))
    build_numpy_gemm()(with_numpy.nlp)
    with_blis.epoch()
    with_numpy.epoch()
    meter = LoadMeter([os.getpid()])
    times = [(with_blis.epoch(), with_numpy.epoch()) for _ in range(args.epochs)]
    for number, (slow, fast) in enumerate(times, 2):
        print(f"epoch {number}: BLIS {slow:.2f} s, numpy {fast:.2f} s, ratio {slow / fast:.2f}")
    print(f"median ratio {statistics.median(slow / fast for slow, fast in times):.2f}")
    print(f"load of the machine before, and other processes' cores meanwhile: {meter.stop()}")


if __name__ == "__main__":
    main()
