"""Gradual unfreezing: a biLM is tuned from the top layer down, one more layer at a time."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from spacy.language import Language

from ...errors import Errors, SettingsError, shown
from ...models.numbers import is_whole
from ...models.shim import bilm_shims
from ..elmo import ElmoPipe

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
    unit: unit of start and every: "epoch" or "step".

    Raises SettingsError if a setting cannot be used.
    """
    if not is_whole(start) or start < 0:
        raise SettingsError(Errors.UNFREEZE_START.format(got=shown(start)))
    if not is_whole(every) or every < 1:
        raise SettingsError(Errors.UNFREEZE_EVERY.format(got=shown(every)))
    if unit not in get_args(Unit):
        raise SettingsError(Errors.UNFREEZE_UNIT.format(got=shown(unit)))

    def before_update(nlp: Language, info: dict[str, Any]) -> None:
        tuned = {name: other for name, other in nlp.components if isinstance(other, ElmoPipe) and not other.frozen}
        if pipe not in tuned:
            raise SettingsError(Errors.UNFREEZE_PIPE.format(got=pipe, expected=", ".join(tuned) or "none"))
        now = info[unit]
        parts = 0 if now < start else 1 + (now - start) // every
        for shim in bilm_shims(tuned[pipe].model):
            shim.unfreeze().train_from_top(parts)

    return before_update
