"""The component `coreference`."""

import keyword
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.tokens.underscore import Underscore
from spacy.training import Example, validate_examples
from torch import Tensor
from torch.nn import functional as F

from ...errors import SettingsError, shown
from ..shared import Scorer, default_tok2vec, loss_of, no_examples_error, set_getter, shim_of, warn_of_lost
from . import PREFIX, annotate, clusters_of, head_of, places_of
from .model import Array, CoreferenceModel, Scores

HEAD = "coref_head"
Clusters = list[list[tuple[int, int]]]
SAMPLE = 10  # docs that the model is initialised with
DEFAULT_MODEL = {"@architectures": "spacy-elmo.Coreference.v1", "tok2vec": default_tok2vec(depth=4)}


@Language.factory(
    "coreference",
    assigns=["doc.spans", f"doc._.{PREFIX}", f"span._.{HEAD}"],
    default_config={
        "model": DEFAULT_MODEL,
        "prefix": PREFIX,
        "singletons": True,
        "scorer": {"@scorers": "spacy-elmo.coreference_scorer.v1", "prefix": PREFIX, "singletons": True},
    },
    default_score_weights={"coref_f": 1.0},
)
class Coreference(TrainablePipe):
    """Finds mentions, and clusters of those that speak of the same thing.

    model: spacy-elmo.Coreference.v1.
    prefix: the clusters are the span groups prefix_1, prefix_2 ... of a doc. The extensions `doc._.coref_clusters` and
        `span._.coref_head` are named after it: `doc._.chains` and `span._.chains_head` for chains.
    singletons: whether a mention with which no other one corefers is annotated, as a cluster of its own.
    scorer: function from examples to scores.

    Raises SettingsError if prefix can't be used, or if something else has set extension attributes of these names.
    """

    def __init__(
        self, nlp: Language, name: str, model: CoreferenceModel, prefix: str, singletons: bool, scorer: Scorer | None
    ) -> None:
        if not prefix.isidentifier() or keyword.iskeyword(prefix) or hasattr(Underscore, prefix):
            raise SettingsError(
                f"prefix is {shown(prefix)}. Expected a Python identifier that neither Python nor spaCy uses itself, "
                "such as coref_clusters."
            )
        super().__init__(nlp.vocab, model, name)
        self.prefix, self.singletons = prefix, singletons
        self.scorer = scorer
        set_getter(Doc, prefix, clusters_of, prefix=prefix)
        set_getter(Span, HEAD if prefix == PREFIX else f"{prefix}_head", head_of, prefix=prefix)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Build the model, from examples one or more of which have clusters; else AnnotationError is raised."""
        examples = list(get_examples())
        validate_examples(examples, "Coreference.initialize")
        clusters = [one for example in examples for one in clusters_of(example.reference, self.prefix)]
        if not clusters:
            expected = f"span groups {self.prefix}_1, {self.prefix}_2 and so on"
            raise no_examples_error(self.name, len(examples), expected)
        self.model.initialize(X=[example.reference for example in examples[:SAMPLE]])
        widths = [len(mention) for cluster in clusters for mention in cluster]
        warn_of_lost(self.name, "mentions", widths, "model.max_width", shim_of(self.model).network.max_width)

    def predict(self, docs: Iterable[Doc]) -> list[Clusters]:
        """Return the clusters of each doc, as bounds of mentions."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        scores: list[Scores] = self.model.predict(docs)
        return [clusters_from(one, singletons=self.singletons) for one in scores]

    def set_annotations(self, docs: Iterable[Doc], scores: list[Clusters]) -> None:
        """Write clusters to docs, in the place of those that they have. scores: from `predict`."""
        for doc, clusters in zip(docs, scores):
            annotate(doc, clusters, self.prefix)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score examples. The component's prefix counts, also if an old pipeline has saved another one in `cfg`."""
        scores: dict[str, Any] = super().score(examples, **{"prefix": self.prefix} | kwargs)
        return scores

    def get_loss(self, examples: Iterable[Example], scores: list[Scores]) -> tuple[float, list[Scores]]:
        """Return the loss and the gradient of the scores, which the model gave in training."""
        losses, gradients = 0.0, []
        for example, one in zip(examples, scores):
            loss, gradient = loss_and_gradient(one, *targets_of(one, gold_mentions(example, self.prefix)))
            losses += loss
            gradients.append(gradient)
        return losses, gradients


def clusters_from(scores: Scores, *, singletons: bool) -> Clusters:
    """Return the clusters in the order of the text. A mention joins its best antecedent's if that scores above 0."""
    clusters: Clusters = []
    owners: Clusters = []  # of each mention
    links = zip(scores.spans.tolist(), scores.antecedents[:, 0].tolist(), scores.pair_scores[:, 0].tolist())
    for (start, end), place, score in links:
        if score > 0:
            cluster = owners[place]
        else:
            cluster = []
            clusters.append(cluster)
        cluster.append((start, end))
        owners.append(cluster)
    return [cluster for cluster in clusters if singletons or len(cluster) > 1]


def gold_mentions(example: Example, prefix: str) -> dict[tuple[int, int], int]:
    """Return the number of the cluster of each right mention that is whole tokens of the predicted doc."""
    clusters = clusters_of(example.reference, prefix)
    if not clusters:
        return {}
    places, predicted = places_of(example.reference), places_of(example.predicted)
    words = [token for token in example.predicted if not token.is_space]
    starts = {predicted[token.idx]: token.i for token in words}
    ends = {predicted[token.idx + len(token)]: token.i + 1 for token in words}
    found = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            start, end = starts.get(places[mention.start_char]), ends.get(places[mention.end_char])
            if start is not None and end is not None and start < end:
                found[start, end] = number
    return found


def targets_of(scores: Scores, gold: dict[tuple[int, int], int]) -> tuple[Array, Array]:
    """Return what the scores should say: (spans,), 1 for gold mentions, and (kept, k), 1 for those of one cluster."""
    clusters: Array = np.array([gold.get((start, end), -1) for start, end in scores.spans.tolist()], dtype=np.int64)
    kept = clusters[scores.kept]
    others = np.where(scores.antecedents < 0, -1, kept[scores.antecedents]) if len(kept) else scores.antecedents
    corefer = (others >= 0) & (others == kept[:, None])
    return (clusters >= 0).astype(np.float32), corefer.astype(np.float32)


def loss_and_gradient(scores: Scores, is_mention: Array, corefer: Array) -> tuple[float, Scores]:
    """Return the loss of a doc's scores and its gradient, for what `targets_of` returned.

    It is the negative marginal log-likelihood of the right antecedents of each kept span, the dummy antecedent of
    score 0 if there is none (Lee et al. 2017, section 2), and the cross-entropy of the mention scores. Both are sums
    over the spans, divided by the number of kept spans.
    """
    right = np.pad(corefer, ((0, 0), (1, 0))) > 0
    right[:, 0] = ~right[:, 1:].any(axis=1)

    def loss(mentions: Tensor, pairs: Tensor) -> Tensor:
        pairs = F.pad(pairs, (1, 0))
        wrong = torch.from_numpy(~right).to(pairs.device)
        marginal = pairs.masked_fill(wrong, -torch.inf).logsumexp(1)
        entropy = F.binary_cross_entropy_with_logits(mentions, mentions.new_tensor(is_mention), reduction="sum")
        return (entropy + (pairs.logsumexp(1) - marginal).sum()) / max(1, len(scores.kept))

    value, (d_mentions, d_pairs) = loss_of(loss, scores.mention_scores, scores.pair_scores)
    return value, scores._replace(mention_scores=d_mentions, pair_scores=d_pairs)
