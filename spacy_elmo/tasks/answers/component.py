"""The component `answers`."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples
from thinc.types import Floats2d
from torch import Tensor

from ...errors import AnnotationError, check_whole, shown
from ..shared import (
    Scorer,
    aligned,
    default_tok2vec,
    keep_texts,
    loss_of,
    mean_of,
    no_examples_error,
    set_getter,
    texts_of,
    warn_of_lost,
)
from . import ANSWER, KEYS, has_answers
from .model import AnswersModel

Floats = NDArray[np.float32]
# of an answer: first token in the context, token after its last one, probability
Best = tuple[int, int, float]
SCORES = "scores"  # attribute of the span group
_SAMPLE = 10  # docs with which the model is initialised
DEFAULT_MODEL = {"@architectures": "spacy-elmo.Answers.v1", "tok2vec": default_tok2vec(depth=1)}


@Language.factory(
    "answers",
    assigns=["doc.spans", "span._.answer_score"],
    default_config={
        "model": DEFAULT_MODEL,
        "n_best": 3,
        "longest_answer": 17,
        "scorer": {"@scorers": "spacy-elmo.answers_scorer.v1"},
    },
    default_score_weights={"answers_f1": 1.0, "answers_em": 0.0},
)
class Answers(TrainablePipe):
    """Finds the answer to a question in a paragraph.

    A doc has the question in `doc.spans["question"]` and the paragraph in `doc.spans["context"]`, one span each; or its
    first line is the question, and the other lines are the paragraph. The answers go to `doc.spans["answer"]`, best
    first, with their probabilities in `doc.spans["answer"].attrs["scores"]` and in `span._.answer_score`. There is
    always an answer, also if the paragraph has none, but for a doc without a question or a paragraph.

    n_best: number of answers for each doc, at most.
    longest_answer: number of tokens in an answer, at most.

    Raises SettingsError if n_best or longest_answer is below 1, or if something else has set `span._.answer_score`.
    """

    def __init__(
        self, nlp: Language, name: str, model: AnswersModel, n_best: int, longest_answer: int, scorer: Scorer | None
    ) -> None:
        check_whole(n_best=n_best, longest_answer=longest_answer)
        super().__init__(nlp.vocab, model, name)
        self.n_best, self.longest_answer, self.scorer = n_best, longest_answer, scorer
        set_getter(Span, "answer_score", answer_score)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Initialise the model, with examples some of which have right answers; else AnnotationError is raised."""
        examples = list(get_examples())
        validate_examples(examples, "Answers.initialize")
        docs = [example.reference for example in examples if has_answers(example.reference)]
        if not docs:
            expected = f"a question, a context and right answers in doc.spans[{ANSWER!r}]"
            raise no_examples_error(self.name, len(examples), expected)
        sizes = [len(span) for doc in docs for span in doc.spans[ANSWER]]
        warn_of_lost(self.name, "right answers", sizes, "longest_answer", self.longest_answer)
        self.model.initialize(X=docs[:_SAMPLE])

    def predict(self, docs: Iterable[Doc]) -> list[list[Best]]:
        """Return the best answers of each doc: start and end in its context, and probability."""
        docs = list(docs)
        parts = [texts_of(doc, KEYS) for doc in docs]
        answers: list[list[Best]] = [[] for _ in docs]
        if any(parts):
            for number, scores in enumerate(self.model.predict(docs)):
                if (found := parts[number]) is not None:
                    is_word = docs[number].to_array(IS_SPACE)[found[1].start : found[1].end] == 0
                    as_numpy = self.model.ops.to_numpy(scores)
                    answers[number] = best_spans(as_numpy, is_word, self.longest_answer, self.n_best)
        return answers

    def set_annotations(self, docs: Iterable[Doc], answers: Sequence[Sequence[Best]]) -> None:
        """Write what `predict` returned to the docs, and question and context if they are only lines so far."""
        for doc, found in zip(docs, answers):
            parts = texts_of(doc, KEYS)
            spans = [] if parts is None else [parts[1][start:end] for start, end, _ in found]
            keep_texts(doc, KEYS, parts or ())
            scores = [score for *_, score in found]
            doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=spans, attrs={SCORES: scores})

    def get_loss(self, examples: Iterable[Example], scores: Sequence[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Return the mean over the examples of -log p(start) - log p(end), and its gradient.

        If an example has several right answers, the probabilities of their starts are added, and those of their ends.
        """
        targets = [targets_of(example) for example in examples]

        def loss(*tensors: Tensor) -> Tensor:
            known = [(x.log_softmax(0), x.new_tensor(one)) for x, one in zip(tensors, targets) if one is not None]
            return -mean_of([logs.masked_fill(right == 0, -torch.inf).logsumexp(0).sum() for logs, right in known])

        return loss_of(loss, *scores)


def answer_score(span: Span) -> float | None:
    """Return the probability of an answer; None if the span is none of its doc's answers."""
    group = span.doc.spans.get(ANSWER)
    if group is not None:
        for answer, score in zip(group, group.attrs.get(SCORES, ())):
            if (answer.start, answer.end) == (span.start, span.end):
                return float(score)
    return None


def best_spans(scores: Floats, allowed: NDArray[np.bool_], longest: int, count: int) -> list[Best]:
    """Return the spans with the highest p(start) p(end), best first. scores: (tokens, 2). allowed: starts and ends."""
    if not allowed.any():
        return []
    shifted = np.where(allowed, scores.T.astype(np.float64), -np.inf)
    shifted -= shifted.max(axis=1, keepdims=True)
    starts, ends = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    longest = min(longest, len(ends))
    padded = np.concatenate([ends, np.full(longest - 1, -np.inf)])
    joint = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)  # (start, length - 1)
    flat = joint.ravel()
    chosen = np.argsort(-flat, kind="stable")[: min(count, int(np.isfinite(flat).sum()))].tolist()
    return [(i // longest, i // longest + i % longest + 1, float(np.exp(flat[i]))) for i in chosen]


def targets_of(example: Example) -> Floats | None:
    """Return 1.0 where right answers start and end in the predicted doc's context, (tokens, 2); None: nowhere."""
    if not has_answers(example.reference):
        return None
    parts = texts_of(example.predicted, KEYS)
    if parts is None:
        raise AnnotationError(
            f"the predicted doc {shown(example.predicted.text)} has no question or no context, but its reference has "
            "right answers. Expected the same text: Example(make_question(nlp, question, context), reference)."
        )
    context = parts[1]
    targets = np.zeros((len(context), 2), np.float32)
    for span in aligned(example, example.reference.spans[ANSWER]):
        start, last = span.start - context.start, span.end - 1 - context.start
        if 0 <= start <= last < len(targets):
            targets[start, 0] = targets[last, 1] = 1.0
    return targets if targets.any() else None
