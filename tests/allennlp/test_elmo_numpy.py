"""The AllenNLP-compatible module against the plain numpy biLM: sizes of every kind, words given and not."""

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, drawn_options, random_datasets, seeds, sentence_lists
from hypothesis import given, settings
from numpy_bilm import NumpyBiLM

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.formats import BiLMOptions

MIX = [0.3, -0.4, 1.1, 0.0]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(options=drawn_options(), sentences=sentence_lists, seed=seeds)
def test_two_batches_with_the_state_carried(options: BiLMOptions, sentences: list[list[str]], seed: int) -> None:
    datasets = random_datasets(options, seed)
    mix = MIX[: options.layers]
    weights = np.exp(mix) / np.exp(mix).sum()
    vocabulary = ["pad", *dict.fromkeys(word for words in sentences[::2] for word in words)]
    arguments = {"scalar_mix_parameters": mix, "dropout": 0.0, "vocab_to_cache": vocabulary}
    bilm, reference = bilm_of(options, datasets).double(), NumpyBiLM(options, datasets)
    carried, plain = (Elmo(None, None, 1, module=bilm, stateful=s, **arguments).double() for s in (True, False))
    ids = batch_to_ids(sentences, options.max_characters)
    longest = ids.shape[1]
    words = torch.zeros(ids.shape[:2], dtype=torch.long)
    for row, sentence in enumerate(sentences):  # what is not in the vocabulary has a place behind its end
        places = [vocabulary.index(word) if word in vocabulary else len(vocabulary) for word in sentence]
        words[row, : len(sentence)] = torch.tensor(places)
    states = [reference.zero_state()] * len(sentences)
    with torch.no_grad():
        for given_words in (None, words):
            got, fresh = (elmo(ids, given_words)["elmo_representations"][0] for elmo in (carried, plain))
            assert got.shape == (len(sentences), longest, options.width)
            for row, sentence in enumerate(sentences):
                result, first = reference.run(sentence, states[row]), reference.run(sentence)
                states[row] = result.end
                for output, layers in ((got, result.layers), (fresh, first.layers)):
                    expected = np.tensordot(weights, layers, 1)
                    np.testing.assert_allclose(output[row, : len(sentence)], expected, rtol=1e-6, atol=1e-6)
                    assert not output[row, len(sentence) :].any()


def test_the_boundaries_are_the_words_of_that_name() -> None:
    """As AllenNLP's token encoder has it: layer 0 of `<S>` is that of the word "<S>"; the same for `</S>`."""
    elmo = Elmo(None, None, 1, dropout=0.0, keep_sentence_boundaries=True, scalar_mix_parameters=[1.0, -1e10, -1e10])
    for word, place in (("<S>", 0), ("</S>", 2)):
        vectors = elmo(batch_to_ids([[word]]))["elmo_representations"][0][0]
        assert torch.equal(vectors[place], vectors[1])
