"""The component `entailment` and its factory."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.language import Language
from spacy.pipeline import TextCategorizer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.types import Floats2d

from ...errors import AnnotationError, Errors
from .model import EntailmentModel
from .pairs import KEYS, pair_of

Scorer = Callable[..., dict[str, Any]]

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.Entailment.v1",
    "hidden_width": 128,
    "longest": 1000,
    "nO": None,
    "tok2vec": {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 96,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
            "rows": [5000, 1000, 2500, 2500],
            "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 96,
            "window_size": 1,
            "maxout_pieces": 3,
            "depth": 1,
        },
    },
}


class EntailmentPipe(TextCategorizer):
    """spaCy's text categorizer of one class for each doc, for docs of two texts.

    A doc has a premise and a hypothesis: the spans `doc.spans["premise"]` and `doc.spans["hypothesis"]`, or its first
    line and the others. The result is in `doc.cats`: a probability for each class. A doc without words in one of the
    two gets none.

    vocab: the pipeline's vocabulary.
    model: spacy-elmo.Entailment.v1, or any model from docs to *Shape:* (docs, classes).
    name: name of the component.
    scorer: function from examples to scores; None: no scores.
    """

    def __init__(
        self, vocab: Vocab, model: EntailmentModel, name: str = "entailment", *, scorer: Scorer | None = None
    ) -> None:
        super().__init__(vocab, model, name, threshold=0.0, scorer=scorer)

    def set_annotations(self, docs: Iterable[Doc], scores: Floats2d) -> None:
        """Write the probabilities to `doc.cats`, and premise and hypothesis to `doc.spans` unless they are there.

        docs: the docs.
        scores: what `predict` returned for them, *Shape:* (docs, classes).
        """
        for doc, row in zip(docs, scores):
            pair = pair_of(doc)
            if pair is None:
                continue
            for key, span in zip(KEYS, pair):
                if key not in doc.spans:
                    doc.spans[key] = [span]
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

        get_examples: function that returns examples.
        nlp: the pipeline.
        labels: the classes, as `spacy init labels` writes them; None: those in the examples' `cats`.
        positive_label: not used; spaCy's text categorizer has it.

        Raises AnnotationError if no example has cats, or one has no pair.
        """
        examples = list(get_examples())
        if not any(eg.reference.cats for eg in examples):
            expected = "cats, with 1.0 for its class"
            raise AnnotationError(Errors.TASK_NO_EXAMPLES.format(name=self.name, got=len(examples), expected=expected))
        super().initialize(lambda: examples, nlp=nlp, labels=labels)

    def get_loss(self, examples: Iterable[Example], scores: Any) -> tuple[float, Any]:  # spaCy's says float
        """Return the mean squared difference from the truth, as spaCy's text categorizer does, and the gradient.

        The gradient is that of the mean cross-entropy. Examples without a class, and those without words in premise or
        hypothesis, do not count.

        examples: the examples.
        scores: probabilities, *Shape:* (examples, classes).
        """
        examples = list(examples)
        loss, difference = super().get_loss(examples, scores)
        counted = [1.0 in eg.reference.cats.values() and pair_of(eg.predicted) is not None for eg in examples]
        weights = self.model.ops.asarray2f([[1.0 / max(1, sum(counted)) if count else 0.0] for count in counted])
        return loss, difference * weights


@Language.factory(
    "entailment",
    assigns=["doc.cats"],
    default_config={"model": DEFAULT_MODEL, "scorer": {"@scorers": "spacy-elmo.entailment_scorer.v1"}},
    default_score_weights={"cats_acc": 1.0, "cats_macro_f": 0.0, "cats_f_per_type": None},
)
def make_entailment(nlp: Language, name: str, model: EntailmentModel, scorer: Scorer | None) -> EntailmentPipe:
    """Create the component `entailment`.

    nlp: the pipeline.
    name: name of the component.
    model: spacy-elmo.Entailment.v1, or any model from docs to probabilities of the classes, *Shape:* (docs, classes).
    scorer: function from examples to scores; null: no scores.
    """
    return EntailmentPipe(nlp.vocab, model, name, scorer=scorer)
