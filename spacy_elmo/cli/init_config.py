"""`elmo init-config`: a config that trains components on elmo."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.cli._util import string_to_list
from spacy.cli.init_config import Optimizations
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.util import load_config_from_str, load_model_from_config, registry
from thinc.api import Config

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError, OtherLanguageWarning
from ..formats.text import LANGUAGE_ERRORS, lacks_package
from ..modules.loading import OPTIONS, WEIGHTS, find_bilm, is_embedded, load_arrays
from ..pretraining.language_model import refuse_new_run
from .console import escaped, msg, printing_errors, quoted, show_all
from .shared import STANDARD_OUTPUT, Force, refuse_existing, refuse_inputs, warn_of_language, write_text

_INIT_KB = (
    "--knowledge-base is {path}, which can't be used ({reason}). Expected the folder that to_disk of "
    "spaCy's InMemoryLookupKB wrote, with entities and aliases."
)

ELMO, LINKER, SENTENCIZER = "elmo", "entity_linker", "sentencizer"
EMBEDDERS = ("tok2vec", "transformer", "curated_transformer")
PARTS_OF_OTHERS = ("nn_labeller",)  # they have a tok2vec, but only other components use them
SENTENCES = {"doc.sents", "token.is_sent_start"}


def check_names(nlp: Language, pipeline: Sequence[str]) -> None:
    """Check that components can be in one pipeline with elmo.

    nlp: a pipeline of the language.
    pipeline: names of the components, in order.

    Raises CommandError if a name is unknown, occurs twice or is no trainable component, if there is no trainable
    component, or if sentence boundaries are set twice or are missing for the entity linker.
    """
    if not pipeline:
        raise CommandError(
            f"--pipeline names no component that is trained. Expected some of {_known(nlp)}, separated by commas."
        )
    for number, name in enumerate(pipeline):
        if name in pipeline[:number]:
            raise CommandError(f"--pipeline names {name!r} twice. Expected each component once: leave one out.")
        if name == ELMO:
            raise CommandError(
                "--pipeline names 'elmo'. Expected only the components that listen to it: elmo is added automatically."
            )
        if name in EMBEDDERS:
            raise CommandError(
                f"--pipeline names {name!r}. In its place, the components of this config use elmo and a network "
                "of their own: leave it out. For a pipeline without ELMo there is python -m spacy init config."
            )
        if not nlp.has_factory(name):
            raise CommandError(
                f"--pipeline names {name!r}, which spaCy does not know for the language {nlp.lang!r}. Expected "
                f"{_known(nlp)}."
            )
        if name != SENTENCIZER and not _is_task(nlp, name):
            raise CommandError(
                f"--pipeline names {name!r}, which is not trained on a tok2vec: it follows rules or tables, "
                f"changes the tokens, or is a part of another component. Expected {_known(nlp)}. Leave it out, "
                "and add it to the trained pipeline with nlp.add_pipe."
            )
    if set(pipeline) == {SENTENCIZER}:
        raise CommandError(
            f"--pipeline names no component that is trained. Expected some of {_known(nlp)}, separated by commas."
        )
    setters = sentence_setters(nlp, pipeline)
    if SENTENCIZER in setters and len(setters) > 1:
        other = next(name for name in setters if name != SENTENCIZER)
        raise CommandError(
            f"--pipeline names 'sentencizer' and {other!r}. Both set the boundaries of sentences, so {other!r} "
            "could not learn its own. Leave one of them out."
        )
    if LINKER in pipeline:
        earlier = pipeline[: pipeline.index(LINKER)]
        if SENTENCIZER not in pipeline and not sentence_setters(nlp, earlier):
            raise CommandError(
                "--pipeline names 'entity_linker', which needs sentences, but no component before it sets them. "
                "Add 'sentencizer', 'senter' or 'parser' before it."
            )


def check_knowledge_base(nlp: Language, path: Path) -> None:
    """Check that a folder contains a knowledge base with entities.

    nlp: a pipeline, whose vocabulary is used.
    path: the folder.

    Raises CommandError if the knowledge base can't be read or is empty.
    """
    if path.is_dir() and not (path / "contents").is_file():  # spaCy would end the process
        raise CommandError(_INIT_KB.format(path=path, reason="it has no file contents"))
    knowledge_base = InMemoryLookupKB(nlp.vocab, entity_vector_length=1)
    try:
        knowledge_base.from_disk(path)
    except Exception as error:  # damaged files raise AssertionError, MemoryError and more
        raise CommandError(_INIT_KB.format(path=path, reason=str(error) or type(error).__name__)) from error
    if knowledge_base.is_empty():
        raise CommandError(_INIT_KB.format(path=path, reason="it is empty"))


def default_model(nlp: Language, name: str) -> dict[str, Any]:
    """Return the default model of a component, as a block of a config; {} if it has no model.

    nlp: a pipeline.
    name: name of the component's factory.
    """
    return dict((nlp.get_factory_meta(name).default_config or {}).get("model") or {})


def _is_task(nlp: Language, name: str) -> bool:
    """Return whether a component is trained and has a tok2vec. name: name of its factory."""
    model = default_model(nlp, name)
    return name not in PARTS_OF_OTHERS and with_tok2vec(model, {}) != model


def _known(nlp: Language) -> str:
    """Return the names of all components that a user can choose, for messages."""
    names = [name for name in registry.factories.get_all() if "." not in name and nlp.has_factory(name)]
    return ", ".join(sorted(name for name in names if name == SENTENCIZER or _is_task(nlp, name)))


def sentence_setters(nlp: Language, names: Iterable[str]) -> list[str]:
    """Return the components that set sentence boundaries, in their order.

    nlp: a pipeline.
    names: names of the components' factories.
    """
    return [name for name in names if SENTENCES & set(nlp.get_factory_meta(name).assigns)]


def with_tok2vec(block: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a config block in which each value of the key "tok2vec" is replaced, at any depth.

    block: the block.
    tok2vec: the block that is put there.
    """
    return {
        key: deepcopy(tok2vec)
        if key == "tok2vec"
        else with_tok2vec(value, tok2vec)
        if isinstance(value, dict)
        else value
        for key, value in block.items()
    }


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
        template = (
            (
                "the language is {got!r}, that of --lang or of the biLM's model card. Its tokenizer needs a package "
                "that is not installed ({reason}). Install it, or give another --lang."
            )
            if lacks_package(error)
            else (
                "--lang is {got!r}, which can't be used ({reason}). Expected the code of a language that spaCy "
                "knows, like en."
            )
        )
        raise CommandError(template.format(got=lang, reason=error)) from error
    check_names(nlp, pipeline)
    tasks = [name for name in pipeline if name != SENTENCIZER]
    before = [name for name in pipeline if name == SENTENCIZER]
    if (LINKER in tasks) != (files.knowledge_base is not None):
        raise CommandError(
            (
                "--pipeline names 'entity_linker', which can't be trained without a knowledge base. Give the folder "
                "of one, saved with its to_disk, with --knowledge-base, or leave out 'entity_linker'."
            )
            if LINKER in tasks
            else (
                "--knowledge-base was given, but --pipeline has no 'entity_linker'. Add it, or leave out "
                "--knowledge-base."
            )
        )
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
            raise CommandError(
                f"{path}: has {'$'}, with which a variable begins in a config. Expected a path without it: rename "
                "the file or folder, or give a relative path from inside of it."
            )
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


