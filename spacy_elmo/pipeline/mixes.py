"""What the mixes of a pipeline have learnt."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from spacy.language import Language
from thinc.api import Model, to_numpy

from ..models.listening.replacing import source_name
from ..models.scalar_mix import NAME, softmax


@dataclass(frozen=True)
class LearnedMix:
    """One mix.

    component: the pipe; place: "input", "output" (of ElmoTok2Vec), else "mix", numbered where there are several.
    source: the elmo pipe that is listened to, "*" for any; "biLM" for one of the component's own.
    weights: softmax(w), an item a layer; w: before the softmax; gamma: what the mix is multiplied with.
    """

    component: str
    place: str
    source: str
    weights: list[float]
    w: list[float]
    gamma: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def learned_mixes(nlp: Language) -> list[LearnedMix]:
    """All mixes of all components, disabled ones too, in the pipeline's order; those not yet initialised left out."""
    mixes = []
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model):
            continue
        found = [part for part in _mixes(model) if part[1].has_param("w")]
        places = [place for place, _, _ in found]
        for number, (place, mix, source) in enumerate(found):
            if places.count(place) > 1:
                place += f" {places[: number + 1].count(place)}"
            w: Any = to_numpy(mix.get_param("w"))
            gamma = float(to_numpy(mix.get_param("gamma"))[0])
            weights: Any = to_numpy(softmax(mix))
            mixes.append(LearnedMix(name, place, source, weights.tolist(), w.tolist(), gamma))
    return mixes


def _mixes(model: Model[Any, Any]) -> Iterator[tuple[str, Model[Any, Any], str]]:
    """Place, mix and name of the source of each mix in a model."""
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
