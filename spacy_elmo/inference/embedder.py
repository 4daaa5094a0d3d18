"""The embedder: from rows of words to their layers, in batches, from carried states or a cache."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..formats.hdf5 import Floats
from ..formats.options import BiLMOptions
from ..formats.weights import check_shapes
from ..locks import Lock
from ..modules import Arrays, BiLM, LstmState
from ..modules.bilm import in_float32
from .cache import LayerCache, row_key
from .engine import Engine, Layers
from .packing import trim
from .words import CACHED_WORDS

MAX_TOKENS = 8192  # of a batch; only a longer row, alone, has more
Rows = Sequence[Sequence[str]]


def token_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Return the indices of the sentences of each batch, longest sentences first.

    Sentences of similar length are in one batch, so that the matrix multiplications of the recurrent weights have as
    many rows as possible at all positions.

    lengths: number of tokens of each sentence.
    max_tokens: number of tokens in a batch, at most. A longer sentence is a batch alone.
    """
    batches: list[list[int]] = []
    tokens = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not batches or tokens + lengths[i] > max_tokens:
            batches.append([])
            tokens = 0
        batches[-1].append(i)
        tokens += lengths[i]
    return batches


def batches_of(sizes: Sequence[tuple[int, ...]], most: int, cost: Callable[..., int] = int) -> list[list[int]]:
    """Return the numbers of rows in batches of similar sizes that, padded, cost at most `most`, or are one row."""
    batches: list[list[int]] = []
    largest: tuple[int, ...] = ()
    for number in sorted(range(len(sizes)), key=lambda number: sizes[number]):
        size = sizes[number]
        largest = tuple(map(max, largest or size, size))
        if not batches or (len(batches[-1]) + 1) * cost(*largest) > most:
            batches.append([])
            largest = size
        batches[-1].append(number)
    return batches


