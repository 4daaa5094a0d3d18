"""The learning rate over a run."""

import math

from ..settings.sections import ScheduleSettings


def rate_at(schedule: ScheduleSettings, step: int, total: int) -> float:
    """Return the factor of the learning rate in an update.

    The factor rises linearly over `warmup_steps` updates to 1. Over the last `decay_share` of the run it falls to
    `final_share`, linearly or along half a cosine; it stays at 1 if the schedule is constant.

    schedule: the settings.
    step: number of the update, from 0 to total - 1.
    total: number of updates of the run.
    """
    rise = min(1.0, (step + 1) / max(1, schedule.warmup_steps))
    if schedule.kind == "constant":
        return rise
    left = min(1.0, max(0.0, (total - step) / max(1.0, schedule.decay_share * total)))
    if schedule.kind == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2
    return rise * (schedule.final_share + (1 - schedule.final_share) * left)
