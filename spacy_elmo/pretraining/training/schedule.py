"""The learning rate over a run."""

import math

from ..settings.sections import ScheduleSettings


def rate_at(schedule: ScheduleSettings, step: int, total: int) -> float:
    """The share of the learning rate in the update with this number, 0 to total - 1: linear warmup, constant, then the
    fall over the last decay_share of the run to final_share, linear or by half a cosine.
    """
    rise = min(1.0, (step + 1) / max(1, schedule.warmup_steps))
    if schedule.kind == "constant":
        return rise
    left = min(1.0, max(0.0, (total - step) / max(1.0, schedule.decay_share * total)))
    if schedule.kind == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2
    return rise * (schedule.final_share + (1 - schedule.final_share) * left)
