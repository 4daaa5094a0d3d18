"""What a run tells of itself on the way."""

from collections.abc import Sequence
from pathlib import Path

from .facts import RunFacts
from .metrics import EvaluationRow


class Reporter:
    """Is told of a run as it goes. This one keeps it to itself; others override what they show."""

    def start(self, facts: RunFacts, warnings: Sequence[str]) -> None:
        """Texts and vocabulary are ready; training begins, or goes on.

        warnings: what is odd about the run, though it can be meant.
        """

    def resumed(self, step: int, tokens: int) -> None:
        """Going on from the checkpoint of this step; after start."""

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        """An update was made. loss: smoothed loss of training, which is no perplexity; rate: learning rate."""

    def evaluated(self, row: EvaluationRow) -> None:
        """The held-out sentences were scored."""

    def message(self, text: str) -> None:
        """Anything else that a person should know."""

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        """The run has ended, or was stopped by this signal.

        output: its folder; best: lowest held-out perplexity on the way, None where there was no evaluation.
        """

    def close(self) -> None:
        """Nothing more is told; after done, or where an error ends the run."""
