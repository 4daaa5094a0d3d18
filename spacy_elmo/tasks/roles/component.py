"""The component `semantic_roles`."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Optimizer, set_dropout_rate
from thinc.types import Floats2d

from ...errors import AnnotationError, Errors, SettingsError, shown
from ...models.numbers import is_number
from ..shared.configured_pipe import ConfiguredPipe
from ..shared.sizes import check_sizes
from ..shared.unknown_labels import warn_of_unknown
from .annotations import annotate, given_predicates
from .loss import loss_of, probabilities
from .model import MAX_BATCH_TOKENS, RoleModel, RoleScores
from .rows import Row, batches_of, rows_of
from .tags import spans_of
from .targets import labels_in, targets_of
from .viterbi import best_tags

Roles = dict[int, list[tuple[int, int, str]]]


class SemanticRoles(ConfiguredPipe):
    """Labels the roles of predicates, and finds the predicates if nobody gave them.

    vocab: of the pipeline.
    model: spacy-elmo.SemanticRoles.v1.
    name: of the component.
    find_predicates: whether the component finds the predicates of docs without `doc.spans["predicates"]`. If not, such
        docs are an error.
    threshold: probability from which on a token is a predicate.
    reach: number of tokens on each side of a predicate among which its arguments are looked for, at most.
    scorer: function of examples that returns scores.

    Raises SettingsError if a setting cannot be used.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: RoleModel,
        name: str = "semantic_roles",
        *,
        find_predicates: bool = True,
        threshold: float = 0.5,
        reach: int = 100,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        if not (is_number(threshold) and 0 <= threshold <= 1):
            raise SettingsError(Errors.ROLES_THRESHOLD.format(got=shown(threshold)))
        check_sizes(reach=reach)
        self.vocab = vocab
        self.model = model
        self._unknown: set[str] = set()
        self.name = name
        self.scorer = scorer
        self.configure(find_predicates=find_predicates, threshold=threshold, reach=reach)
        self.cfg["labels"] = []

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the roles."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """The labels, as `spacy init labels` writes them."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label before the component is initialised. Return 1, or 0 if it is there already.

        Raises spaCy's ValueError if the component is initialised.
        """
        if label in self.cfg["labels"]:
            return 0
        if self.model.has_dim("nO"):
            raise ValueError(SpacyErrors.E922.format(name=self.name, nO=self.model.get_dim("nO")))
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        """Prepare the component for training.

        get_examples: returns examples; all their labels are collected, and a few of their docs run through the model.
        nlp: the pipeline.
        labels: of the roles, if they are known; None: those in the examples. Labels that were added before stay.

        Raises AnnotationError if there are no labels, or if the annotations of an example are wrong.
        """
        validate_get_examples(get_examples, "SemanticRoles.initialize")
        examples = list(get_examples() if labels is None else islice(get_examples(), 10))
        validate_examples(examples, "SemanticRoles.initialize")
        found = set().union(*map(labels_in, examples)) if labels is None else set(labels)
        if not found and not self.labels:
            expected = 'roles: doc.spans["predicates"], and doc.spans["roles:i"] for the predicate at token i'
            raise AnnotationError(Errors.TASK_NO_EXAMPLES.format(name=self.name, got=len(examples), expected=expected))
        for label in sorted(found) if labels is None else labels:
            self.add_label(label)
        self.model.set_dim("nO", len(self.labels))
        docs = [example.predicted for example in examples[:10]] or [Doc(self.vocab, words=["a"])]
        self.model.initialize(X=(docs, _no_rows))

    def predict(self, docs: Iterable[Doc]) -> list[Roles]:
        """Return the roles of each doc: token of a predicate -> start, end and label of its roles.

        Raises AnnotationError if find_predicates is false and a doc has no predicates.
        """
        docs = list(docs)
        given = [self._given(doc) for doc in docs]
        answers: list[Roles] = [{predicate: [] for predicate in tokens or ()} for tokens in given]
        if not any(len(doc) for doc in docs):
            return answers
        vectors = self.model.get_ref("tok2vec").predict(docs)
        rows = self._rows(docs, given, self.model.get_ref("finder").predict(vectors))
        for row in rows:
            answers[row.doc][row.predicate] = []  # in the order of the text
        for numbers in batches_of(rows, MAX_BATCH_TOKENS):  # one by one: the scores of all rows may take gigabytes
            batch = [rows[number] for number in numbers]
            for row, tags in zip(batch, self.model.get_ref("labeller").predict((vectors, batch))):
                spans = spans_of(best_tags(self.model.ops.to_numpy(tags)), self.labels)
                parts = [(row.start + start, row.start + end, name) for start, end, name in spans]
                answers[row.doc][row.predicate] = parts
        return answers

    def set_annotations(self, docs: Iterable[Doc], scores: list[Roles]) -> None:
        """Write roles to docs, and predicates that the component found.

        docs: of a batch.
        scores: what `predict` returned for them.
        """
        for doc, roles in zip(docs, scores):
            annotate(doc, roles, found=given_predicates(doc) is None)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch. Docs that nobody has annotated teach nothing.

        examples: of the batch.
        drop: rate of dropout.
        sgd: the optimizer; None: gradients are kept for `finish_update`.
        losses: to which the loss is added.

        Raises AnnotationError if the annotations of an example are wrong.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SemanticRoles.update")
        warn_of_unknown(self.name, set().union(*map(labels_in, examples)), self.labels, self._unknown)
        targets = targets_of(examples, self.labels, self.cfg["reach"])
        docs = [example.predicted for example in examples]
        if any(len(doc) for doc in docs):
            set_dropout_rate(self.model, drop)
            scores, backprop = self.model.begin_update((docs, lambda predicates: targets.rows))
            loss, gradients = loss_of(scores, targets, self.model.ops)
            backprop(gradients)
            losses[self.name] += loss
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def get_loss(self, examples: Iterable[Example], scores: RoleScores) -> tuple[float, RoleScores]:
        """Return the loss of a batch, and its gradients: see `loss_of`.

        examples: of the batch.
        scores: of the rows of their annotated predicates.

        Raises AnnotationError if the annotations of an example are wrong.
        """
        return loss_of(scores, targets_of(list(examples), self.labels, self.cfg["reach"]), self.model.ops)

    def _given(self, doc: Doc) -> list[int] | None:
        given = given_predicates(doc)
        if given is None and len(doc) and not self.cfg["find_predicates"]:
            raise AnnotationError(Errors.ROLES_NO_PREDICATES.format(text=shown(doc.text), name=self.name))
        return given

    def _rows(self, docs: list[Doc], given: list[list[int] | None], logits: list[Floats2d]) -> list[Row]:
        predicates = []
        for doc, tokens, scores in zip(docs, given, logits):
            likely = probabilities(self.model.ops.to_numpy(scores)[:, 0]) >= self.cfg["threshold"]
            found = [int(token) for token in np.flatnonzero(likely) if not doc[int(token)].is_space]
            predicates.append(found if tokens is None else tokens)
        return rows_of(docs, predicates, self.cfg["reach"])


def _no_rows(logits: list[Floats2d]) -> list[Row]:
    return []
