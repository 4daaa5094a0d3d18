"""The outputs of TF-Hub's ELMo module under their names."""

from spacy.tokens import Doc
from thinc.types import FloatsXd

from .attributes import mean_vector
from .extensions import register


def tfhub_outputs(doc: Doc, attr: str = "elmo") -> dict[str, FloatsXd]:
    """Return the outputs of TF-Hub's ELMo module (google/elmo/3) for a doc, under the module's names.

    doc: a doc that an elmo pipe has annotated.
    attr: the setting `attr` of this pipe.

    Returns a dict with these keys:
    word_emb: *Shape:* (tokens, width / 2), the character encoder's vectors, which layer 0 contains twice.
    lstm_outputs1, lstm_outputs2, and so on for each LSTM layer: *Shape:* (tokens, width).
    elmo: *Shape:* (tokens, width), the mix of the layers (see the setting scalar_mix_parameters).
    default: *Shape:* (width,), the mean of `elmo` over the tokens without whitespace tokens, which TF-Hub's module
        never reads; zeros if there are none.

    Raises NotEmbeddedError if the doc has no layers under attr.
    """
    register(attr)
    layers, elmo = doc._.get(f"{attr}_layers"), doc._.get(attr)
    outputs = {"word_emb": layers[0, :, : layers.shape[2] // 2]}
    outputs |= {f"lstm_outputs{k}": layers[k] for k in range(1, len(layers))}
    return outputs | {"elmo": elmo, "default": mean_vector(doc, attr=attr)}
