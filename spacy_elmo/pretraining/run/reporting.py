"""The messages of a run: an interface that commands implement."""

from collections.abc import Sequence
from pathlib import Path

from .facts import RunFacts
from .metrics import EvaluationRow


class Reporter:
    """Is called during a run. This one does nothing; subclasses override the methods of what they show.

    `start` comes first, then `resumed` if the run continues from a checkpoint, then `step` for each update,
    `evaluating` during an evaluation and `evaluated` after it, and `message` at any time. `done` comes at the end if
    there was no error, `close` always.
    """

    def start(self, facts: RunFacts, warnings: Sequence[str]) -> None:
        """Training is about to start: texts and vocabulary are ready.

        facts: what is known about the run.
        warnings: what is unusual about it, though it may be intended.
        """

    def resumed(self, step: int, tokens: int) -> None:
        """The run continues from a checkpoint. step, tokens: of that checkpoint."""

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        """An update was made.

        step: updates so far.
        tokens: tokens of one direction so far, `</S>` counted.
        total_tokens: length of the run.
        loss: smoothed training loss, in nats.
        rate: learning rate.
        tokens_per_second: smoothed speed.
        """

    def evaluating(self, scored: int, sentences: int) -> None:
        """Some held-out sentences were scored, of the selection or, at the end of a run, of all.

        scored: sentences that were scored so far.
        sentences: number that will be scored.
        """

    def evaluated(self, row: EvaluationRow) -> None:
        """The held-out sentences were scored. row: the result."""

    def message(self, text: str) -> None:
        """Something else happened that a person should know. text: a sentence."""

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        """The run has ended, or was stopped by a signal.

        output: its folder.
        best: lowest held-out perplexity; None if there was no evaluation.
        stopped_by: number of the signal; None if the run has ended.
        """

    def close(self) -> None:
        """No other method will be called: the run has ended, also after an error."""
