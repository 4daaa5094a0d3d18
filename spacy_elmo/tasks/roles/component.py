"""The component `semantic_roles`."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from thinc.api import Optimizer, set_dropout_rate
from torch import Tensor
from torch.nn import functional as F

from ...errors import AnnotationError, SettingsError, check_whole, shown
from ...models.types import is_number
from ..shared import (
    Scorer,
    aligned,
    default_tok2vec,
    loss_of,
    mean_of,
    no_examples_error,
    warn_of_lost,
    warn_of_unknown,
)
from . import annotate, given_predicates, predicates_of, roles_of
from .model import RoleModel, RoleScores, Row, row_batches, rows_around

# token of a predicate -> start, end and label of its roles
Roles = dict[int, list[tuple[int, int, str]]]
Tags = NDArray[np.intp]
Floats = NDArray[np.float32]
DEFAULT_MODEL = {"@architectures": "spacy-elmo.SemanticRoles.v1", "tok2vec": default_tok2vec(depth=4)}


@Language.factory(
    "semantic_roles",
    assigns=["doc.spans"],
    default_config={
        "model": DEFAULT_MODEL,
        "find_predicates": True,
        "threshold": 0.5,
        "reach": 100,
        "scorer": {"@scorers": "spacy-elmo.roles_scorer.v1"},
    },
    default_score_weights={"roles_f": 1.0, "roles_p": 0.0, "roles_r": 0.0, "roles_per_type": None},
)
class SemanticRoles(TrainablePipe):
    """Labels the roles of predicates, and finds the predicates if nobody gave them.

    model: spacy-elmo.SemanticRoles.v1.
    find_predicates: whether the component finds the predicates of docs without `doc.spans["predicates"]`. If not, such
        docs are an error.
    threshold: probability from which on a token is a predicate.
    reach: number of tokens on each side of a predicate among which its arguments are looked for, at most.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        model: RoleModel,
        find_predicates: bool,
        threshold: float,
        reach: int,
        scorer: Scorer | None,
    ) -> None:
        if not (is_number(threshold) and 0 <= threshold <= 1):
            raise SettingsError(f"threshold is {shown(threshold)}. Expected a number from 0 to 1.")
        check_whole(reach=reach)
        super().__init__(nlp.vocab, model, name, labels=[])
        self.find_predicates, self.threshold, self.reach, self.scorer = find_predicates, threshold, reach, scorer
        self._unknown: set[str] = set()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """The labels, as `spacy init labels` writes them."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label before the component is initialised. Return 1, or 0 if it is there already."""
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
        """Collect the labels, which are those of all examples if `labels` is None, and initialise the model.

        Labels that were added before stay. Raises AnnotationError if there are none, or wrong annotations.
        """
        examples = list(get_examples() if labels is None else islice(get_examples(), 10))
        validate_examples(examples, "SemanticRoles.initialize")
        roles = [role for example in examples for role in roles_in(example)]
        found = sorted({span.label_ for _, span in roles}) if labels is None else labels
        if not found and not self.labels:
            expected = 'roles: doc.spans["predicates"], and doc.spans["roles:i"] for the predicate at token i'
            raise no_examples_error(self.name, len(examples), expected)
        distances = [max(token - span.start, span.end - 1 - token) for token, span in roles]
        warn_of_lost(self.name, "roles", distances, "reach", self.reach)
        for label in found:
            self.add_label(label)
        self.model.set_dim("nO", len(self.labels))
        docs = [example.predicted for example in examples[:10]] or [Doc(self.vocab, words=["a"])]
        self.model.initialize(X=(docs, []))

    def predict(self, docs: Iterable[Doc]) -> list[Roles]:
        """Return the roles of each doc. Raises AnnotationError if it has no predicates and find_predicates is false."""
        docs = list(docs)
        given = [given_predicates(doc) for doc in docs]
        for doc, tokens in zip(docs, given):
            if tokens is None and len(doc) and not self.find_predicates:
                raise AnnotationError(
                    f'the doc {shown(doc.text)} has no span group "predicates", and find_predicates is false in the '
                    f'component {self.name!r}. Set it to true, or doc.spans["predicates"] to spans of one token each.'
                )
        if not any(len(doc) for doc in docs):
            return [{} for _ in docs]
        vectors = self.model.get_ref("tok2vec").predict(docs)
        predicates = []
        for doc, tokens, logits in zip(docs, given, self.model.get_ref("finder").predict(vectors)):
            likely = self.model.ops.to_numpy(self.model.ops.sigmoid(logits))[:, 0] >= self.threshold
            found = [token for token in np.flatnonzero(likely).tolist() if not doc[token].is_space]
            predicates.append(found if tokens is None else tokens)
        answers: list[Roles] = [{predicate: [] for predicate in tokens} for tokens in predicates]
        rows = rows_around(docs, predicates, self.reach)
        for numbers in row_batches(rows):  # one by one: the scores of all rows may take gigabytes
            batch = [rows[number] for number in numbers]
            for row, scores in zip(batch, self.model.get_ref("labeller").predict((vectors, batch))):
                spans = spans_of(best_tags(self.model.ops.to_numpy(scores)), self.labels)
                parts = [(row.start + start, row.start + end, label) for start, end, label in spans]
                answers[row.doc][row.predicate] = parts
        return answers

    def set_annotations(self, docs: Iterable[Doc], scores: list[Roles]) -> None:
        """Write roles to docs, and predicates that the component found. scores: from `predict`."""
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
        """Learn from a batch. Docs that nobody has annotated teach nothing; wrong annotations raise AnnotationError."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "SemanticRoles.update")
        found = {span.label_ for example in examples for _, span in roles_in(example)}
        warn_of_unknown(self.name, found, self.labels, self._unknown)
        flags, rows, tags = targets_of(examples, self.labels, self.reach)
        docs = [example.predicted for example in examples]
        if any(len(doc) for doc in docs):
            set_dropout_rate(self.model, drop)
            scores, backprop = self.model.begin_update((docs, rows))
            loss, gradients = loss_and_gradients(scores, flags, tags)
            backprop(gradients)
            losses[self.name] += loss
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def get_loss(self, examples: Iterable[Example], scores: RoleScores) -> tuple[float, RoleScores]:
        """Return the loss of a batch, and its gradients. scores: of the rows of its annotated predicates."""
        flags, _, tags = targets_of(list(examples), self.labels, self.reach)
        return loss_and_gradients(scores, flags, tags)


def roles_in(example: Example) -> list[tuple[int, Span]]:
    """Return the right roles of an example, each with the token of its predicate."""
    doc = example.reference
    return [(token, span) for token in predicates_of(doc) or () for span in roles_of(doc, token) or ()]


def targets_of(
    examples: Sequence[Example], labels: Sequence[str], reach: int
) -> tuple[list[Floats | None], list[Row], list[Tags]]:
    """Return which tokens are predicates (None: not annotated), rows of roles, and tags of what is whole tokens."""
    flags: list[Floats | None] = []
    roles: list[dict[int, list[Span]]] = []
    for example in examples:
        gold = predicates_of(example.reference)
        found: dict[int, list[Span]] = {}
        flag = np.zeros(len(example.predicted), dtype="f")
        for predicate in gold or ():
            spans = aligned(example, [example.reference[predicate : predicate + 1]])
            if [len(span) for span in spans] == [1]:
                flag[spans[0].start] = 1
                parts = roles_of(example.reference, predicate)
                if parts is not None:
                    found[spans[0].start] = aligned(example, parts)
        flags.append(None if gold is None else flag)
        roles.append(found)
    rows = rows_around([example.predicted for example in examples], [sorted(found) for found in roles], reach)
    tags = []
    for row in rows:
        places = ((s.start - row.start, s.end - row.start, s.label_) for s in roles[row.doc][row.predicate])
        tags.append(tags_of(places, row.end - row.start, labels))
    return flags, rows, tags


def loss_and_gradients(
    scores: RoleScores, flags: Sequence[Floats | None], tags: Sequence[Tags]
) -> tuple[float, RoleScores]:
    """Return the loss and its gradients, for what `targets_of` returned.

    The loss is the cross entropy of the tags, summed over a row's tokens and averaged over rows, and that of the
    predicates, summed over a doc's tokens and averaged over the docs that are annotated.
    """
    n = len(flags)

    def loss(*tensors: Tensor) -> Tensor:
        known = [(x[:, 0], x.new_tensor(flag)) for x, flag in zip(tensors, flags) if flag is not None]
        rows = [(x, torch.as_tensor(one, device=x.device)) for x, one in zip(tensors[n:], tags)]
        of_predicates = mean_of([F.binary_cross_entropy_with_logits(*one, reduction="sum") for one in known])
        return of_predicates + mean_of([F.cross_entropy(*one, reduction="sum") for one in rows])

    value, gradients = loss_of(loss, *scores.predicates, *scores.roles)
    return value, RoleScores(gradients[:n], gradients[n:])


def tags_of(spans: Iterable[tuple[int, int, str]], length: int, labels: Sequence[str]) -> Tags:
    """Return the tags of a row from its roles: 0 is O, then the B- tags of all labels, then their I- tags. (length,)"""
    tags = np.zeros(length, dtype=np.intp)
    numbers = {label: number for number, label in enumerate(labels)}
    for start, end, label in spans:
        start, end = max(start, 0), min(end, length)
        if label in numbers and start < end:
            tags[start:end] = 1 + len(labels) + numbers[label]
            tags[start] = 1 + numbers[label]
    return tags


def spans_of(tags: Tags, labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return start, end and label of each role of a row. tags: legal ones, *Shape:* (length,)."""
    spans: list[tuple[int, int, str]] = []
    for place, tag in enumerate(tags.tolist()):
        if 0 < tag <= len(labels):
            spans.append((place, place + 1, labels[tag - 1]))
        elif tag:
            start, _, label = spans[-1]
            spans[-1] = (start, place + 1, label)
    return spans


def best_tags(scores: Floats) -> Tags:
    """Return the legal tags with the highest sum of scores, *Shape:* (length, 1 + 2 * labels): *Shape:* (length,)."""
    # legal transitions all count the same, so the best tag before O or B- is the best of all, and before I-X B-X or I-X
    length, width = scores.shape
    scores = np.nan_to_num(scores, nan=float(np.finfo("f").min))  # NaN: of a training that has failed
    labels = (width - 1) // 2
    tags = np.zeros(length, dtype=np.intp)
    back = np.zeros((length, width), dtype=np.intp)
    path = scores[0].astype(np.float64)
    path[1 + labels :] = -np.inf
    for step in range(1, length):
        begins = path[1 : 1 + labels] >= path[1 + labels :]
        back[step, : 1 + labels] = path.argmax()
        back[step, 1 + labels :] = np.where(begins, 1, 1 + labels) + np.arange(labels)
        path = path[back[step]] + scores[step]
    tags[-1] = path.argmax()
    for step in range(length - 1, 0, -1):
        tags[step - 1] = back[step, tags[step]]
    return tags
