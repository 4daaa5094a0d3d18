"""Pipelines of the tests."""

from functools import cache
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

GOLDEN = Path(__file__).parents[1] / "golden"


def files(name: str, **model: Any) -> dict[str, Any]:
    """The component's config for a golden biLM."""
    folder = GOLDEN / name
    paths = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    return {"model": paths | model}


def pipeline(name: str | None = "random_a", model: dict[str, Any] | None = None, **config: Any) -> Language:
    """A blank pipeline with elmo on a golden biLM, small and fast; None: the embedded one."""
    nlp = spacy.blank("xx")  # English takes four times as long to make
    given = {"model": model or {}} if name is None else files(name, **(model or {}))
    nlp.add_pipe("elmo", config=given | config)
    return nlp


def from_config(model: dict[str, Any]) -> Language:
    """The same, from the config of a pipeline, whose biLM may be gone."""
    component = {"factory": "elmo", "model": model}
    return spacy.blank("xx").from_config(
        {"nlp": {"lang": "xx", "pipeline": ["elmo"]}, "components": {"elmo": component}}
    )


@cache
def shared(name: str | None = "random_a", **config: Any) -> Language:
    """The same for all tests that leave it as it is."""
    return pipeline(name, **config)


@spacy.registry.misc("refuses_bad.v1")
def refuses_bad() -> object:
    def get_spans(docs: list[Doc]) -> list[list[Span]]:
        if any("bad" in doc.text for doc in docs):
            raise RuntimeError("no")
        return [[doc[:]] if len(doc) else [] for doc in docs]

    return get_spans
