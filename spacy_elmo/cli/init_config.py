"""`elmo init-config`: a config that trains components on elmo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import typer
from spacy.cli._util import Arg, Opt, string_to_list
from spacy.cli.init_config import Optimizations
from spacy.language import Language
from spacy.util import load_model_from_config, registry
from thinc.api import Config

from ..errors import CommandError
from ..modules.loading import load_arrays
from ..text.words import blank
from . import shared
from .console import msg, quoted

ELMO, LINKER, SENTENCIZER = "elmo", "entity_linker", "sentencizer"
_PIPELINE = "Components to train, in order, separated by commas; another name is refused with a list of them"
_OPTIMIZE = "Size of the networks; accuracy: ELMo at their output too"
# the span groups that a component reads; the biLM has to read each of their spans as a sentence of its own
SPAN_GROUPS = {"entailment": ["premise", "hypothesis"], "answers": ["question", "context"]}
# as in configs/. Beside an x that ends in a layer norm the layers of en_mini are small: see docs/training.md
_LARGER_MIX = {"gamma": 3.0, "dropout": 0.2}
MIXES = {"semantic_roles": {"dropout": 0.4}, "coreference": _LARGER_MIX}
MIXES |= {"entailment": _LARGER_MIX, "answers": _LARGER_MIX}
SIZES = {"efficiency": (96, 4), "accuracy": (256, 8)}  # width and depth of a network, as in spaCy's quickstart


def init_config(
    output_file: Path = Arg(..., metavar="OUT", help="The config to write; - is standard output", allow_dash=True),
    lang: shared.LangOfBiLM = None,
    pipeline: str = Opt("tagger,parser,ner", "--pipeline", "-p", metavar="NAMES", help=_PIPELINE),
    optimize: Optimizations = Opt(Optimizations.efficiency, "--optimize", "-o", help=_OPTIMIZE),
    model: shared.BiLMName = None,
    options_file: str | None = Opt(None, metavar="FILE", help="options.json of a biLM, in place of --model"),
    weight_file: str | None = Opt(None, metavar="FILE", help="Its weights.hdf5"),
    knowledge_base: str | None = Opt(None, metavar="FOLDER", help="Saved knowledge base, for entity_linker"),
    baseline: bool = Opt(False, "--baseline", help="The same networks without ELMo, to compare with"),
    force: shared.Force = False,
) -> None:
    """Each component listens to an elmo pipe, and has its features, its network and its mix of the biLM's layers. Other
    settings are spaCy's defaults.
    """
    bilm = shared.bilm_of(model, options_file=options_file, weight_file=weight_file)
    shared.hold(output_file, [*bilm.files, *filter(None, [knowledge_base])], force=force, begins=b"[paths]")
    names = [name.strip() for name in string_to_list(pipeline)]
    paths = {"elmo_options": options_file, "elmo_weights": weight_file, "knowledge_base": knowledge_base}
    made = task_config(lang or bilm.language, names, optimize.value, model, paths)
    config = (without_elmo(made) if baseline else made).to_str()
    if output_file == shared.DASH:
        typer.echo(config)
        return
    shared.write_text(config + "\n", output_file)
    msg.good(f"{output_file}: train it with")
    command = f"python -m spacy train {quoted(output_file)}"
    typer.echo(f"{command} --paths.train train.spacy --paths.dev dev.spacy --output out")


def task_config(
    lang: str, pipeline: Sequence[str], optimize: str, bilm: str | None, paths: Mapping[str, str | None]
) -> Config:
    """Return a complete and validated config, in which only the paths of the training and development data are missing.

    paths: the files elmo_options and elmo_weights, and the folder knowledge_base, if they are given.
    """
    nlp = blank(lang)
    tasks = [name for name in pipeline if name != SENTENCIZER]
    before = [name for name in pipeline if name == SENTENCIZER]
    _check_names(nlp, pipeline, paths.get("knowledge_base"))
    load_arrays(paths.get("elmo_options"), paths.get("elmo_weights"), bilm)  # raises if they can't be used
    named = {name: path for name, path in paths.items() if path is not None}
    for path in [*named.values(), bilm or ""]:  # `spacy train` reads a config twice
        shared.refuse_variables(path, "$")
    model: dict[str, Any] = {
        "@architectures": "spacy-elmo.BiLM.v1",
        "options_file": "${paths.elmo_options}" if "elmo_options" in named else None,
        "weight_file": "${paths.elmo_weights}" if "elmo_weights" in named else None,
        "bilm": bilm,
    }
    # of two components each doc has only the span groups of one, and the getter takes such docs
    if keys := [key for name in tasks for key in SPAN_GROUPS.get(name, ())]:
        model["get_spans"] = {"@span_getters": "spacy-elmo.span_groups.v1", "keys": keys}
    components: dict[str, Any] = {name: {"factory": name} for name in before}
    components[ELMO] = {"factory": ELMO, "model": model}
    if set(tasks) != {LINKER}:  # nobody but the listeners needs the layers
        components[ELMO]["store"] = "none"
    listener = {"@architectures": "spacy-elmo.Listener.v1", "upstream": ELMO}
    for name in tasks:
        # entity_linker works on copies of the docs, which have no layers to listen to. So it has a biLM of its own;
        # with one at the output it would have two
        mix = {"@layers": "spacy-elmo.ScalarMix.v1"} | MIXES.get(name, {})
        elmo = {"@architectures": "spacy-elmo.Tok2Vec.v1", "source": model if name == LINKER else listener, "mix": mix}
        tok2vec = _tok2vec(*SIZES[optimize], elmo, optimize == "accuracy" and name != LINKER)
        components[name] = {"factory": name, "model": _with_tok2vec(_default_model(nlp, name), tok2vec)}
    order = {"lang": nlp.lang, "pipeline": list(components)}
    config: dict[str, Any] = {"paths": named, "nlp": order, "components": components}
    # so that elmo and entity_linker read the same sentences in training as they do later
    annotating = before + (_sentence_setters(nlp, tasks) if LINKER in tasks else [])
    if annotating:
        config["training"] = {"annotating_components": annotating}
    if before:  # it learns nothing, so its scores neither tell which step is best nor make columns of the table
        config["training"]["score_weights"] = dict.fromkeys(("sents_f", "sents_p", "sents_r"))
    if LINKER in tasks:
        loader = {"@misc": "spacy.KBFromFile.v1", "kb_path": "${paths.knowledge_base}"}
        config["initialize"] = {"components": {LINKER: {"kb_loader": loader}}}
    return load_model_from_config(Config(config), auto_fill=True).config


def without_elmo(config: Config) -> Config:
    """Return the same networks without ELMo: each keeps its embedding and its encoder, and listens to no elmo pipe."""
    made = config.copy()
    made["nlp"]["pipeline"].remove(ELMO)
    del made["components"][ELMO]
    made["paths"] = {name: path for name, path in made["paths"].items() if not name.startswith("elmo_")}
    made["components"] = _plain(made["components"])
    return made


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("@architectures") == "spacy-elmo.ElmoTok2Vec.v1":
        return {"@architectures": "spacy.Tok2Vec.v2", "embed": block["embed"], "encode": block["encode"]}
    return {name: _plain(value) if isinstance(value, dict) else value for name, value in block.items()}


def _check_names(nlp: Language, pipeline: Sequence[str], knowledge_base: str | None) -> None:
    """Raise CommandError unless components can be in one pipeline with elmo, and with the knowledge base."""
    twice = [name for number, name in enumerate(pipeline) if name in pipeline[:number]]
    wrong = [name for name in pipeline if name != SENTENCIZER and not _is_task(nlp, name)]
    setters = [] if wrong else _sentence_setters(nlp, pipeline)
    earlier = pipeline[: pipeline.index(LINKER)] if LINKER in pipeline else ()
    problem = None
    if twice:
        problem = f"--pipeline names {twice[0]!r} twice. Expected each component once: leave one out"
    elif wrong or set(pipeline) <= {SENTENCIZER}:
        known = [name for name in registry.factories.get_all() if "." not in name and _is_task(nlp, name)]
        problem = f"--pipeline names {repr(wrong[0]) if wrong else 'no component that is trained'}. Expected "
        problem += f"components that are trained on a tok2vec, separated by commas: {', '.join(sorted(known))}; and "
        problem += "sentencizer"
    elif SENTENCIZER in setters and len(setters) > 1:
        other = next(name for name in setters if name != SENTENCIZER)
        problem = f"--pipeline names 'sentencizer' and {other!r}, which both set sentences. Leave one of them out"
    elif (LINKER in pipeline) != (knowledge_base is not None):
        problem = "entity_linker in --pipeline needs --knowledge-base, and only it. One was given: add the other"
    elif LINKER in pipeline and SENTENCIZER not in pipeline and not set(setters) & set(earlier):
        problem = "--pipeline names 'entity_linker', which needs sentences, but no component before it sets them. "
        problem += "Add 'sentencizer', 'senter' or 'parser' before it"
    elif knowledge_base is not None and not Path(knowledge_base, "contents").is_file():
        problem = f"--knowledge-base is {knowledge_base}, which has no file contents. Expected the folder that to_disk "
        problem += "of spaCy's InMemoryLookupKB wrote"
    if problem is not None:
        raise CommandError(f"{problem}.")


def _default_model(nlp: Language, name: str) -> dict[str, Any]:
    """Return the default model of a factory, as a block of a config; {} if it has no model."""
    return dict((nlp.get_factory_meta(name).default_config or {}).get("model") or {})


def _is_task(nlp: Language, name: str) -> bool:
    """Return whether a name is that of a component that is trained and has a tok2vec."""
    if name == "nn_labeller" or not nlp.has_factory(name):  # its tok2vec is used by other components only
        return False
    model = _default_model(nlp, name)
    return _with_tok2vec(model, {}) != model


def _sentence_setters(nlp: Language, names: Iterable[str]) -> list[str]:
    """Return the components that set sentence boundaries, in their order."""
    return [name for name in names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_factory_meta(name).assigns)]


def _with_tok2vec(block: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a config block in which each value of the key "tok2vec" is replaced, at any depth."""
    made = {name: _with_tok2vec(value, tok2vec) if isinstance(value, dict) else value for name, value in block.items()}
    return made | ({"tok2vec": deepcopy(tok2vec)} if "tok2vec" in block else {})


def _tok2vec(width: int, depth: int, elmo: dict[str, Any], output_elmo: bool) -> dict[str, Any]:
    """Return the config block of a component's own network, which reads hash embeddings and ELMo vectors."""
    embed: dict[str, Any] = {"@architectures": "spacy.MultiHashEmbed.v2", "width": width}
    embed |= {"attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"], "rows": [5000, 1000, 2500, 2500]}
    embed |= {"include_static_vectors": False}
    encode: dict[str, Any] = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": width, "depth": depth}
    encode |= {"window_size": 1, "maxout_pieces": 3}
    block = {"@architectures": "spacy-elmo.ElmoTok2Vec.v1", "embed": embed, "elmo": elmo, "encode": encode}
    return block | {"output_elmo": deepcopy(elmo) if output_elmo else None}
