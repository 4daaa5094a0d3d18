"""The learning rate, compared with values that were computed by hand."""

import pytest

from spacy_elmo.pretraining.config import ScheduleSettings
from spacy_elmo.pretraining.optimizers import rate_at


@pytest.mark.parametrize(
    ("kind", "final", "expected"),
    [
        # 100 updates, warmup 4, the fall over the last 40
        ("constant", 0.5, {0: 0.25, 1: 0.5, 3: 1.0, 59: 1.0, 60: 1.0, 80: 1.0, 99: 1.0}),
        ("linear", 0.0, {0: 0.25, 3: 1.0, 59: 1.0, 60: 1.0, 61: 39 / 40, 80: 0.5, 99: 1 / 40}),
        ("linear", 0.2, {60: 1.0, 80: 0.6, 99: 0.2 + 0.8 / 40}),
        # half a cosine: cos(60 degrees) and cos(120 degrees) are plus and minus a half
        ("cosine", 0.0, {60: 1.0, 80: 0.5, 90: (1 - 0.5**0.5) / 2}),
    ],
)
def test_rate(kind: str, final: float, expected: dict[int, float]) -> None:
    schedule = ScheduleSettings(kind=kind, warmup_steps=4, decay_share=0.4, final_share=final)
    assert {step: rate_at(schedule, step, 100) for step in expected} == pytest.approx(expected)


def test_without_warmup_and_fall() -> None:
    schedule = ScheduleSettings(kind="linear", warmup_steps=0, decay_share=0.0)
    assert [rate_at(schedule, step, 3) for step in range(3)] == [1.0, 1.0, 1.0]
