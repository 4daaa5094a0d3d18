"""The outputs of TF-Hub's ELMo module under their names."""

from spacy.tokens import Doc
from thinc.types import FloatsXd

from .attributes import mean_vector, register


def tfhub_outputs(doc: Doc, attr: str = "elmo") -> dict[str, FloatsXd]:
    """What TF-Hub's module gave for a sentence, of a doc that an elmo pipe has seen.

    word_emb: *Shape:* (tokens, width / 2), the character encoder's vectors (layer 0 holds them twice).
    lstm_outputs1, lstm_outputs2 (and on, one for each LSTM layer): *Shape:* (tokens, width).
    elmo: *Shape:* (tokens, width), the mix of the layers (see the setting scalar_mix_parameters).
    default: *Shape:* (width,), the mean of `elmo` over the tokens; whitespace tokens, which TF-Hub's module never saw,
        do not count; zeros where there is no token.
    attr: the pipe's setting. Raises NotEmbeddedError where the doc has no layers under it.
    """
    register(attr)
    layers, elmo = doc._.get(f"{attr}_layers"), doc._.get(attr)
    outputs = {"word_emb": layers[0, :, : layers.shape[2] // 2]}
    outputs |= {f"lstm_outputs{k}": layers[k] for k in range(1, len(layers))}
    return outputs | {"elmo": elmo, "default": mean_vector(doc, attr=attr)}
