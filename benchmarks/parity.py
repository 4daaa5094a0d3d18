"""Largest absolute differences from every reference, for the network and for the fast forward pass.

python -m benchmarks.parity                # the references in tests/golden
python -m benchmarks.parity REFERENCE      # and the small biLM that bilm-tf and AllenNLP test with
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "helpers"))

from golden_files import GOLDEN_NAMES, SUMS, bilm_in, datasets_in, read_golden, tiny_batches  # noqa: E402

from spacy_elmo.formats import batch_to_ids_array, words_to_ids  # noqa: E402
from spacy_elmo.inference import Engine  # noqa: E402
from spacy_elmo.modules import BiLM, LstmState  # noqa: E402
from spacy_elmo.modules.scalar_mix import ScalarMix  # noqa: E402

from .common import parser_of  # noqa: E402

Run = Callable[[list[list[str]], LstmState], tuple[list[np.ndarray], LstmState]]


def module_run(bilm: BiLM) -> Run:
    """Layers of each sentence, and the state, by the autograd network."""

    def run(sentences: list[list[str]], state: LstmState) -> tuple[list[np.ndarray], LstmState]:
        with torch.no_grad():
            output = bilm(torch.from_numpy(batch_to_ids_array(sentences)), state)
        return [output.layers[:, k, 1 : 1 + len(s)].numpy() for k, s in enumerate(sentences)], output.state

    return run


def engine_run(bilm: BiLM) -> Run:
    """The same by the fast forward pass, which wants as many rows of state as there are sentences."""
    engine = Engine(bilm)

    def run(sentences: list[list[str]], state: LstmState) -> tuple[list[np.ndarray], LstmState]:
        n, known = len(sentences), state.h.shape[2]
        zero = bilm.lstm.zero_state(max(0, n - known))
        start = LstmState(*(torch.cat([s[:, :, :n], z], 2) for s, z in zip(state, zero)))
        layers, end = engine.run_from(sentences, start)
        return layers, LstmState(*(torch.cat([e, s[:, :, n:]], 2) for e, s in zip(end, state)))

    return run


def worst(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> str:
    """The largest absolute difference of any pair."""
    return f"{max(float(np.abs(np.asarray(a, np.float64) - b).max()) for a, b in pairs):.1e}"


def golden_rows(name: str) -> Iterable[tuple[str, list[str]]]:
    """random_a and random_b: what AllenNLP's own module gave."""
    golden = read_golden(TESTS / "golden" / name)
    zero = golden.bilm.lstm.zero_state(0)
    runs = [module_run(golden.bilm), engine_run(golden.bilm)]
    expected = [golden.expected[f"zero_state/{i}"] for i in range(len(golden.sentences))]
    yield f"{name}, zero state", [worst(zip(run(golden.sentences, zero)[0], expected)) for run in runs]
    found = []
    for run in runs:
        state, pairs = zero, []
        for number, batch in enumerate(golden.carry_batches):
            layers, state = run(batch, state)
            pairs += [(x, golden.expected[f"carried_state/{number}/{row}"]) for row, x in enumerate(layers)]
        found.append(worst(pairs))
    yield f"{name}, carried state", found
    same = np.array_equal(batch_to_ids_array(golden.sentences), golden.expected["character_ids"])
    yield f"{name}, character ids", ["identical" if same else "DIFFERENT", ""]
    with torch.no_grad():
        output = golden.bilm(torch.from_numpy(batch_to_ids_array(golden.sentences)))
    for kind in ("plain", "uniform", "layer_norm"):
        attributes = golden.attributes[f"mix/{kind}"]
        weights = next(value for key, value in attributes.items() if np.size(value) > 1)
        mix = ScalarMix(len(output.layers), "batch" if kind == "layer_norm" else "none", list(weights))
        with torch.no_grad():
            mix.gamma.fill_(float(attributes["gamma"]))
            mixed = mix(output.layers, output.mask)[:, 1:].numpy()
        pairs = [(mixed[k, : len(s)], golden.expected[f"mix/{kind}"][k, : len(s)]) for k, s in
                 enumerate(golden.sentences)]  # fmt: skip
        yield f"{name}, mix {kind}", [worst(pairs), ""]


def tiny_rows(folder: Path) -> Iterable[tuple[str, list[str]]]:
    """tiny_fixture: what the original TensorFlow code gave."""
    bilm = bilm_in(folder, "lm_weights.hdf5")
    runs = [module_run(bilm), engine_run(bilm)]
    found, sums = [], []
    for run in runs:
        state, pairs = bilm.lstm.zero_state(0), []
        for sentences, expected in tiny_batches(folder):
            layers, state = run(sentences, state)
            pairs += [(x[-1], top) for x, top in zip(layers, expected) if top is not None]
        found.append(worst(pairs))
        first, state = run([SUMS[0][0].split(), SUMS[1][0].split()], bilm.lstm.zero_state(0))
        second, _ = run([SUMS[2][0].split()], state)
        relative = [np.abs(x.mean(0).sum(1) / np.array(e) - 1).max() for x, (_, e) in zip([*first, *second], SUMS)]
        sums.append(f"{max(relative):.1e} relative")
    yield "tiny_fixture, top layer, carried state", found
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").splitlines()
    with torch.no_grad():
        encoded = bilm.char_cnn(torch.from_numpy(words_to_ids(words))).numpy()
    yield "tiny_fixture, layer 0 of its vocabulary", [
        worst([(encoded, datasets_in(folder / "elmo_token_embeddings.hdf5")["embedding"])]), ""
    ]  # fmt: skip
    yield "tiny_fixture, sums of the mixed vectors", sums


def main() -> None:
    parser = parser_of(__doc__)
    text = "folder that holds tiny_fixture (default: left out)"
    parser.add_argument("reference", type=Path, nargs="?", metavar="REFERENCE", help=text)
    args = parser.parse_args()
    print("| reference | network | fast forward pass |\n|---|---|---|")
    rows = [row for name in GOLDEN_NAMES for row in golden_rows(name)]
    if args.reference is not None:
        rows += tiny_rows(args.reference / "tiny_fixture")
    for title, values in rows:
        print("| " + " | ".join([title, *values]) + " |")


if __name__ == "__main__":
    main()