class Embedder:
    """Runs a biLM without gradients. Its network is the one owner of the weights; the engine is derived from them.

    The engine is made when it is first needed. Hold `lock` while you change the weights, and then call `changed`: the
    next engine is then made of all the new ones. It is thread-safe.

    bilm: the network, on its device.
    dtype: type of the engine's matrix multiplications, float32 or bfloat16.
    cached_words: number of words whose vectors the engine caches (see WordVectors).
    """

    def __init__(self, bilm: BiLM, dtype: torch.dtype = torch.float32, cached_words: int = CACHED_WORDS) -> None:
        self.bilm, self.dtype, self.cached_words = bilm, dtype, cached_words
        self._engine: Engine | None = None
        self._fingerprint: str | None = None
        self.lock = Lock()

    @classmethod
    @torch.inference_mode(False)
    def from_arrays(
        cls,
        options: BiLMOptions,
        arrays: Arrays,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        cached_words: int = CACHED_WORDS,
    ) -> "Embedder":
        """Return an embedder of weights by parameter name, as `formats.read_weights` returns them. It owns the arrays.

        Matrices that float16 holds exactly take half the memory until the network is trained.

        Raises WeightsError for arrays that are missing, unexpected, misshapen or not float32.
        """
        check_shapes(arrays, options, "the biLM in memory")
        with torch.random.fork_rng(devices=[]):  # torch's layers draw first values
            bilm = BiLM.from_arrays(options, arrays)
        for parameter in bilm.parameters():
            half = parameter.data[:1].half()
            if torch.equal(half.float(), parameter.data[:1]):  # else no need to convert the rest
                half = parameter.data.half()
                if torch.equal(half.float(), parameter.data):
                    parameter.data = half
        return cls(bilm.to(device), dtype, cached_words)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_engine": None}  # its matrices can't be copied; a copy lays them out again

    @property
    def options(self) -> BiLMOptions:
        """The sizes and settings of the biLM."""
        return self.bilm.options

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.bilm.boundary.device

    @property
    def engine(self) -> Engine:
        """The engine, which is valid until the weights change."""
        with self.lock:
            if self._engine is None:
                self._engine = Engine(self.bilm, self.dtype, self.cached_words)
                trim()
            return self._engine

    @property
    def fingerprint(self) -> str:
        """A digest of options and weights, 32 hexadecimal digits."""
        with self.lock:
            if self._fingerprint is None:
                self._fingerprint = fingerprint_of(self.options, self.bilm.to_arrays())
            return self._fingerprint

    def changed(self) -> None:
        """Note that the weights have changed."""
        self._engine = self._fingerprint = None

    @torch.inference_mode(False)
    def network(self) -> BiLM:
        """Return the network, without weights in float16, so that it can be trained."""
        with self.lock:
            for parameter in self.bilm.parameters():
                parameter.data = in_float32(parameter.data)
            return self.bilm

    def embed(self, rows: Rows, max_tokens: int = MAX_TOKENS) -> Iterator[tuple[int, Layers]]:
        """Yield the index of each row and its layers, *Shape:* (layers, words, width), in any order.

        max_tokens: number of words in a batch, at most. A longer row is a batch alone.
        """
        engine = self.engine
        for batch in token_batches([len(row) for row in rows], max_tokens):
            yield from zip(batch, engine.run([rows[i] for i in batch]))

    def run(
        self,
        rows: Rows,
        max_tokens: int = MAX_TOKENS,
        chains: Sequence[int] | None = None,
        cache: LayerCache | None = None,
    ) -> list[Layers]:
        """Return the layers of each row, *Shape:* (layers, words, width).

        chains: for each row the number of its chain. A row starts from the state after the one before it in its chain,
            the first from the zero state. None: all do.
        cache: from which layers are taken, and into which new ones are put. Equal rows are then run once, and share an
            array, which is read-only.
        """
        if cache is not None:
            return self._run_cached(rows, max_tokens, chains, cache)
        results: list[Layers] = [np.empty(0, np.float32)] * len(rows)
        if chains is None:
            for i, layers in self.embed(rows, max_tokens):
                results[i] = layers
            return results
        engine, states = self.engine, dict[int, LstmState]()
        queues: dict[int, list[int]] = {}
        for i, chain in enumerate(chains):
            queues.setdefault(chain, []).append(i)
        # the first rows of all chains run together, then the second ones from the states after the first, and so on
        for turn in range(max((len(queue) for queue in queues.values()), default=0)):
            chosen = [queue[turn] for queue in queues.values() if turn < len(queue)]
            for places in token_batches([len(rows[i]) for i in chosen], max_tokens):
                batch = [chosen[place] for place in places]
                before = [states.get(chains[i]) or engine.zero_state(1) for i in batch]
                state = LstmState(torch.cat([s.h for s in before], 2), torch.cat([s.c for s in before], 2))
                found, state = engine.run_from([rows[i] for i in batch], state)
                for k, i in enumerate(batch):
                    results[i] = found[k]
                    states[chains[i]] = LstmState(state.h[:, :, k : k + 1], state.c[:, :, k : k + 1])
        return results

    def _run_cached(self, rows: Rows, max_tokens: int, chains: Sequence[int] | None, cache: LayerCache) -> list[Layers]:
        """Run the rows that the cache does not have, or the whole chains of these."""
        fingerprint = f"{self.fingerprint} {self.dtype}".encode()
        keys: list[bytes] = []
        for i, row in enumerate(rows):
            follows = chains is not None and i > 0 and chains[i - 1] == chains[i]
            keys.append(row_key(fingerprint, row, keys[-1] if follows else b""))
        cached = cache.get(keys)
        if chains is not None:
            incomplete = {chain for chain, key in zip(chains, keys) if key not in cached}
            missing = [i for i, chain in enumerate(chains) if chain in incomplete]
        else:
            first = {key: i for i, key in reversed(list(enumerate(keys)))}
            missing = sorted(i for key, i in first.items() if key not in cached)
        some_chains = None if chains is None else [chains[i] for i in missing]
        new = self.run([rows[i] for i in missing], max_tokens, some_chains)
        computed = dict(zip((keys[i] for i in missing), new))
        for layers in computed.values():
            layers.setflags(write=False)
        cache.put(computed)
        found = computed | cached
        return [found[key] for key in keys]


def fingerprint_of(options: BiLMOptions, arrays: Mapping[str, Floats]) -> str:
    """Return a digest of 32 hexadecimal digits. The order of the arrays makes no difference."""
    digest = hashlib.blake2b(json.dumps(options.to_dict(), sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
