"""Callbacks for configs: gradual unfreezing, a biLM for each component, and numpy's matrix multiplication."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from spacy.language import Language
from thinc.api import Model, NumpyOps

from ..errors import SettingsError, check_whole, shown
from ..models.shim import bilm_shims
from .elmo import ElmoPipe

Unit = Literal["epoch", "step"]


def build_gradual_unfreezing(
    pipe: str = "elmo", start: int = 1, every: int = 1, unit: Unit = "epoch"
) -> Callable[[Language, dict[str, Any]], None]:
    """Build spacy-elmo.GradualUnfreezing.v1 for [training.before_update] (Howard and Ruder 2018, section 3.3).

    Which parts are trained depends only on the number of the epoch or step.

    pipe: name of an elmo pipe with frozen = false.
    start: number of epochs or steps in which the biLM is not trained, only the task components are.
    every: number of epochs or steps after which one more part is trained. The parts are the LSTM layers, from the top
        one down, and then the character encoder.
    unit: "epoch" or "step".
    """
    check_whole(0, start=start)
    check_whole(every=every)
    if unit not in get_args(Unit):
        raise SettingsError(f'unit is {shown(unit)}. Expected "epoch" or "step".')

    def before_update(nlp: Language, info: dict[str, Any]) -> None:
        tuned = {name: other for name, other in nlp.components if isinstance(other, ElmoPipe) and not other.frozen}
        if pipe not in tuned:
            raise SettingsError(
                f"pipe is {pipe!r}. Expected the name of an elmo pipe with frozen = false; there is "
                f"{', '.join(tuned) or 'none'}."
            )
        now = info[unit]
        parts = 0 if now < start else 1 + (now - start) // every
        for shim in bilm_shims(tuned[pipe].model):
            shim.unfreeze().train_from_top(parts)

    return before_update


def build_replace_listeners() -> Callable[[Language], Language]:
    """Build spacy-elmo.ReplaceListeners.v1 for [nlp.after_pipeline_creation], as `nlp.replace_listeners` for all.

    `spacy debug model` runs a component without the pipes before it, so it needs components that do not listen. Each
    listener in the `model.tok2vec` of a component is replaced by a copy of its elmo pipe's biLM.
    """

    def after_pipeline_creation(nlp: Language) -> Language:
        for name, pipe in nlp.components:
            if isinstance(pipe, ElmoPipe):
                for component, listeners in list(pipe.listener_map.items()):
                    nlp.replace_listeners(name, component, ["model.tok2vec"] * len(listeners))
        return nlp

    return after_pipeline_creation


def build_numpy_gemm() -> Callable[[Language], Language]:
    """Build spacy-elmo.NumpyGemm.v1 for [nlp] after_pipeline_creation.

    numpy computes the matrix multiplications (gemm) of the components that the config has. They alone were three to
    six times as fast as with BLIS, and training as a whole about twice (docs/training.md). They use as many threads as
    numpy's library is told to (OMP_NUM_THREADS). Results differ by rounding. These keep BLIS: the steps of the parser
    and of ner from state to state, layers that are made later until the pipeline is loaded again, and other pipelines.
    Models on a GPU stay as they are.
    """
    ops = NumpyOps(use_blis=False)

    def after_pipeline_creation(nlp: Language) -> Language:
        for _, pipe in nlp.components:
            model = getattr(pipe, "model", None)
            if isinstance(model, Model):
                for node in model.walk():
                    if type(node.ops) is NumpyOps:  # not one of its subclasses, which bring their own products
                        node.ops = ops
        return nlp

    return after_pipeline_creation
