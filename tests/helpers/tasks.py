"""Task components that listen to an elmo pipe, and something to train them on."""

import copy
from typing import Any

import spacy
from pipelines import files
from spacy.language import Language
from spacy.training import Example

WIDTH = 32  # of random_a

TEXTS = {
    "I like green eggs in London": ["PRON", "VERB", "ADJ", "NOUN", "ADP", "PROPN"],
    "Ham is  bad": ["NOUN", "AUX", "SPACE", "ADJ"],
    "Paris likes ham": ["PROPN", "VERB", "NOUN"],
}


def elmo_block(upstream: str = "*", width: int | None = None, **mix: Any) -> dict[str, Any]:
    """A mix of what a pipe gives."""
    source = {"@architectures": "spacy-elmo.Listener.v1", "width": width, "upstream": upstream}
    return {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "source": source,
        "mix": {"@layers": "spacy-elmo.ScalarMix.v1"} | mix,
    }


EMBEDS = {
    "multi_hash": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 16,
        "attrs": ["NORM", "SHAPE"],
        "rows": [100, 100],
        "include_static_vectors": False,
    },
    "characters": {"@architectures": "spacy.CharacterEmbed.v2", "width": 16, "rows": 50, "nM": 8, "nC": 4}
    | {"include_static_vectors": False, "feature": "NORM"},
    "hash_cnn": {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 16,
        "depth": 1,
        "embed_size": 100,
        "window_size": 1,
        "maxout_pieces": 2,
        "subword_features": True,
    },
    "vectors": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 16,
        "attrs": ["NORM"],
        "rows": [100],
        "include_static_vectors": True,
    },
}
ENCODES = {
    "maxout": {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 16, "depth": 1}
    | {"window_size": 1, "maxout_pieces": 2},
    "same_width": {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 16 + WIDTH, "depth": 1}
    | {"window_size": 1, "maxout_pieces": 2},
    "mish": {"@architectures": "spacy.MishWindowEncoder.v2", "width": 16, "depth": 1, "window_size": 1},
    "lstm": {"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 16, "depth": 1, "dropout": 0.0},
    "none": {"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 16, "depth": 0, "dropout": 0.0},
}
PLAIN = {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBEDS["multi_hash"], "encode": ENCODES["maxout"]}


def tok2vec(
    embed: str = "multi_hash",
    encode: str = "maxout",
    output: bool = False,
    upstream: str = "*",
    width: int | None = None,
) -> dict[str, Any]:
    """[x; ELMo] -> encoder, and with output [h; ELMo]."""
    return {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "embed": copy.deepcopy(EMBEDS[embed]),
        "elmo": elmo_block(upstream, width),
        "encode": copy.deepcopy(ENCODES[encode]),
        "output_elmo": elmo_block(upstream, width) if output else None,
    }


def with_tasks(
    *components: str, block: dict[str, Any] | None = None, golden: str | None = "random_a", **elmo: Any
) -> Language:
    """A blank pipeline: elmo on a golden biLM (None: the embedded one), then the components, each with the block."""
    nlp = spacy.blank("xx")
    config = files(golden, **elmo.pop("model", {})) if golden else {}
    nlp.add_pipe("elmo", config=config | elmo)
    for name in components:
        add_task(nlp, name, block or tok2vec())
    return nlp


def add_task(nlp: Language, component: str, block: dict[str, Any], name: str | None = None) -> None:
    """Add a component of a factory with `block` as its tok2vec."""
    model: dict[str, Any] = {"tok2vec": copy.deepcopy(block)}
    if component in ("textcat", "textcat_multilabel"):
        exclusive = component == "textcat"
        linear = {"@architectures": "spacy.TextCatBOW.v3", "exclusive_classes": exclusive, "length": 64}
        model["linear_model"] = linear | {"ngram_size": 1, "no_output_layer": False}
    # else they drop labels that are rare
    more = {"parser": {"min_action_freq": 1}, "trainable_lemmatizer": {"min_tree_freq": 1}}.get(component, {})
    nlp.add_pipe(component, name=name or component, config={"model": model} | more)


def examples(nlp: Language) -> list[Example]:
    """Gold for all components, one doc with whitespace."""
    result = []
    for text, tags in TEXTS.items():
        doc = nlp.make_doc(text)
        annotations: dict[str, Any] = {
            "tags": tags,
            "pos": tags,
            "morphs": ["Number=Sing" if tag in ("NOUN", "PROPN") else "" for tag in tags],
            "lemmas": [token.text.lower() for token in doc],
            "heads": [min(1, len(doc) - 1)] * len(doc),
            "deps": ["ROOT" if i == 1 else "dep" for i in range(len(doc))],
            "entities": [(m, m + len(place), "GPE") for place in ("London", "Paris") if (m := text.find(place)) >= 0],
            "cats": {"food": float("ham" in text.lower()), "place": float("ham" not in text.lower())},
        }
        annotations["spans"] = {"sc": list(annotations["entities"])}
        result.append(Example.from_dict(doc, annotations))
    return result


def train(nlp: Language, steps: int = 30, **update: Any) -> dict[str, float]:
    """Initialise and update on the examples; returns the last losses."""
    gold = examples(nlp)
    nlp.initialize(lambda: gold)
    losses: dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(gold, losses=losses, **update)
    return losses
