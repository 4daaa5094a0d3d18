"""How much the layers of a frozen biLM know about parts of speech: linear probes of universal tags.

Trains a multinomial logistic regression on the frozen vectors of a CoNLL-U file's tokens, one for each layer and one
for their mean, and prints the accuracy on a second file; beside it the same network with random weights, so that
nobody credits the training with what the architecture gives for nothing. Words are tokens as the files have them:
ranges of multi-word tokens and empty nodes are left out. Each sentence is read from the zero state.

    python -m benchmarks.quality.probe_tags en_ewt-ud-train.conllu en_ewt-ud-dev.conllu
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from spacy_elmo import bilms
from spacy_elmo.formats import read_options, read_weights
from spacy_elmo.inference import Engine, token_batches
from spacy_elmo.modules import BiLM

from ..common.arguments import parser_of

L2 = 1e-5  # on standardised features, beside the mean loss of a token
BATCH_TOKENS = 8192


class Corpus(NamedTuple):
    """sentences: words. tags: of all tokens in order, numbers."""

    sentences: list[list[str]]
    tags: Tensor


def read_conllu(path: Path, limit: int | None) -> Iterator[list[tuple[str, str]]]:
    """Form and universal tag of each word, a list a sentence."""
    sentence: list[tuple[str, str]] = []
    count = 0
    with path.open(encoding="utf-8") as file:
        for line in [*file, "\n"]:
            columns = line.rstrip("\n").split("\t")
            if len(columns) == 10 and columns[0].isdigit():
                sentence.append((columns[1], columns[3]))
            elif not line.strip() and sentence:
                yield sentence
                sentence, count = [], count + 1
                if count == limit:
                    return


def read_corpus(path: Path, limit: int | None, numbers: dict[str, int]) -> Corpus:
    """numbers: of the tags; new ones are added."""
    pairs = list(read_conllu(path, limit))
    tags = [numbers.setdefault(tag, len(numbers)) for sentence in pairs for _, tag in sentence]
    return Corpus([[word for word, _ in sentence] for sentence in pairs], torch.tensor(tags))


def embed(engine: Engine, sentences: list[list[str]]) -> npt.NDArray[np.float32]:
    """The layers of all tokens in order, *Shape:* (layers, tokens, width)."""
    lengths = [len(sentence) for sentence in sentences]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    result = np.empty((engine.options.layers, int(starts[-1]), engine.options.width), np.float32)
    for batch in token_batches(lengths, BATCH_TOKENS):
        for i, layers in zip(batch, engine.run([sentences[i] for i in batch])):
            result[:, starts[i] : starts[i + 1]] = layers
    return result


def accuracy(train: Tensor, train_tags: Tensor, dev: Tensor, dev_tags: Tensor, classes: int, iterations: int) -> float:
    """Percentage of right tags. The loss is convex and starts from zero weights, so no seed is needed.

    train, dev: *Shape:* (tokens, width), not changed; the tags: (tokens,).
    """
    mean, std = train.mean(0), train.std(0).clamp_min(1e-6)
    x = (train - mean).div_(std)
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, history_size=20, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(F.linear(x, weight, bias), train_tags) + L2 * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        predicted = F.linear((dev - mean).div_(std), weight, bias).argmax(1)
    return 100 * (predicted == dev_tags).double().mean().item()


def probe(bilm: BiLM, train: Corpus, dev: Corpus, classes: int, iterations: int) -> list[float]:
    """Accuracy from each layer, then from their mean."""
    engine = Engine.of(bilm)
    x, y = torch.from_numpy(embed(engine, train.sentences)), torch.from_numpy(embed(engine, dev.sentences))
    inputs = [*zip(x, y), (x.mean(0), y.mean(0))]
    return [accuracy(a, train.tags, b, dev.tags, classes, iterations) for a, b in inputs]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("train", type=Path, help="CoNLL-U file to fit the probes on")
    parser.add_argument("dev", type=Path, help="CoNLL-U file to count the right tags on")
    parser.add_argument("--limit", type=int, help="read no more than this many sentences of each file (default: all)")
    parser.add_argument("--options-file", help="of the biLM to probe (default: the embedded en_mini)")
    parser.add_argument("--weight-file", help="of the same biLM")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    parser.add_argument("--iterations", type=int, default=100, help="of L-BFGS, the most that are made")
    args = parser.parse_args()
    if (args.options_file is None) != (args.weight_file is None):
        parser.error("--options-file and --weight-file go together")
    name = "en_mini" if args.options_file is None else args.weight_file
    files = bilms.paths("en_mini") if args.options_file is None else (args.options_file, args.weight_file)

    numbers: dict[str, int] = {}
    train = read_corpus(args.train, args.limit, numbers)
    dev = read_corpus(args.dev, args.limit, numbers)
    options = read_options(files[0])
    random = BiLM(options)
    random.reset_parameters(torch.Generator().manual_seed(args.seed))
    begin = time.perf_counter()
    trained_accuracies, random_accuracies = (
        probe(bilm.eval(), train, dev, len(numbers), args.iterations)
        for bilm in (BiLM.from_arrays(options, read_weights(files[1], options)), random)
    )
    counts = [f"{len(corpus.sentences):,} sentences, {len(corpus.tags):,} tokens" for corpus in (train, dev)]
    print(f"{args.train.name}: {counts[0]}; {args.dev.name}: {counts[1]}; {time.perf_counter() - begin:.0f} s\n")
    print(f"| universal tags, % right | {name} | same network, random weights |\n|---|---|---|")
    rows = [*(f"layer {k}" for k in range(options.layers)), "mean of the layers"]
    for row, a, b in zip(rows, trained_accuracies, random_accuracies):
        print(f"| {row} | {a:.1f} | {b:.1f} |")


if __name__ == "__main__":
    main()
