"""Which components can be in a pipeline whose components listen to an elmo pipe."""

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
PARTS_OF_OTHERS = ("nn_labeller",)  # has a tok2vec, but is no component of its own
SENTENCES = {"doc.sents", "token.is_sent_start"}


def check_names(nlp: Language, pipeline: Sequence[str]) -> None:
    """Raises CommandError for components that can't be in one pipeline with elmo, or that are none."""
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
    """Raises CommandError where the folder holds no entities."""
    knowledge_base = InMemoryLookupKB(nlp.vocab, entity_vector_length=1)
    try:
        knowledge_base.from_disk(path)
    except Exception as error:  # damaged files raise AssertionError, MemoryError and more
        raise CommandError(Errors.INIT_KB.format(path=path, reason=str(error) or type(error).__name__)) from error
    if knowledge_base.is_empty():
        raise CommandError(Errors.INIT_KB.format(path=path, reason="it is empty"))


def default_model(nlp: Language, name: str) -> dict[str, Any]:
    """Of a component's factory; {} where it has none."""
    return dict((nlp.get_factory_meta(name).default_config or {}).get("model") or {})


def _is_task(nlp: Language, name: str) -> bool:
    """Whether a component is trained, on a tok2vec of its own."""
    model = default_model(nlp, name)
    return name not in PARTS_OF_OTHERS and with_tok2vec(model, {}) != model


def _known(nlp: Language) -> str:
    """Names of all components that can be asked for."""
    names = [name for name in registry.factories.get_all() if "." not in name and nlp.has_factory(name)]
    return ", ".join(sorted(name for name in names if name == SENTENCIZER or _is_task(nlp, name)))


def sentence_setters(nlp: Language, names: Iterable[str]) -> list[str]:
    """Those that set the sentences' boundaries."""
    return [name for name in names if SENTENCES & set(nlp.get_factory_meta(name).assigns)]


def with_tok2vec(block: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
    """The block with `tok2vec` wherever it has one, however deep."""
    return {
        key: deepcopy(tok2vec)
        if key == "tok2vec"
        else with_tok2vec(value, tok2vec)
        if isinstance(value, dict)
        else value
        for key, value in block.items()
    }
