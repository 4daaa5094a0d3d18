"""A biLM that is tuned layer by layer, from the top."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from spacy.language import Language

from ...errors import Errors, SettingsError, shown
from ...models.shim import bilm_shims
from ..elmo import ElmoPipe

Unit = Literal["epoch", "step"]


def build_gradual_unfreezing(
    pipe: str = "elmo", start: int = 1, every: int = 1, unit: Unit = "epoch"
) -> Callable[[Language, dict[str, Any]], None]:
    """spacy-elmo.GradualUnfreezing.v1, for [training.before_update]: after Howard and Ruder 2018 (ULMFiT).

    pipe: an elmo pipe with frozen = false.
    start: how many epochs or steps the biLM stays as it is, while the tasks learn.
    every: after how many more each next part joins: the top LSTM layer, the layers below it one by one, and last the
        character encoder.
    unit: "epoch" or "step".

    What is trained follows from the epoch or step alone.
    """
    if not isinstance(start, int) or start < 0:
        raise SettingsError(Errors.UNFREEZE_START.format(got=shown(start)))
    if not isinstance(every, int) or every < 1:
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