# written down, because a look at the factories of all packages would slow down the start of every command
COMPONENTS = (
    "answers, beam_ner, beam_parser, coreference, entailment, entity_linker, morphologizer, ner, parser, "
    "semantic_roles, senter, span_finder, spancat, spancat_singlelabel, tagger, textcat, textcat_multilabel, "
    "trainable_lemmatizer"
)


def model_files(model: str, options_file: Path | None, weight_file: Path | None) -> list[Path]:
    """Return the files of the biLM that --model names. They may be missing.

    Raises CommandError if one of the two files was given too, and another ElmoError if the model is a run that has
    written no biLM yet, or was not downloaded or installed.
    """
    for option, file in (("--options-file", options_file), ("--weight-file", weight_file)):
        if file is not None:
            raise CommandError(
                f"--model and {option} were given. Expected one of them: leave out {option}, or --model."
            )
    if is_embedded(model):
        return []
    folder = find_bilm(model)
    refuse_new_run(folder)
    return [folder / OPTIONS, folder / WEIGHTS]


def init_config(
    output_file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The config to write; - is standard output", allow_dash=True)
    ],
    lang: Annotated[
        str | None,
        typer.Option("--lang", "-l", metavar="CODE", help="Code of the language; left out: that of the biLM, or en"),
    ] = None,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            "-p",
            metavar="NAMES",
            help=f"Components to train, in order, separated by commas: {COMPONENTS}, and those of other packages that "
            "are trained on a tok2vec; sentencizer is allowed too, and runs first",
        ),
    ] = "tagger,parser,ner",
    optimize: Annotated[
        Optimizations,
        typer.Option(
            "--optimize",
            "-o",
            help="Sizes of the components' networks; accuracy: ELMo at the output of the networks too",
        ),
    ] = Optimizations.efficiency,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="biLM: its folder, or its name; left out: en_mini, the embedded one"
        ),
    ] = None,
    options_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="options.json of a biLM, in place of --model")
    ] = None,
    weight_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Its weights.hdf5")] = None,
    knowledge_base: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Saved knowledge base, for entity_linker")
    ] = None,
    force: Force = False,
) -> None:
    """Write a config for spacy train with ELMo.

    Each component listens to an elmo pipe.
    Each component has its features, its network and its mix of the biLM's layers. Other settings are spaCy's defaults.
    """
    show_all()
    with printing_errors(), warnings.catch_warnings():
        files = [] if model is None else model_files(model, options_file, weight_file)
        if output_file != STANDARD_OUTPUT:
            refuse_existing(output_file, force)
            kept = [] if knowledge_base is None else list(knowledge_base.glob("*"))
            inputs = (options_file, weight_file, *files, *kept)
            refuse_inputs(output_file, [path for path in inputs if path is not None])
        names = [name.strip() for name in string_to_list(pipeline)]
        warnings.simplefilter("ignore", OtherLanguageWarning)  # said below, in the command's own words
        bilm = BiLMChoice(model, None if options_file is None else str(options_file))
        named = Files(options_file, weight_file, knowledge_base, model)
        config = task_config(lang or bilm.language, names, optimize.value, named)
        if output_file == STANDARD_OUTPUT:
            typer.echo(config.to_str())
        else:
            write_text(config.to_str() + "\n", output_file)
    with redirect_stdout(sys.stderr) if output_file == STANDARD_OUTPUT else nullcontext():
        warn_of_language(bilm, lang)
    if output_file == STANDARD_OUTPUT:
        return
    msg.good(escaped(f"{output_file}: train it with"))
    typer.echo(
        f"python -m spacy train {quoted(output_file)} --paths.train train.spacy --paths.dev dev.spacy --output out"
    )
