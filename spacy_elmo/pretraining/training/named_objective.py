"""The objective that a run's settings name."""

from ...errors import Errors, SettingsError
from ...modules.softmax.adaptive import AdaptiveSoftmax
from ..model.language_model import LanguageModel
from ..settings.sections import TrainingSettings
from .adaptive_objective import AdaptiveObjective
from .objective import Objective
from .row_objective import RowObjective


def objective_of(settings: TrainingSettings, model: LanguageModel) -> Objective:
    """Return what computes the loss of a model and updates its softmax.

    settings: kind of the softmax, its negatives, and the optimizer.
    model: its softmax is changed in place.

    Raises SettingsError if there are more negatives than words.
    """
    softmax, n_words = settings.softmax, len(model.vocabulary)
    if isinstance(model.softmax, AdaptiveSoftmax):
        return AdaptiveObjective(model.softmax, settings.optimizer)
    if softmax.kind == "sampled" and softmax.negatives > n_words:
        raise SettingsError(Errors.MANY_NEGATIVES.format(got=softmax.negatives, n_words=n_words))
    negatives = softmax.negatives if softmax.kind == "sampled" else None
    return RowObjective(model.softmax, negatives, settings.optimizer)
