"""Checks of the component's settings."""

import gc
from collections.abc import Sequence
from typing import Literal, Protocol, get_args
from weakref import WeakValueDictionary

from ..errors import Errors, SettingsError, shown
from ..models.numbers import is_number, is_whole
from ..models.types import BiLMModel

Store = Literal["layers", "layers_float16", "mix", "none"]


class HasModel(Protocol):
    """What an elmo pipe is to `refuse_shared_model`."""

    name: str
    model: BiLMModel


# The pipe of each model, by id(model). A copy of a model is another model. A pipe holds its model, so the id is not of
# another object as long as the pipe exists.
_PIPES: WeakValueDictionary[int, HasModel] = WeakValueDictionary()


def refuse_shared_model(pipe: HasModel) -> None:
    """Raise SettingsError if another elmo pipe has the same model: the model has the settings of one pipe.

    pipe: the pipe that is made.
    """

    def is_shared() -> bool:
        other = _PIPES.get(id(pipe.model))
        return other is not None and other is not pipe and other.model is pipe.model

    if is_shared():
        gc.collect()  # nobody may hold that pipe any more
    if is_shared():
        raise SettingsError(Errors.MODEL_SHARED.format(name=pipe.name, other=_PIPES[id(pipe.model)].name))
    _PIPES[id(pipe.model)] = pipe


def check_settings(
    model: BiLMModel,
    frozen: bool,
    max_batch_tokens: int,
    store: str,
    set_vectors: bool,
    scalar_mix_parameters: Sequence[float] | None,
) -> None:
    """Raise SettingsError if a setting of the factory `elmo` cannot be used.

    model: must not be stateful if it is tuned.
    frozen: whether the biLM is not tuned.
    max_batch_tokens: a whole number from 1 on.
    store: one of Store.
    set_vectors: must be false if nothing is stored.
    scalar_mix_parameters: finite numbers, or None.
    """
    if not frozen and "settings" in model.attrs and model.attrs["settings"].stateful:
        raise SettingsError(Errors.STATEFUL_TUNED)
    if not is_whole(max_batch_tokens):
        raise SettingsError(Errors.WHOLE_NUMBER.format(name="max_batch_tokens", got=max_batch_tokens))
    if max_batch_tokens < 1:
        raise SettingsError(Errors.MAX_BATCH_TOKENS.format(got=max_batch_tokens))
    if store not in get_args(Store):
        raise SettingsError(Errors.STORE.format(got=store, expected=", ".join(get_args(Store))))
    if store == "none" and set_vectors:
        raise SettingsError(Errors.STORE_NO_VECTORS)
    if scalar_mix_parameters is not None and not all(map(is_number, scalar_mix_parameters)):
        raise SettingsError(Errors.MIX_FINITE.format(got=shown(scalar_mix_parameters)))


def check_training_settings(learn_rate_factor: float, cache_mb: int) -> None:
    """Raise SettingsError if a setting of the factory `elmo` for training cannot be used.

    learn_rate_factor: a finite number above 0.
    cache_mb: a whole number from 0 on.
    """
    if not (is_number(learn_rate_factor) and learn_rate_factor > 0):
        raise SettingsError(Errors.FACTOR.format(got=shown(learn_rate_factor)))
    if not is_whole(cache_mb) or cache_mb < 0:
        raise SettingsError(Errors.CACHE_MB.format(got=shown(cache_mb)))
