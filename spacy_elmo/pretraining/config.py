"""Settings of a pretraining run."""

import math
from dataclasses import dataclass, fields
from typing import NoReturn

from ..errors import Errors, SettingsError
from .corpus import SPECIAL

_REAL = ("zero_state_share", "learning_rate", "beta1", "beta2", "clip_norm", "decay_share")


@dataclass(frozen=True)
class PretrainConfig:
    """Settings that the embedded biLM was trained with are the defaults; all counts are of tokens of one direction.

    n_words: output vocabulary, `<S>`, `</S>` and `<UNK>` included.
    streams, steps: rows of a batch, and steps of truncated back-propagation.
    zero_state_share: share of the streams in which each sentence starts from the zero state.
    negatives: sampled words, shared by a batch and both directions.
    learning_rate, beta1, beta2, clip_norm: Adam, global gradient norm.
    warmup_steps: linear rise of the learning rate; decay_share: linear fall to 0 over this last share of the tokens.
    total_tokens: length of the run, `</S>` counted, as one prediction a direction stands behind each.
    workers: threads; each takes an equal share of the streams.
    evaluate_every, checkpoint_every: steps between them; evaluation_sentences: held-out sentences used on the way.
    """

    n_words: int = 50_000
    streams: int = 128
    steps: int = 20
    zero_state_share: float = 0.75
    negatives: int = 2_048
    learning_rate: float = 4e-3
    beta1: float = 0.9
    beta2: float = 0.99
    clip_norm: float = 1.0
    warmup_steps: int = 300
    decay_share: float = 0.47
    total_tokens: int = 15_300_000
    workers: int = 2
    seed: int = 0
    evaluate_every: int = 400
    checkpoint_every: int = 200
    evaluation_sentences: int = 1_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.name not in _REAL
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                self._refuse(field.name, "a whole number" if whole else "a number")
            if not 0 <= value < math.inf:
                self._refuse(field.name, "0 or more")
        for name in (
            "n_words",
            "streams",
            "steps",
            "negatives",
            "workers",
            "evaluate_every",
            "checkpoint_every",
            "evaluation_sentences",
        ):
            if getattr(self, name) < 1:
                self._refuse(name, "1 or more")
        for name in ("zero_state_share", "decay_share"):
            if getattr(self, name) > 1:
                self._refuse(name, "0 to 1")
        for name in ("beta1", "beta2"):
            if getattr(self, name) >= 1:
                self._refuse(name, "0 or more, and less than 1")
        for name in ("clip_norm", "learning_rate"):
            if getattr(self, name) == 0:
                self._refuse(name, "more than 0")
        if self.seed >= 2**63:
            self._refuse("seed", "less than 2 ** 63")
        if self.streams % self.workers:
            self._refuse("streams", f"a multiple of training.workers, {self.workers}")
        if self.n_words < len(SPECIAL):
            self._refuse("n_words", f"at least {len(SPECIAL)}, for {', '.join(SPECIAL)}")
        if self.negatives > self.n_words:
            self._refuse("negatives", f"at most training.n_words, {self.n_words}")

    def _refuse(self, name: str, expected: str) -> NoReturn:
        raise SettingsError(Errors.CONFIG_NUMBER.format(name=name, got=getattr(self, name), expected=expected))

    def learning_rate_at(self, step: int) -> float:
        """The rate of the step with this number, from 0: linear warmup, constant, linear decay."""
        total = max(1, self.total_tokens // (self.streams * self.steps))
        rise = min(1.0, (step + 1) / max(1, self.warmup_steps))
        fall = min(1.0, max(0.0, (total - step) / max(1.0, self.decay_share * total)))
        return self.learning_rate * rise * fall
