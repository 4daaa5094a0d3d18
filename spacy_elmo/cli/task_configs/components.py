"""Checks which components can be in a pipeline whose components listen to an elmo pipe."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.util import registry

from ...errors import CommandError, Errors

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
        raise CommandError(Errors.INIT_EMPTY.format(expected=_known(nlp)))
    for number, name in enumerate(pipeline):
        if name in pipeline[:number]:
            raise CommandError(Errors.INIT_TWICE.format(got=name))
        if name == ELMO:
            raise CommandError(Errors.INIT_ELMO)
        if name in EMBEDDERS:
            raise CommandError(Errors.INIT_EMBEDDER.format(got=name))
        if not nlp.has_factory(name):
            raise CommandError(Errors.INIT_UNKNOWN.format(got=name, lang=nlp.lang, expected=_known(nlp)))
        if name != SENTENCIZER and not _is_task(nlp, name):
            raise CommandError(Errors.INIT_NO_TASK.format(got=name, expected=_known(nlp)))
    if set(pipeline) == {SENTENCIZER}:
        raise CommandError(Errors.INIT_EMPTY.format(expected=_known(nlp)))
    setters = sentence_setters(nlp, pipeline)
    if SENTENCIZER in setters and len(setters) > 1:
        other = next(name for name in setters if name != SENTENCIZER)
        raise CommandError(Errors.INIT_SENTENCES_TWICE.format(other=other))
    if LINKER in pipeline:
        earlier = pipeline[: pipeline.index(LINKER)]
        if SENTENCIZER not in pipeline and not sentence_setters(nlp, earlier):
            raise CommandError(Errors.INIT_SENTENCES_NONE)


def check_knowledge_base(nlp: Language, path: Path) -> None:
    """Check that a folder contains a knowledge base with entities.

    nlp: a pipeline, whose vocabulary is used.
    path: the folder.

    Raises CommandError if the knowledge base can't be read or is empty.
    """
    if path.is_dir() and not (path / "contents").is_file():  # spaCy would end the process
        raise CommandError(Errors.INIT_KB.format(path=path, reason="it has no file contents"))
    knowledge_base = InMemoryLookupKB(nlp.vocab, entity_vector_length=1)
    try:
        knowledge_base.from_disk(path)
    except Exception as error:  # damaged files raise AssertionError, MemoryError and more
        raise CommandError(Errors.INIT_KB.format(path=path, reason=str(error) or type(error).__name__)) from error
    if knowledge_base.is_empty():
        raise CommandError(Errors.INIT_KB.format(path=path, reason="it is empty"))


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
