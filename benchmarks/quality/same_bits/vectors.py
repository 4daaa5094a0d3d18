"""Hashes of layers and mixes, of AllenNLP's interface, and of a file of vectors."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from commands import command
from hashing import digest, hdf5_digest
from inputs import sentences

PRECISIONS = ("float32", "bfloat16")


def model_settings(data: Path, size: str, **more: Any) -> dict[str, Any]:
    """Settings of the factory elmo.

    data: folder of the inputs. size: mini or one of SIZES. more: settings of its model.
    """
    files = (
        {}
        if size == "mini"
        else {"options_file": f"{data}/{size}/options.json", "weight_file": f"{data}/{size}/weights.hdf5"}
    )
    return {"model": files | more}


def layers_of(
    data: Path, size: str, words: list[list[str]], batch: int, starts: list[list[bool]] | None = None, **more: Any
) -> str:
    """SHA-256 of the layers and mixes of some docs.

    data, size, more: see model_settings. words: a doc each. batch: docs of a batch. starts: for each doc, which words
    begin a sentence; None: a doc is one sentence.
    """
    import spacy
    from spacy.tokens import Doc

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=model_settings(data, size, **more))
    total = hashlib.sha256()
    of_docs = [None] * len(words) if starts is None else starts
    docs = (Doc(nlp.vocab, words=part, sent_starts=begins) for part, begins in zip(words, of_docs))
    for doc in nlp.pipe(docs, batch_size=batch):
        total.update(digest(np.asarray(doc._.elmo_layers), np.asarray(doc._.elmo)).encode())
        doc._.elmo = None
    return total.hexdigest()


def layers(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The part of this name: vectors.

    data: the inputs. folder: for files.
    """
    words = sentences(500, 0)
    for size in ("mini", "small", "original"):
        for precision in PRECISIONS:
            yield f"layers {size} {precision}", layers_of(data, size, words, 128, precision=precision)
            alone = layers_of(data, size, words[:24], 1, precision=precision)
            yield f"layers {size} {precision} one by one", alone
    yield "layers mini few words cached", layers_of(data, "mini", words, 32, cached_words=50)
    three = [list(chain.from_iterable(words[k : k + 3])) for k in range(0, 60, 3)]
    starts = [[k == 0 for part in words[n : n + 3] for k in range(len(part))] for n in range(0, 60, 3)]
    zero, carried = (layers_of(data, "mini", three, 4, starts, stateful=stateful) for stateful in (False, True))
    assert zero != carried  # or no state would be carried
    yield "layers mini stateful", carried
    yield "layers mini windows", layers_of(data, "mini", [list(chain.from_iterable(words[:30]))], 1)


def embed(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The part of this name: what AllenNLP's users run.

    data: the inputs. folder: for files.
    """
    words = sentences(500, 0)
    yield from allennlp(words)
    text = folder / "text.txt"
    text.write_text("\n".join(" ".join(w for w in part if w.strip()) for part in words[:50]) + "\n", encoding="utf-8")
    command("embed", str(text), str(folder / "out.hdf5"))
    yield "embed", hdf5_digest(folder / "out.hdf5")


def allennlp(words: list[list[str]]) -> Iterator[tuple[str, str]]:
    """`Elmo` with two representations: forward, and the gradients of the biLM's weights.

    words: of the sentences.
    """
    import torch

    import spacy_elmo
    from spacy_elmo import Elmo, batch_to_ids

    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = Path(spacy_elmo.__file__).parent / "bilms" / "en_mini"
    for frozen in (True, False):
        elmo = Elmo(
            str(folder / "options.json"), str(folder / "weights.hdf5"), 2, requires_grad=not frozen, dropout=0.0
        )
        out = elmo(batch_to_ids([[w for w in part if w.strip()] or ["a"] for part in words[:40]]))
        values = [part.detach().numpy() for part in out["elmo_representations"]]
        name = f"Elmo {'frozen' if frozen else 'tuned'}"
        yield name, digest(*values, out["mask"].numpy())
        sum(part.square().sum() for part in out["elmo_representations"]).backward()
        gradients = sorted(
            (str(tuple(p.grad.shape)), digest(p.grad.numpy())) for p in elmo.parameters() if p.grad is not None
        )
        yield f"{name}: gradients", digest(gradients)
