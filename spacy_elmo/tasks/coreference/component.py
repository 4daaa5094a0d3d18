"""The component `coreference`."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.tokens.underscore import Underscore
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab

from ...errors import AnnotationError, Errors, SettingsError, shown
from ..shared.configured_pipe import ConfiguredPipe
from .annotations import PREFIX, annotate, clusters_of, register
from .decoding import clusters_from
from .examples import gold_mentions, loss_of, targets_of
from .model import CoreferenceModel
from .scoring import Scores

Clusters = list[list[tuple[int, int]]]
SAMPLE = 10  # docs that the model is initialised with


class Coreference(ConfiguredPipe):
    """Finds mentions, and clusters of those that speak of the same thing.

    vocab: the pipeline's vocabulary.
    model: spacy-elmo.Coreference.v1.
    name: name of the component.
    prefix: the clusters are the span groups prefix_1, prefix_2 ... of a doc.
    singletons: whether a mention with which no other one corefers is annotated, as a cluster of its own.
    scorer: function from examples to scores.

    Raises SettingsError if prefix can't be used, or if something else has set extension attributes of these names.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: CoreferenceModel,
        name: str = "coreference",
        *,
        prefix: str = PREFIX,
        singletons: bool = True,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        if not prefix.isidentifier():
            raise SettingsError(Errors.COREF_PREFIX.format(got=shown(prefix)))
        if keyword.iskeyword(prefix) or hasattr(Underscore, prefix):
            raise SettingsError(Errors.COREF_PREFIX_RESERVED.format(got=shown(prefix)))
        super().__init__(vocab, model, name)
        self.configure(prefix=prefix, singletons=singletons)
        self.scorer = scorer
        register(prefix)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Build the model.

        get_examples: function that returns examples, one or more of them with clusters.
        nlp: the pipeline.

        Raises AnnotationError if no example has clusters, or if one has wrong ones.
        """
        validate_get_examples(get_examples, "Coreference.initialize")
        examples = list(get_examples())
        if not sum(len(clusters_of(example.reference, self.cfg["prefix"])) for example in examples):
            expected = f"span groups {self.cfg['prefix']}_1, {self.cfg['prefix']}_2 and so on"
            raise AnnotationError(Errors.TASK_NO_EXAMPLES.format(name=self.name, got=len(examples), expected=expected))
        self.model.initialize(X=[example.reference for example in examples[:SAMPLE]])

    def predict(self, docs: Iterable[Doc]) -> list[Clusters]:
        """Return the clusters of each doc, as bounds of mentions."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        scores: list[Scores] = self.model.predict(docs)
        return [clusters_from(one, singletons=self.cfg["singletons"]) for one in scores]

    def set_annotations(self, docs: Iterable[Doc], scores: list[Clusters]) -> None:
        """Write clusters to docs, in the place of those that they have. scores: from `predict`."""
        for doc, clusters in zip(docs, scores):
            annotate(doc, clusters, self.cfg["prefix"])

    def get_loss(self, examples: Iterable[Example], scores: list[Scores]) -> tuple[float, list[Scores]]:
        """Return the loss and the gradient of the scores. scores: of the model in training.

        Raises AnnotationError if a reference has wrong clusters.
        """
        examples = list(examples)
        validate_examples(examples, "Coreference.get_loss")
        gold = [gold_mentions(example, self.cfg["prefix"]) for example in examples]
        pairs = [loss_of(one, targets_of(one, mentions)) for one, mentions in zip(scores, gold)]
        return sum(loss for loss, _ in pairs), [gradient for _, gradient in pairs]
