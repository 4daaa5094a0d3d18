"""What docs/results.md says between its tables, and how to read them."""

from __future__ import annotations

INTRODUCTION = """\
# Results

What the embedded [biLM](glossary.md) `en_mini` brings to spaCy's components and to those of this package. "x alone" is
a component's usual network, which gets features of each word's form. "[x; ELMo]" is the same network, which also gets a
learned mix of the biLM's layers. The paper's figures are of its own biLM, which has 17 times the parameters, and of
larger training sets."""

SUMMARY = """\
Scores of the test part, in %; means over the runs. "Beyond seeds": whether the two scores differ by more than seeds
make likely (Student's t-test, 5 %). The paper's x had static vectors too, so set its cut beside the one with static
vectors in both networks. How much a score would change on another test part is not in these figures: the accuracy on
SST-5 has a standard error of 1.1 points."""

WITH_VECTORS = "The same measures with [static vectors](#what-you-would-take-instead) in x. {daggers}"
DAGGERS = "{dagger}: the two networks with ELMo had different weights of `en_mini`, so do not compare them."

OF_BILMS = """\
The same measures with the larger biLM [`en_midi`](pretraining.md#how-en_midi-was-trained). The settings are those of
`en_mini`. These runs were made without the compiled loops, and some were scored without them, so their minutes and
words per second in the sections of the tasks are no measure of its speed:"""

READING = """\
## How to read this page

`python -m spacy project run results .` writes this page from the files in `results/`.

- Within a task, all networks have the same encoder, learning rate, batches and dropout. ELMo brings settings of its
  own: the dropout of its mixes, and the gamma at which they begin. Each section tells which settings were tried.
- Of each training, the weights with the best score on the development part were scored once on the test part. On Broad
  Twitter, other pages have test scores of further variants: sizes of biLMs, optimizers, bits and earlier weights
  ([Pretraining](pretraining.md)), averages of the weights ([Training on ELMo](training.md)) and bfloat16
  ([Performance](performance.md)).
- ±: the sample standard deviation over the runs of a network. It does not tell how much the score would change on
  another test part.
- Error cut: the share of the errors of x alone that is gone, (E of x alone - E) / E of x alone. E is 100 minus the mean
  score. "Static vectors in both" compares [x with static vectors; ELMo] with x with static vectors.
- The weights of `en_mini` are named by the first digits of their SHA-256; those of the package have {mark}.
- One biLM of random weights serves all seeds.
- Trained parameters: of all components but the biLM, which is frozen.
- Minutes and words per second are ranges over the runs. Runs had one thread, on machines of different speed that did
  other work, and minutes include pauses. So take both as rough sizes. Words per second in the summary and in "What you
  would take instead" were measured side by side.
- What the mixes learned: the softmax weights of layers 0, 1 and 2, whose sum is 1, and the factor gamma. "Input" is
  before the component's encoder, "output" after it.
- Static vectors are those of [floret](https://github.com/explosion/floret): fastText's, with which spaCy makes a vector
  for any word. LAS and UAS: the share of words that get the right head, with its label or without. MUC, B-cubed,
  CEAF-phi4 and LEA are [measures of coreference](tasks.md#coreference)."""

AGAIN = """\
To make the runs again: `python -m spacy project run evidence . --vars.networks "baseline elmo random midi"` fetches the
corpora and makes the sections of the tasks, the tuned biLMs, "One change at a time" and "Inside the biLM". The other
commands on this page need texts that you must have. The networks with static vectors need `python -m spacy project run
embedding_floret . --vars.text FILE` first. FILE is `wikipedia_en_2015`, the first text that `en_mini` read: see
[its training](pretraining.md#how-en_mini-was-trained)."""

COSTS = "What each network takes ([how it was measured](#how-to-read-this-page)):"
MIXES = """\
Which layers each task and place takes, as Figure 2 of the paper: a row for each mix of the first run, a column for each
layer, darker for a larger weight."""

ELSEWHERE = """\
## Figures on other pages

This page tells what ELMo brings, and what its biLMs know. These pages have the other figures, each with its command:

- [Performance](performance.md): words per second beside other programs, memory, and what bfloat16 costs.
- [Exactness](exactness.md): how closely the vectors agree with those of AllenNLP and bilm-tf, and with each other.
- [Scale](scale.md): the hours and the storage that a very large corpus takes.
- [Reliability](reliability.md): what was measured with damaged files, killed processes and long runs.
- [Pretraining](pretraining.md): the speed of training, and the sizes, optimizers and small texts that were tried.
- [Training on ELMo](training.md): some settings that were tried, and the time and memory of training.
- [The paper's other tasks](tasks.md): time and memory for long docs.
- [Predictions](predictions.md): what trained components say about ten sentences."""
