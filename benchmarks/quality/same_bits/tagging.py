"""Hashes of what ten steps of `nlp.update` give."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hashing import digest, hdf5_digest
from inputs import sentences


def update(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The part of this name: ten steps of a tagger on [x; ELMo].

    data: the inputs. folder: for the saved pipelines.
    """
    for precision, frozen in (("float32", True), ("bfloat16", True), ("float32", False), ("bfloat16", False)):
        name = f"update {'frozen' if frozen else 'tuned'} {precision}"
        yield from updated(name, {"frozen": frozen, "model": {"precision": precision}}, folder / name.replace(" ", "_"))


def updated(name: str, elmo: dict[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Train a tagger with ELMo for ten steps; hash losses, the pipeline's files and what it predicts.

    name: of the run. elmo: settings of the pipe. folder: for the pipeline.
    """
    import spacy
    import torch
    from spacy.tokens import Doc
    from spacy.training import Example

    torch.set_num_threads(1)
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=elmo)
    listener = {"@architectures": "spacy-elmo.Listener.v1", "width": 256, "upstream": "elmo"}
    embed = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 32, "attrs": ["NORM", "SHAPE"], "rows": [500, 500]}
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 32,
        "window_size": 1,
        "maxout_pieces": 2,
        "depth": 1,
    }
    tok2vec = {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "embed": embed | {"include_static_vectors": False},
        "encode": encode,
        "elmo": {
            "@architectures": "spacy-elmo.Tok2Vec.v1",
            "source": listener,
            "mix": {"@layers": "spacy-elmo.ScalarMix.v1"},
        },
    }
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}})
    source = random.Random(3)
    examples = []
    for words in sentences(160, 4):
        tags = [source.choice("ABCDE") if len(word) < 3 else "ABCDE"[len(word) % 5] for word in words]
        spaces = [True] * len(words)
        examples.append(
            Example(Doc(nlp.vocab, words=words, spaces=spaces), Doc(nlp.vocab, words=words, spaces=spaces, tags=tags))
        )
    optimizer = nlp.initialize(lambda: examples)
    losses = []
    for step in range(10):
        got: dict[str, float] = {}
        nlp.update(examples[16 * step : 16 * step + 16], sgd=optimizer, drop=0.1, losses=got)
        losses.append(sorted(got.items()))
    yield f"{name}: losses", digest(losses)
    docs = list(nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences(40, 5)))
    yield f"{name}: tags", digest([[token.tag_ for token in doc] for doc in docs])
    yield f"{name}: layers", digest(*(np.asarray(doc._.elmo_layers) for doc in docs))
    nlp.to_disk(folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.parent != folder):
        if "vocab" not in path.parts:
            relative = path.relative_to(folder)
            yield f"{name}: {relative}", hdf5_digest(path) if path.suffix == ".hdf5" else digest(path.read_bytes())
    again = spacy.load(folder)
    docs = list(again.pipe(Doc(again.vocab, words=words) for words in sentences(40, 5)))
    yield f"{name}: layers after loading", digest(*(np.asarray(doc._.elmo_layers) for doc in docs))
