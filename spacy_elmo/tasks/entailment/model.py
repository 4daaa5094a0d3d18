"""The registered architecture spacy-elmo.Entailment.v1: docs -> probabilities of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pad_sequence

from ...errors import AnnotationError, check_whole, shown
from ...models.types import Tok2VecModel
from ..shared import BiLSTM, TorchShim, batches_of, init_network, is_inside, run_network, texts_of
from . import KEYS

EntailmentModel = Model[list[Doc], Floats2d]
# words of the pairs that run at once in prediction: so memory does not grow with the number of docs
WORDS_AT_ONCE = 16384


def build_entailment(
    tok2vec: Tok2VecModel, lstm_width: int = 64, longest: int = 1000, nO: int | None = None
) -> EntailmentModel:
    """Build spacy-elmo.Entailment.v1: docs of premise and hypothesis -> probabilities of the classes.

    It is ESIM (Chen et al. 2017), made small: a BiLSTM encodes both sentences, attention aligns their words, each word
    is compared with what it is aligned to, a second BiLSTM reads the comparisons, and their mean and maximum are
    classified.

    Output: *Shape:* (docs, classes). The row of a doc without words in its premise or hypothesis has zeros.

    lstm_width: of each direction of the BiLSTMs. The other layers are twice as wide.
    longest: number of tokens that a premise or hypothesis may have. Memory grows with the product of both.
    nO: number of classes; null: found at initialisation.
    """
    check_whole(lstm_width=lstm_width, longest=longest, **({} if nO is None else {"nO": nO}))
    return Model(
        "entailment",
        _forward,
        init=init_network,
        layers=[tok2vec],
        shims=[TorchShim(partial(Esim, lstm_width=lstm_width))],
        dims={"nO": nO},
        attrs={"dropout_rate": 0.0, "longest": longest},
        refs={"tok2vec": tok2vec},
    )


def _forward(
    model: EntailmentModel, docs: list[Doc], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], list[Doc]]]:
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(docs, is_train)
    pairs = [(i, pair) for i, doc in enumerate(docs) if (pair := _pair(doc, model.attrs["longest"])) is not None]
    sizes = [(sum(map(len, pair)),) for _, pair in pairs]
    batches = [list(range(len(pairs)))] if is_train and pairs else batches_of(sizes, WORDS_AT_ONCE)

    def given(numbers: list[int]) -> tuple[Any, ...]:
        batch = [pairs[number] for number in numbers]
        places = [(i, slice(pair[k].start, pair[k].end)) for k in (0, 1) for i, pair in batch]
        return places, [part.stop - part.start for _, part in places]

    scores, backprop_network = run_network(model, vectors, batches, given, is_train)
    probabilities: Any = model.ops.alloc2f(len(docs), model.get_dim("nO"))
    if scores:
        probabilities[[i for i, _ in pairs]] = model.ops.softmax(model.ops.xp.stack(scores))

    def backprop(d_probabilities: Floats2d) -> list[Doc]:
        """Send gradients back. d_probabilities: probabilities - truth, the gradient of the cross-entropy."""
        result: list[Doc] = backprop_tok2vec(backprop_network([d_probabilities[i] for i, _ in pairs]))
        return result

    return probabilities, backprop


def _pair(doc: Doc, longest: int) -> list[Span] | None:
    """Return premise and hypothesis; None if one of them has no words. One that is too long is an error."""
    pair = texts_of(doc, KEYS)
    if pair is not None and (length := max(map(len, pair))) > longest:
        raise AnnotationError(
            f"the premise or hypothesis of the doc {shown(doc.text)} has {length:,} tokens. Expected {longest:,} at "
            "most: divide it, or raise model.longest."
        )
    return pair


class Esim(nn.Module):
    """Compares two sentences, word by word. *Shapes:* N pairs, P and H words in the longest premise and hypothesis."""

    def __init__(self, width: int, lstm_width: int, labels: int) -> None:
        super().__init__()
        both = 2 * lstm_width
        self.encoder = BiLSTM(width, lstm_width)
        self.comparison = nn.Linear(4 * both, both)
        self.composition = BiLSTM(both, lstm_width)
        self.hidden = nn.Linear(4 * both, both)
        self.output = nn.Linear(both, labels)

    def forward(self, words: Tensor, lengths: Sequence[int], drop: float) -> Tensor:
        """Return a score for each class, before the softmax. *Shape:* (N, labels).

        words: vectors of all words, those of the N premises before those of the N hypotheses. *Shape:* (words, width).
        lengths: number of words of each of these, none of them 0.
        """
        number = len(lengths) // 2
        longest = max(lengths[:number]), max(lengths[number:])
        sizes = torch.tensor(lengths, device=words.device)
        in_premise, in_hypothesis = is_inside(sizes[:number], longest[0]), is_inside(sizes[number:], longest[1])

        def read(lstm: BiLSTM, words: Tensor) -> tuple[Tensor, Tensor]:
            """Run a BiLSTM over all sentences at once. Returns *Shape:* (N, P, both) and (N, H, both)."""
            rows = pad_sequence(dropout(words, drop).split(list(lengths)), batch_first=True)
            states = lstm(rows, sizes)
            return states[:number, : longest[0]], states[number:, : longest[1]]

        premise, hypothesis = read(self.encoder, words)
        # align: each word with what it attends to in the other sentence
        similarity = premise @ hypothesis.transpose(1, 2)  # (N, P, H)
        for_premise = _attention(similarity, in_hypothesis) @ hypothesis
        for_hypothesis = _attention(similarity.transpose(1, 2), in_premise) @ premise
        compared = [
            self._compare(premise[in_premise], for_premise[in_premise]),
            self._compare(hypothesis[in_hypothesis], for_hypothesis[in_hypothesis]),
        ]
        premise, hypothesis = read(self.composition, torch.cat(compared))
        pooled = torch.cat([*_pool(premise, in_premise), *_pool(hypothesis, in_hypothesis)], dim=1)
        hidden = torch.tanh(self.hidden(dropout(pooled, drop)))
        scores: Tensor = self.output(dropout(hidden, drop))
        return scores

    def _compare(self, words: Tensor, aligned: Tensor) -> Tensor:
        """Compare words with what they are aligned to. Both, and the result, have *Shape:* (words, 2 * lstm_width)."""
        features = torch.cat([words, aligned, words - aligned, words * aligned], dim=1)
        return torch.relu(self.comparison(features))


def _attention(similarity: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the words of the last dimension. mask: *Shape:* (N, size of the last dimension)."""
    return torch.softmax(similarity.masked_fill(~mask[:, None], float("-inf")), dim=2)


def _pool(words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and maximum of each sentence's words, *Shape:* (N, width)."""
    outside = ~mask[:, :, None]
    mean = words.masked_fill(outside, 0.0).sum(1) / mask.sum(1, keepdim=True)
    return mean, words.masked_fill(outside, float("-inf")).amax(1)
