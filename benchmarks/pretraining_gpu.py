"""Tokens per second of pretraining on a GPU, from the text to the update.

Each row is a trainer of its own on the same prepared text. Its updates are timed after a warm-up, until the GPU has
finished.

    python -m benchmarks.pretraining_gpu TEXT --streams 512,1024,2048 --readers 8
"""

import tempfile
import time
from pathlib import Path

import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.folder import starting_model
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.trainer import Trainer
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from .common import SIZES, numbers_of, options_of, parser_of

WARM_UP, UPDATES = 10, 60  # at first kernels are compiled, and the readers read ahead


def trainer_of(
    options: BiLMOptions, corpus: PreparedCorpus, vocabulary: Vocabulary, streams: int, readers: int
) -> Trainer:
    """Return a trainer of a biLM of these sizes with the default settings, on the GPU."""
    settings = TrainingSettings(streams=streams, readers=readers)
    config = PretrainConfig(PathSettings("text"), options, training=settings)
    model = starting_model(config, vocabulary)
    return Trainer(settings, model, corpus, config.corpus.shuffle_block, Group(device=torch.device("cuda")))


def measure(trainer: Trainer) -> float:
    for _ in range(WARM_UP):
        trainer.step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(UPDATES):
        trainer.step()
    torch.cuda.synchronize()
    return UPDATES * trainer.tokens_per_update / (time.perf_counter() - start)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("text", type=Path, help="plain text, one sentence a line")
    parser.add_argument("--streams", type=numbers_of, default="512,1024,2048", help="numbers of streams, with commas")
    parser.add_argument("--readers", type=int, default=8, help="processes that read the text ahead")
    parser.add_argument("--size", choices=SIZES, default="en_mini", help="of the network")
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(args.text, Path(folder) / "corpus")
        vocabulary = Vocabulary.from_counts(count_words(corpus), 50_000)
        for streams in args.streams:
            with trainer_of(options_of(args.size), corpus, vocabulary, streams, args.readers) as trainer:
                print(f"{streams:5} streams {measure(trainer):12,.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
