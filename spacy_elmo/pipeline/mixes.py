"""What the scalar mixes of a pipeline have learnt."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from spacy.language import Language
from thinc.api import Model, to_numpy

from ..models.listening.replacing import source_name
from ..models.scalar_mix import NAME, softmax


@dataclass(frozen=True)
class LearnedMix:
    """One scalar mix and its parameters.

    component: name of the component that contains it.
    place: "input" or "output" in ElmoTok2Vec, else "mix"; followed by a number if the component has several of them.
    source: name of the elmo pipe whose layers are mixed, "*" for the only one; "biLM": a biLM inside the component.
    weights: *Shape:* (layers,), softmax(w).
    w: *Shape:* (layers,), the weights before the softmax.
    gamma: factor of the mix.
    """

    component: str
    place: str
    source: str
    weights: list[float]
    w: list[float]
    gamma: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict that can be written as JSON."""
        return asdict(self)


def learned_mixes(nlp: Language) -> list[LearnedMix]:
    """Return the mixes of all components, in the order of the pipeline.

    Components that are disabled are included. Mixes that are not initialised are left out.

    nlp: the pipeline.
    """
    mixes = []
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model):
            continue
        initialised = [part for part in _mixes(model) if part[1].has_param("w")]
        places = [place for place, _, _ in initialised]
        for number, (place, mix, source) in enumerate(initialised):
            if places.count(place) > 1:
                place += f" {places[: number + 1].count(place)}"
            w: Any = to_numpy(mix.get_param("w"))
            gamma = float(to_numpy(mix.get_param("gamma"))[0])
            weights: Any = to_numpy(softmax(mix))
            mixes.append(LearnedMix(name, place, source, weights.tolist(), w.tolist(), gamma))
    return mixes


def _mixes(model: Model[Any, Any]) -> Iterator[tuple[str, Model[Any, Any], str]]:
    """Yield the place, the layer and the source's name of each mix in a model."""
    nodes = list(model.walk(order="dfs_pre"))
    places: dict[int, str] = {}
    for node in nodes:
        for ref, place in (("elmo", "input"), ("output_elmo", "output")):
            if node.has_ref(ref):
                places |= {id(mix): place for mix in node.get_ref(ref).walk() if mix.name == NAME}
    sources: dict[int, str] = {}
    for node in nodes:
        for before, after in zip(node.layers, node.layers[1:]):
            if after.name == NAME:
                sources[id(after)] = source_name(before)
    for node in nodes:
        if node.name == NAME:
            yield places.get(id(node), "mix"), node, sources.get(id(node), "")
