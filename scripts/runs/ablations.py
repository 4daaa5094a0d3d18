"""What is measured beside the results: one change at a time in [x; ELMo], and parts of the training data.

All networks learn for the same number of updates, and are scored on the development part alone: the test part is not
for choosing. State that is carried from sentence to sentence has a task of its own, whose docs are articles: in the
other corpora each doc is one sentence, and the pipe begins each doc from the zero state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .experiments import BASELINE, ELMO, NETWORKS, TASKS, Network, Task

UPDATES = 2000
SHARES = (1, 3, 10, 30)  # of the training part, in %; its whole is in the two main networks
_TOP = [-1e10, -1e10, 0.0]  # softmax: 0, 0, 1
_UNFREEZING = {
    "training.before_update": {
        "@callbacks": "spacy-elmo.GradualUnfreezing.v1",
        "pipe": "elmo",
        "start": UPDATES // 5,
        "every": UPDATES // 5,
        "unit": "step",
    }
}
_CARRIED = "carried"
_LENGTH = {"training.max_steps": UPDATES, "training.patience": 0}  # 0: none ends early
CHANGES = {
    "top": Network("the top layer alone, gamma learned", elmo=True, mix={"scalar_mix_parameters": _TOP}),
    "fixed": Network("the mean of the layers, no gamma", elmo=True, mix={"trainable": False}),
    "l2_0.001": Network("l2 of the mix 0.001", elmo=True, mix={"l2": 0.001}),
    "l2_1": Network("l2 of the mix 1", elmo=True, mix={"l2": 1.0}),
    "l2_50": Network("l2 of the mix 50 (nearly the mean), gamma learned", elmo=True, mix={"l2": 50.0}),
    "token_norm": Network("layer norm of each token", elmo=True, mix={"layer_norm": "token"}),
    "batch_norm": Network("layer norm of each batch", elmo=True, mix={"layer_norm": "batch"}),
    "input": Network("ELMo at the input alone", elmo=True, places=("input",)),
    "output": Network("ELMo at the output alone", elmo=True, places=("output",)),
    "both": Network("ELMo at the input and the output", elmo=True, places=("input", "output")),
    "tuned": Network(
        "the biLM tuned, its learning rate a tenth", elmo=True, settings={"components.elmo.frozen": False}
    ),
    "unfrozen": Network(
        "the biLM unfrozen from the top", elmo=True, settings={"components.elmo.frozen": False}, blocks=_UNFREEZING
    ),
    _CARRIED: Network(
        "the state carried through an article", elmo=True, settings={"components.elmo.model.stateful": True}
    ),
    "float16": Network("layers in float16", elmo=True, settings={"components.elmo.store": "layers_float16"}),
}


def _share_networks() -> dict[str, Network]:
    networks = {}
    for share in SHARES:
        for name in (BASELINE, ELMO):
            title = f"{NETWORKS[name].title}, {share} % of the training part"
            networks[share_name(name, share)] = Network(title, elmo=name == ELMO, share=share)
    return networks


def share_name(network: str, share: int) -> str:
    """Return the name of a network that learns from a share of the training part. share: in %."""
    return network if share == 100 else f"{network}_{share}"


def _ablation(name: str, of: str, dev: str, place: str, more: Mapping[str, Any] = {}) -> Task:
    """Return the task with these networks.

    of: name of the task that it is like.
    dev: file of the development part.
    place: where ELMo stands in its config, which is no change.
    more: settings of all networks.
    """
    task = next(task for task in TASKS if task.name == of)
    settings = {**task.settings, **_LENGTH, **more}
    networks = {name: NETWORKS[name] for name in (BASELINE, ELMO)} | CHANGES | _share_networks()
    del networks[place], networks[_CARRIED]
    return task._replace(
        name=name, config=task.config or task.name, settings=settings, tests={"dev": dev}, networks=networks
    )


def _state_ablation() -> Task:
    """Return the task of newswire whose docs are articles. In one of a sentence there is no state to carry.

    The biLM reads the corpus's sentences, which are span groups: spaCy's reader drops the starts of sentences.
    """
    task = next(task for task in TASKS if task.name == "ner_newswire")
    parts = {name: f"corpus/ner_newswire/{name}_articles.spacy" for name in ("train", "dev")}
    settings = {**task.settings, **_LENGTH, **{f"paths.{name}": path for name, path in parts.items()}}
    key = "sentences"
    given = {"@augmenters": "spacy-elmo.GivenSpans.v1", "keys": [key]}
    blocks = {
        "corpora.train.augmenter": given,
        "corpora.dev.augmenter": given,
        "components.elmo.model.get_spans": {"@span_getters": "spacy-elmo.span_groups.v1", "keys": [key]},
    }
    networks = {ELMO: NETWORKS[ELMO], _CARRIED: CHANGES[_CARRIED]}
    return task._replace(
        name="ablations_articles",
        title=f"{task.title}, a doc for each article",
        config="ner",
        settings=settings,
        tests={"dev": parts["dev"]},
        given=(key,),
        networks={name: network._replace(blocks=blocks) for name, network in networks.items()},
    )


ABLATIONS = (
    _ablation("ablations_newswire", "ner_newswire", "corpus/ner_newswire/dev.spacy", "both"),
    # else the parser has no labels that are rare in a small share
    _ablation(
        "ablations_ewt",
        "tagger",
        "corpus/tagger/en_ewt-ud-dev.spacy",
        "input",
        {"components.parser.min_action_freq": 1},
    ),
    _state_ablation(),
)
