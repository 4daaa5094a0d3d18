"""What the scalar mixes of a pipeline have learnt."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import IO, Any

import srsly
from spacy.language import Language
from spacy.training.loggers import console_logger
from thinc.api import Model, to_numpy

from ..errors import CommandError
from ..formats.paths import expanded
from ..models.listener import NAME as LISTENER
from ..models.listener import link_of
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
    """Return the mixes that are initialised, of all components in the order of the pipeline, disabled ones too."""
    mixes = []
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        found = [part for part in _mixes(model) if part[1].has_param("w")] if isinstance(model, Model) else []
        places = [place for place, _, _ in found]
        for number, (place, mix, source) in enumerate(found):
            if places.count(place) > 1:
                place += f" {places[: number + 1].count(place)}"
            weights: Any = to_numpy(softmax(mix))
            w, (gamma,) = (to_numpy(mix.get_param(parameter)).tolist() for parameter in ("w", "gamma"))
            mixes.append(LearnedMix(name, place, source, weights.tolist(), w, gamma))
    return mixes


def _mixes(model: Model[Any, Any]) -> Iterator[tuple[str, Model[Any, Any], str]]:
    """Yield the place, the layer and the source's name of each mix in a model."""
    nodes = list(model.walk(order="dfs_pre"))
    places: dict[int, str] = {}
    sources: dict[int, str] = {}
    for node in nodes:
        for ref, place in (("elmo", "input"), ("output_elmo", "output")):
            if node.has_ref(ref):
                places |= {id(mix): place for mix in node.get_ref(ref).walk() if mix.name == NAME}
        for before, after in zip(node.layers, node.layers[1:]):
            if after.name == NAME:
                sources[id(after)] = link_of(before).name if before.name == LISTENER else "biLM"
    for node in nodes:
        if node.name == NAME:
            yield places.get(id(node), "mix"), node, sources.get(id(node), "")


LogStep = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO[str], IO[str]], tuple[LogStep, Callable[[], None]]]


def build_mix_logger(logger: Logger | None = None, output_file: str | None = None) -> Logger:
    """Build spacy-elmo.MixLogger.v1: it logs the softmax weights and gamma of each mix, at each evaluation.

    The weights are those of training. If the optimizer has use_averages, their averages are saved instead.

    logger: another logger, which is called with the same information. The mixes are added to its other_scores, with
        names like "elmo_ner_input_w0" and "elmo_ner_input_gamma". null: spacy.ConsoleLogger.v1.
    output_file: path of a file, to which one line of JSON is written at each evaluation (step, epoch, score, mixes).
        An existing file is replaced. null: the mixes are printed.

    Raises CommandError, in training, if output_file cannot be written.
    """
    inner: Logger = console_logger() if logger is None else logger

    def setup(nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr) -> tuple[LogStep, Any]:
        log_inner, finalize = inner(nlp, stdout, stderr)
        if output_file is not None:
            _write(output_file, "w", "")

        def log_step(info: dict[str, Any] | None) -> None:
            if info is None:
                log_inner(None)
                return
            mixes = learned_mixes(nlp)
            log_inner(info | {"other_scores": {**info["other_scores"], **_numbers(mixes)}})
            if output_file is None:
                for mix in mixes:
                    weights = " ".join(f"{weight:.3f}" for weight in mix.weights)
                    stdout.write(f"  {mix.component} {mix.place}: {weights}, gamma {mix.gamma:.3f}\n")
            else:
                row = {key: info[key] for key in ("step", "epoch", "score")} | {"mixes": [m.to_dict() for m in mixes]}
                _write(output_file, "a", srsly.json_dumps(row) + "\n")

        return log_step, finalize

    return setup


def _numbers(mixes: list[LearnedMix]) -> dict[str, float]:
    result: dict[str, float] = {}
    for mix in mixes:
        name = f"elmo_{mix.component}_{mix.place}".replace(" ", "_")
        result |= {f"{name}_w{k}": weight for k, weight in enumerate(mix.weights)} | {f"{name}_gamma": mix.gamma}
    return result


def _write(path: str, mode: str, text: str) -> None:
    try:
        with expanded(path).open(mode, encoding="utf8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(
            f"{path}: can't be written ({error}). Set output_file of spacy-elmo.MixLogger.v1 to another path."
        ) from error
