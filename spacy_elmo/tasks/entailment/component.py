"""The component `entailment`."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.language import Language
from spacy.pipeline import TextCategorizer
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from thinc.types import Floats2d

from ...errors import AnnotationError, SettingsError, shown
from ..shared import Scorer, default_tok2vec, keep_texts, no_examples_error, texts_of, warn_of_unknown
from . import KEYS
from .model import EntailmentModel

DEFAULT_MODEL = {"@architectures": "spacy-elmo.Entailment.v1", "tok2vec": default_tok2vec(depth=1)}


@Language.factory(
    "entailment",
    assigns=["doc.cats"],
    default_config={"model": DEFAULT_MODEL, "scorer": {"@scorers": "spacy-elmo.entailment_scorer.v1"}},
    default_score_weights={"cats_acc": 1.0, "cats_macro_f": 0.0, "cats_f_per_type": None},
)
class Entailment(TextCategorizer):
    """spaCy's text categorizer of one class for each doc, for docs of two texts.

    A doc has a premise and a hypothesis: the spans `doc.spans["premise"]` and `doc.spans["hypothesis"]`, or its first
    line and the others. The result is in `doc.cats`: a probability for each class. A doc without words in one of the
    two gets none.

    model: spacy-elmo.Entailment.v1, or any model from docs to *Shape:* (docs, classes).
    scorer: function from examples to scores; None: no scores.
    """

    def __init__(self, nlp: Language, name: str, model: EntailmentModel, scorer: Scorer | None) -> None:
        super().__init__(nlp.vocab, model, name, threshold=0.0, scorer=scorer)
        self._unknown: set[str] = set()

    def set_annotations(self, docs: Iterable[Doc], scores: Floats2d) -> None:
        """Write the probabilities to `doc.cats`, and premise and hypothesis to `doc.spans` unless they are there."""
        for doc, row in zip(docs, scores):
            if (pair := texts_of(doc, KEYS)) is not None:
                keep_texts(doc, KEYS, pair)
                doc.cats.update(zip(self.labels, map(float, row)))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
        positive_label: str | None = None,
    ) -> None:
        """Find the classes, and initialise the model.

        labels: the classes; None: those in the examples' `cats`. Labels that were added before stay.

        Raises AnnotationError for fewer than two classes or wrong cats, SettingsError for a model of another number.
        """
        examples = list(get_examples())
        validate_examples(examples, "Entailment.initialize")
        labels = None if labels is None else list(labels)
        classes = {*self.labels, *(labels or ())}
        if labels is None:
            classes.update(*(example.reference.cats for example in examples))
        if not classes:
            raise no_examples_error(self.name, len(examples), "cats, with 1.0 for its class")
        if len(classes) < 2:
            raise AnnotationError(
                f"the component {self.name!r} can't be initialised: there is only one class, {min(classes)}. Expected "
                "two or more: give it examples in whose cats all classes stand, or labels."
            )
        if (nO := self.model.maybe_get_dim("nO")) not in (None, len(classes)):
            raise SettingsError(
                f"the component {self.name!r} can't be initialised: its model is of {nO} classes (nO), but it has "
                f"{len(classes)}: {', '.join(sorted(classes))}. Set model.nO to null, or to {len(classes)}; or make "
                "the component anew."
            )
        super().initialize(lambda: examples, nlp=nlp, labels=labels)

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, Any]:  # spaCy's says float
        """Return the mean squared difference, as spaCy's text categorizer does, and the gradient of the cross-entropy.

        Examples without a known class, or without words in premise or hypothesis, do not count.
        """
        examples = list(examples)
        truths = [{label for label, value in eg.reference.cats.items() if value == 1.0} for eg in examples]
        warn_of_unknown(self.name, set().union(*truths), self.labels, self._unknown)
        counted = [
            number
            for number, (example, truth) in enumerate(zip(examples, truths))
            if truth.intersection(self.labels) and texts_of(example.predicted, KEYS) is not None
        ]
        gradient: Any = self.model.ops.alloc2f(*scores.shape)
        if not counted:
            return 0.0, gradient
        loss, difference = super().get_loss([examples[number] for number in counted], scores[counted])
        gradient[counted] = difference / len(counted)
        return loss, gradient

    def _validate_categories(self, examples: Iterable[Example]) -> None:
        """Raise AnnotationError if cats are wrong. spaCy's own check, in whose place it is, speaks of its `textcat`."""
        for example in examples:
            values = list(example.reference.cats.values())
            if values.count(1.0) > 1 or any(value not in (0.0, 1.0) for value in values):
                got, text = shown(example.reference.cats), shown(example.reference.text)
                raise AnnotationError(
                    f"the doc {text} has the cats {got}, from which the component {self.name!r} can't learn. "
                    "Expected 1.0 for its class, and 0.0 for each of the others."
                )
