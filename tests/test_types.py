"""A program of a user: `mypy --strict` accepts it, and it does what its types say."""

import numpy as np
import numpy.typing as npt
import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo import Elmo, ElmoEmbedder, batch_to_ids, encode, learned_mixes, tfhub_outputs
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM, load_bilm
from spacy_elmo.pipeline.elmo import ElmoPipe

Array = npt.NDArray[np.float32]
WORDS = [["Stick", "to", "the", "river", "bank", "."], ["Hello"]]


def own_network(elmo: Elmo, ids: torch.Tensor) -> torch.Tensor:
    found = elmo(ids)
    mixes: list[torch.Tensor] = found["elmo_representations"]
    mask: torch.Tensor = found["mask"]
    return mixes[0] * mask[:, :, None]


def test_the_types_are_those_that_come() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("elmo")
    assert isinstance(pipe, ElmoPipe)
    cut: int = pipe.n_truncated
    doc: Doc = nlp(" ".join(WORDS[0]))
    named = tfhub_outputs(doc)
    vectors: Array = encode(nlp, [doc.text, "Hello"], normalize_embeddings=True)
    tensor: torch.Tensor = encode(nlp, doc.text, convert_to_tensor=True)
    either: Array | torch.Tensor = encode(nlp, doc.text, convert_to_numpy=False)
    embedder = ElmoEmbedder()
    options: BiLMOptions = embedder.options
    layers: list[Array] = embedder.embed_batch(WORDS)
    padded, mask = embedder.embed_padded(WORDS, "average", length=10)
    of_texts: Array = embedder.encode(["Hello", WORDS[0]])
    on_device: torch.Tensor = embedder.encode("Hello", convert_to_tensor=True)
    bilm: BiLM = load_bilm()
    x = own_network(Elmo(None, None, 1, dropout=0.0), batch_to_ids(WORDS))
    arrays = [*named.values(), vectors, *layers, padded, of_texts]
    assert all(isinstance(array, np.ndarray) and array.dtype == np.float32 for array in arrays)
    assert all(
        isinstance(found, torch.Tensor) for found in (tensor, either, on_device, x, bilm(batch_to_ids(WORDS)).layers)
    )
    assert (cut, options.width, mask.sum(), learned_mixes(nlp)) == (0, 512, 7, [])
