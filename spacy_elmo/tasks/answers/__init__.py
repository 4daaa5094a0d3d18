"""Answers to questions: the spans of a paragraph that answer a question."""

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral

from spacy.language import Language
from spacy.tokens import Doc, SpanGroup

from ...errors import AnnotationError, shown
from ..shared import make_doc, texts_of

__all__ = ["make_question", "make_questions"]

KEYS = ("question", "context")  # of doc.spans
ANSWER = "answer"
TEXTS = "texts"  # attribute of the span group: the answers as they were given, which may end inside a token


def make_question(nlp: Language, question: str, context: str, answers: Sequence[tuple[int, str]] | None = None) -> Doc:
    """Return a doc of a question and its paragraph, with `doc.spans["question"]` and `doc.spans["context"]`.

    The components of nlp do not run: `nlp(make_question(nlp, ...))` does both. Line breaks of the question become
    blanks.

    answers: right answers, for training and scoring: the index of the first character in `context`, and the text. They
        go to `doc.spans["answer"]`, as spans of whole tokens. None: not known.

    Raises AnnotationError if a text is no string, if answers is empty, if it is not but the question is blank, or if
    the context does not have an answer at its index.
    """
    doc = make_doc(nlp, (question, context), KEYS)
    if answers is None:
        return doc
    if not isinstance(answers, (list, tuple)) or not all(map(_is_answer, answers)):
        raise AnnotationError(
            f"the answers to the question {shown(question)} are {shown(answers)}. Expected a list of pairs: the place "
            "of the answer's first character in the context, and its text, such as [(14, 'Bonn')]."
        )
    first = len(question) + 1
    spans = []
    for start, text in answers:
        if not text.strip() or start < 0 or context[start : start + len(text)] != text:
            raise AnnotationError(
                f"the answer {shown(text)} does not begin at character {start} of the context of the question "
                f"{shown(question)}. Expected the index of its first character there, and the text that stands there."
            )
        span = doc.char_span(first + start, first + start + len(text), alignment_mode="expand")
        assert span is not None  # an answer has words
        spans.append(span)
    doc.spans[ANSWER] = SpanGroup(doc, spans=spans, attrs={TEXTS: [text for _, text in answers]})
    has_answers(doc)
    return doc


def _is_answer(value: object) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and isinstance(value[0], Integral) and isinstance(value[1], str)  # type: ignore[index]


def has_answers(doc: Doc) -> bool:
    """Whether a doc has right answers to learn from. Wrong ones are an error, and so is a question without words."""
    if ANSWER not in doc.spans:
        return False
    parts = texts_of(doc, KEYS)
    if parts is None:
        raise AnnotationError(
            f"the doc {shown(doc.text)} has right answers, but its question or its context has no words. Expected "
            "words in both."
        )
    if not len(doc.spans[ANSWER]):
        raise AnnotationError(
            f"the doc {shown(doc.text)} has an empty list of right answers. Expected one or more: the component always "
            'answers, so leave questions without an answer out; or, if it is not known, leave doc.spans["answer"] out '
            "(None for make_question)."
        )
    for span in doc.spans[ANSWER]:
        if not len(span) or not parts[1].start <= span.start <= span.end <= parts[1].end:
            raise AnnotationError(
                f"the doc {shown(doc.text)} has the right answer {shown(span.text)}, which is not in its context. "
                'Expected it in the span in doc.spans["context"], or after the first line of a doc without this group.'
            )
    return True


def make_questions(nlp: Language, pairs: Iterable[tuple[str, str]]) -> Iterator[Doc]:
    """Return a doc for each pair of question and paragraph: for `nlp.pipe(make_questions(nlp, pairs))`."""
    return (make_question(nlp, question, context) for question, context in pairs)
