"""Creates training configs of pipelines whose components listen to an elmo pipe."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.util import load_config_from_str, load_model_from_config
from thinc.api import Config

from ...errors import CommandError, Errors
from ...formats.text.splitting import LANGUAGE_ERRORS, lacks_package
from ...modules.loading import load_arrays
from .components import (
    ELMO,
    LINKER,
    SENTENCIZER,
    check_knowledge_base,
    check_names,
    default_model,
    sentence_setters,
    with_tok2vec,
)

ATTRIBUTES = ["NORM", "PREFIX", "SUFFIX", "SHAPE"]
ROWS = [5000, 1000, 2500, 2500]
# the span groups that a component reads; the biLM has to read each of their spans as a sentence of its own
SPAN_GROUPS = {"entailment": ["premise", "hypothesis"], "answers": ["question", "context"]}
# as in configs/. Beside an x that ends in a layer norm the layers of en_mini are small: see docs/training.md
_LARGER_MIX = {"gamma": 3.0, "dropout": 0.2}
MIXES = {
    "semantic_roles": {"dropout": 0.4},
    "coreference": _LARGER_MIX,
    "entailment": _LARGER_MIX,
    "answers": _LARGER_MIX,
}


class Size(NamedTuple):
    """The size of a component's own network. The values in SIZES are those of spaCy's quickstart.

    width: width of the vectors.
    depth: number of convolution layers.
    output_elmo: whether ELMo vectors are also concatenated to the output of the network.
    """

    width: int
    depth: int
    output_elmo: bool


SIZES = {"efficiency": Size(96, 4, False), "accuracy": Size(256, 8, True)}


class Files(NamedTuple):
    """The files that a config names.

    options_file, weight_file: of the biLM; both None: `bilm`.
    knowledge_base: folder of the entity linker's knowledge base; None: there is no entity linker.
    bilm: folder or name of the biLM; None: the two files, or, without them, the biLM that is part of this package.
    """

    options_file: Path | None = None
    weight_file: Path | None = None
    knowledge_base: Path | None = None
    bilm: str | None = None


def task_config(lang: str, pipeline: Sequence[str], optimize: str, files: Files) -> Config:
    """Return a complete and validated config, in which only the paths of the training and development data are missing.

    lang: spaCy's code of the language.
    pipeline: spaCy's names of trainable components, in order. It may also contain "sentencizer", which is put before
        elmo.
    optimize: "efficiency" or "accuracy", the keys of SIZES.
    files: the files that the config names.

    Raises CommandError if the language, the components or the knowledge base are wrong, and ElmoError if the biLM's
    files are.
    """
    try:
        nlp = spacy.blank(lang)
    except LANGUAGE_ERRORS as error:
        template = Errors.INIT_TOKENIZER if lacks_package(error) else Errors.INIT_LANGUAGE
        raise CommandError(template.format(got=lang, reason=error)) from error
    check_names(nlp, pipeline)
    tasks = [name for name in pipeline if name != SENTENCIZER]
    before = [name for name in pipeline if name == SENTENCIZER]
    if (LINKER in tasks) != (files.knowledge_base is not None):
        raise CommandError(Errors.INIT_KB_NONE if LINKER in tasks else Errors.INIT_KB_UNUSED)
    if files.knowledge_base is not None:
        check_knowledge_base(nlp, files.knowledge_base)
    width = load_arrays(files.options_file, files.weight_file, files.bilm)[0].width
    size, bilm, paths = SIZES[optimize], _bilm(files, tasks), _paths(files)
    components: dict[str, Any] = {name: {"factory": name} for name in before}
    # nobody but the components needs the layers; entity_linker has a biLM of its own and does not listen
    listening = any(name != LINKER for name in tasks)
    components[ELMO] = {"factory": ELMO, "model": bilm} | ({"store": "none"} if listening else {})
    listener = {"@architectures": "spacy-elmo.Listener.v1", "width": width, "upstream": ELMO}
    for name in tasks:
        tok2vec = _elmo_tok2vec(size, listener, MIXES.get(name, {}))
        # entity_linker works on copies of the docs, which have no layers to listen to. So it has a biLM of its own;
        # with output_elmo it would have two.
        if name == LINKER:
            tok2vec = _elmo_tok2vec(size._replace(output_elmo=False), bilm | {"width": width}, {})
        components[name] = {"factory": name, "model": with_tok2vec(default_model(nlp, name), tok2vec)}
    config: dict[str, Any] = {
        "paths": paths,
        "nlp": {"lang": nlp.lang, "pipeline": list(components)},
        "components": components,
    }
    # so that elmo and entity_linker read the same sentences in training as they do later
    annotating = before + (sentence_setters(nlp, tasks) if LINKER in tasks else [])
    if annotating:
        config["training"] = {"annotating_components": annotating}
    if before:  # the sentencizer learns nothing, so its score can't tell which step is best
        config["training"]["score_weights"] = {"sents_f": 0.0}
    if LINKER in tasks:
        loader = {"@misc": "spacy.KBFromFile.v1", "kb_path": "${paths.knowledge_base}"}
        config["initialize"] = {"components": {LINKER: {"kb_loader": loader}}}
    filled = load_model_from_config(Config(config), auto_fill=True).config
    return load_model_from_config(load_config_from_str(filled.to_str()), validate=True).config  # as `spacy train` does


def _paths(files: Files) -> dict[str, str]:
    named = {
        "elmo_options": files.options_file,
        "elmo_weights": files.weight_file,
        "knowledge_base": files.knowledge_base,
    }
    paths = {name: str(path) for name, path in named.items() if path is not None}
    for path in [*paths.values(), files.bilm or ""]:
        if "$" in path:  # `spacy train` reads a config twice, and a dollar means itself only if it is read once
            raise CommandError(Errors.INIT_DOLLAR.format(path=path, got="$"))
    return paths


def _bilm(files: Files, tasks: Sequence[str]) -> dict[str, Any]:
    """Return the config block of the biLM.

    files: the files that the config names.
    tasks: names of the components that read its vectors.
    """
    own_files = files.options_file is not None
    # of two components each doc has only the span groups of one, and the getter takes such docs
    keys = [key for name in tasks for key in SPAN_GROUPS.get(name, ())]
    getter = {"get_spans": {"@span_getters": "spacy-elmo.span_groups.v1", "keys": keys}} if keys else {}
    return {
        "@architectures": "spacy-elmo.BiLM.v1",
        "options_file": "${paths.elmo_options}" if own_files else None,
        "weight_file": "${paths.elmo_weights}" if own_files else None,
        "bilm": files.bilm,
        **getter,
    }


def _elmo_tok2vec(size: Size, source: dict[str, Any], mix: dict[str, float]) -> dict[str, Any]:
    """Return the config block of a component's own network, which reads hash embeddings and ELMo vectors.

    size: of the network.
    source: the block that the ELMo vectors come from, a listener or a biLM.
    mix: settings of the mix of the layers that are not the defaults.
    """
    elmo = {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "source": source,
        "mix": {"@layers": "spacy-elmo.ScalarMix.v1"} | mix,
    }
    return {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": size.width,
            "attrs": ATTRIBUTES,
            "rows": ROWS,
            "include_static_vectors": False,
        },
        "elmo": elmo,
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": size.width,
            "depth": size.depth,
            "window_size": 1,
            "maxout_pieces": 3,
        },
        "output_elmo": deepcopy(elmo) if size.output_elmo else None,
    }
