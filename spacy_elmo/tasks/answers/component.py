"""The component `answers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.types import Floats2d

from ...errors import AnnotationError, Errors
from ..shared.configured_pipe import ConfiguredPipe
from ..shared.extensions import set_getter
from ..shared.sizes import check_sizes
from .best_spans import Best, best_spans
from .examples import check_answers, targets_of
from .loss import pointer_loss
from .model import AnswersModel
from .questions import ANSWER, CONTEXT, QUESTION, question_of

SCORES = "scores"  # attribute of the span group
_SAMPLE = 10  # docs with which the model is initialised


class Answers(ConfiguredPipe):
    """Finds the answer to a question in a paragraph.

    A doc has the question in `doc.spans["question"]` and the paragraph in `doc.spans["context"]`, one span each; or its
    first line is the question, and the other lines are the paragraph. The answers go to `doc.spans["answer"]`, best
    first, with their probabilities in `doc.spans["answer"].attrs["scores"]` and in `span._.answer_score`. There is
    always an answer, also if the paragraph has none, but for a doc without a question or a paragraph.

    vocab: the pipeline's vocabulary.
    model: spacy-elmo.Answers.v1, or another model of the same type.
    name: name of the component.
    n_best: number of answers for each doc, at most.
    longest_answer: number of tokens in an answer, at most.
    scorer: the scorer; null: none.

    Raises SettingsError if n_best or longest_answer is below 1, or if something else has set `span._.answer_score`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: AnswersModel,
        name: str = "answers",
        *,
        n_best: int = 3,
        longest_answer: int = 17,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        check_sizes(n_best=n_best, longest_answer=longest_answer)
        self.vocab, self.model, self.name, self.scorer = vocab, model, name, scorer
        self.configure(n_best=n_best, longest_answer=longest_answer)
        set_getter(Span, "answer_score", answer_score)

    def predict(self, docs: Iterable[Doc]) -> list[list[Best]]:
        """Return the best answers of each doc, as indices in its context.

        docs: the docs.

        Raises AnnotationError if a doc has no parts that could be question and context.
        """
        docs = list(docs)
        if all(question_of(doc) is None for doc in docs):
            return [[] for _ in docs]
        return [self._best(doc, scores) for doc, scores in zip(docs, self.model.predict(docs))]

    def _best(self, doc: Doc, scores: Floats2d) -> list[Best]:
        parts = question_of(doc)
        if parts is None:
            return []
        is_word = doc.to_array(IS_SPACE)[parts.context.start : parts.context.end] == 0
        numbers = self.model.ops.to_numpy(scores)
        return best_spans(numbers, is_word, self.cfg["longest_answer"], self.cfg["n_best"])

    def set_annotations(self, docs: Iterable[Doc], answers: Sequence[Sequence[Best]]) -> None:
        """Write the answers to the docs, and question and context if they are only lines so far.

        docs: the docs.
        answers: what `predict` returned for them.
        """
        for doc, found in zip(docs, answers):
            parts = question_of(doc)
            spans = []
            if parts is not None:
                start = parts.context.start
                spans = [doc[start + best.start : start + best.end] for best in found]
                for name, span in ((QUESTION, parts.question), (CONTEXT, parts.context)):
                    if name not in doc.spans:
                        doc.spans[name] = [span]
            scores = [best.score for best in found]
            doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=spans, attrs={SCORES: scores})

    def get_loss(self, examples: Iterable[Example], scores: Sequence[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Return the mean over the examples of -log p(start) - log p(end), and its gradient.

        examples: the examples. If one has several right answers, the probabilities of their starts are added, and
            those of their ends.
        scores: what the model returned for their predicted docs, *Shape:* (context tokens, 2) each.

        Raises AnnotationError if the annotations of an example are wrong.
        """
        examples = list(examples)
        validate_examples(examples, "Answers.get_loss")
        targets = [targets_of(example) for example in examples]
        return pointer_loss(self.model.ops, scores, targets)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Initialise the model.

        get_examples: returns examples, of which some have right answers.
        nlp: ignored.

        Raises AnnotationError if no example has right answers, or their annotations are wrong.
        """
        validate_get_examples(get_examples, "Answers.initialize")
        examples = list(get_examples())
        sample = [example.reference for example in examples if check_answers(example.reference)][:_SAMPLE]
        if not sample:
            expected = f"a question, a context and right answers in doc.spans[{ANSWER!r}]"
            raise AnnotationError(Errors.TASK_NO_EXAMPLES.format(name=self.name, got=len(examples), expected=expected))
        self.model.initialize(X=sample)


def answer_score(span: Span) -> float | None:
    """Return the probability of an answer, *0 to 1*; None if the span is none of its doc's answers."""
    group = span.doc.spans.get(ANSWER)
    if group is not None:
        for answer, score in zip(group, group.attrs.get(SCORES, ())):
            if (answer.start, answer.end) == (span.start, span.end):
                return float(score)
    return None
