"""How many senses were found."""

from __future__ import annotations

from typing import NamedTuple


class SenseScore(NamedTuple):
    """Counts of instances.

    right: those whose answer is one of their senses.
    answered: those that have an answer.
    instances: all.
    """

    right: int = 0
    answered: int = 0
    instances: int = 0

    @property
    def precision(self) -> float:
        """Share of the answers that are right; 0 if there are none."""
        return self.right / self.answered if self.answered else 0.0

    @property
    def recall(self) -> float:
        """Share of the instances whose answer is right."""
        return self.right / self.instances if self.instances else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; the accuracy if all are answered."""
        return 2 * self.right / (self.answered + self.instances) if self.right else 0.0

    def plus(self, answer: str | None, senses: tuple[str, ...]) -> SenseScore:
        """Return the score with one more instance. answer: None if there is none. senses: those that are right."""
        return SenseScore(self.right + (answer in senses), self.answered + (answer is not None), self.instances + 1)


def joined(scores: list[SenseScore]) -> SenseScore:
    """Return the score of several test sets as one."""
    return SenseScore(*map(sum, zip(*scores)))
