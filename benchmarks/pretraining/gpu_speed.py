"""Tokens per second of pretraining on a GPU, from the text to the update, with and without what makes it fast.

Each row is a trainer of its own on the same prepared text. Its updates are counted after a
warm-up, until the GPU has finished. Then comes a profile of updates with the last number of streams.

    python -m benchmarks.pretraining.gpu_speed TEXT --streams 512,1024,2048 --readers 8
"""

import argparse
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import lstm_gpu as gpu_scan
from spacy_elmo.modules.lstm_gpu import fused_cell
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.starting import starting_model
from spacy_elmo.pretraining.trainer import Trainer
from spacy_elmo.pretraining.vocabulary import Vocabulary

from ..common.arguments import SIZES
from ..common.model_sizes import options_of

WARM_UP = 10  # updates: kernels are compiled, and the readers have read ahead


def trainer_of(
    options: BiLMOptions, corpus: PreparedCorpus, vocabulary: Vocabulary, streams: int, readers: int
) -> Trainer:
    """Return a trainer of a biLM of these sizes with the default settings, on the GPU."""
    settings = TrainingSettings(streams=streams, readers=readers)
    config = PretrainConfig(PathSettings("text"), options, training=settings)
    model = starting_model(config.bilm, config.paths, settings, vocabulary)
    return Trainer(settings, model, corpus, config.corpus.shuffle_block, Group(device=torch.device("cuda")))


def measure(trainer: Trainer, updates: int) -> float:
    """Return the tokens per second of an opened trainer."""
    for _ in range(WARM_UP):
        trainer.step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(updates):
        trainer.step()
    torch.cuda.synchronize()
    return updates * trainer.tokens_per_update / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="plain text, one sentence a line")
    parser.add_argument("--streams", default="512,1024,2048", help="numbers of streams, with commas")
    parser.add_argument("--readers", type=int, default=8, help="processes that read the text ahead")
    parser.add_argument("--updates", type=int, default=60, help="updates of each row")
    parser.add_argument("--quick", action="store_true", help="only the rows with all that makes it fast")
    parser.add_argument("--profile", type=Path, help="file for the profile's table")
    parser.add_argument("--size", choices=SIZES, default="mini", help="of the network")
    given = parser.parse_args()
    options = options_of(given.size)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(given.text, Path(folder) / "corpus")
        vocabulary = Vocabulary.build(corpus, 50_000)
        for streams in map(int, given.streams.split(",")):
            rows = [
                ("all", given.readers, True),
                ("without the fused cell", given.readers, False),
                ("without readers", 0, True),
            ]
            for name, readers, fused in rows[:1] if given.quick else rows:
                cell = patch.object(gpu_scan, "fused_cell", fused_cell if fused else lambda _: None)
                with cell, trainer_of(options, corpus, vocabulary, streams, readers) as trainer:
                    speed = measure(trainer, given.updates)
                print(f"{streams:5} streams, {name:24} {speed:12,.0f} tokens/s", flush=True)
        with trainer_of(options, corpus, vocabulary, streams, given.readers) as trainer:
            measure(trainer, 5)
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
                measure(trainer, 10)
        for key in ("self_cuda_time_total", "self_cpu_time_total"):
            table = recorded.key_averages().table(sort_by=key, row_limit=35, max_name_column_width=60)
            if given.profile:
                with given.profile.open("a") as file:
                    file.write(table)
            else:
                print(table)


if __name__ == "__main__":
    main()
