"""What docs/results.md says between its tables."""

from __future__ import annotations

INTRODUCTION = """\
# Results

What the embedded [biLM](glossary.md) `en_mini` brings to spaCy's components and to those of this package. "x alone" is
a component's usual network, which gets features of each word's form. "[x; ELMo]" is the same network, which also gets a
learned mix of the biLM's layers. The paper's figures are of its own biLM, which has 17 times the parameters, and of
larger training sets. `python -m spacy project run results .` writes this page from the files in `results/`."""

SUMMARY = """\
Scores of the test part, in %; means over the runs. Cut: the share of the errors of x alone that is gone,
(E of x alone - E) / E of x alone, where E is 100 minus the mean score. "Beyond seeds": whether x alone and [x; ELMo]
differ by more than seeds make likely (Student's t-test, 5 %). The paper's x had static vectors, so compare its cut with
that of ELMo beside [static vectors](#what-you-would-take-instead). How much a score would change on another test part
is not in these figures: the accuracy on SST-5 has a standard error of 1.1 points."""

OF_BILMS = """\
With the larger biLM [`en_midi`](pretraining.md#how-en_midi-was-trained) and the settings of `en_mini`. These runs were
made without the compiled loops, and some were scored without them, so their minutes and words per second in the
sections of the tasks are no measure of its speed:"""

READING = """\
## How to read this page

- Within a task, all networks have the same encoder, learning rate, batches and dropout. ELMo has its own settings: the
  dropout of its mixes, and their first gamma. The weights with the best score on the development part were scored once.
- Scores of a task: mean ± sample standard deviation over the runs, and their range, in %. Error cut: of the first
  measure. Mixes: means over the runs of the softmax weights of layers 0, 1 and 2, whose sum is 1, and of gamma; "input"
  is before the component's encoder, "output" after it.
- The weights of `en_mini` are named by the first digits of their SHA-256; those of the package have {mark}. One biLM of
  random weights serves all seeds. Parameters: the trained ones, without the biLM, which is frozen.
- Minutes and words per second are ranges over the runs. Runs had one thread (`OMP_NUM_THREADS=1`), two side by side, on
  machines of different speed that did other work. So take both as rough sizes. Words per second in the summary and in
  "What you would take instead" were measured in turns.
- Static vectors are those of [floret](https://github.com/explosion/floret): fastText's, with which spaCy makes a vector
  for any word. LAS and UAS: the share of words that get the right head, with its label or without. The page on tasks
  tells the [measures of coreference](tasks.md#coreference).
- To make the runs again: `python -m spacy project run evidence .` makes the sections of the tasks, the tuned biLMs,
  "One change at a time" and "Inside the biLM". For static vectors, first run `python -m spacy project run embedding .
  --vars.embedding floret --vars.text FILE`, where FILE is the first text that `en_mini`
  [read](pretraining.md#how-en_mini-was-trained)."""

_NER = "An entity is right if both its words and its label are."
DATA = {
    "ner": "the Broad Twitter Corpus: people, organizations and places in tweets. 6,338 tweets (99,933 words) for "
    f"training, 1,000 for development, 2,001 for the test. {_NER} Of the entities of the test part, 63 % are "
    "nothing but the name of an account.",
    "ner_wnut17": "WNUT-17: six kinds of rare and new names. 3,394 tweets (62,730 words) for training, 1,009 texts of "
    "YouTube for development, and 1,287 of Twitter, Reddit and StackExchange for the test, which have no name of the "
    f"training part. {_NER}",
    "ner_newswire": "Worldwide Newswire: nine kinds of entities in English news of many countries. 13,783 sentences "
    f"(559,550 words) for training, 1,466 for development, 1,591 for the test. {_NER}",
    "tagger": "Universal Dependencies, English Web Treebank. 12,544 sentences (204,577 words) for training, 2,001 for "
    "development, 2,077 for the test. Words and sentences are those of the corpus. UAS and LAS leave out punctuation, "
    "as spaCy's scorer does.",
    "textcat": "SST-5: sentences of film reviews in five classes. 8,544 sentences (163,566 words) for training, 1,101 "
    "for development, 2,210 for the test. Phrases are not used.",
    "roles": "PropBank's annotations of the English Web Treebank. 12,455 sentences (203,797 words) for training, 1,942 "
    "for development, 2,041 for the test. The predicates are given.",
    "coreference": "LitBank: the beginnings of 100 English novels. 80 (169,456 words) for training, 10 for "
    "development, 10 for the test. `en_mini` has read ten of the novels: eight of the training part, one of the "
    "development part, and one of the test part, *Bleak House*.",
    "entailment": "SNLI, but trained on little of it: 18,657 pairs of the development parts of SNLI and MultiNLI "
    "(555,198 words). The paper used SNLI's training part, 30 times as many pairs. 1,000 other pairs of SNLI's "
    "development part for development, SNLI's test part (9,824 pairs) for the test, and the test part of SICK (4,927 "
    "pairs), of which nothing was used for training.",
    "answers": "questions of SQuAD 1.1, but a tenth of them: 8,150 for training, 894 for development. The test is the "
    "English part of XQuAD: 1,190 questions on 240 paragraphs of SQuAD's development part.",
}

_AS_TWEETS = "nothing; the settings are those of Broad Twitter."
TRIED = {
    "ner": "with and without averages of the weights, for both networks. With seed 0, the scores on the development "
    "part are 66.9 (x alone) and 70.6 ([x; ELMo]). One change at a time gave: 66.8 and 68.7 (batches of 1,000 words "
    "from the start), 65.0 and 70.5 (a dropout of 0.6), 67.4 and 71.0 (2 layers of the encoder), 66.1 and 69.8 (a rate "
    "of 0.0003). For [x; ELMo] alone, a layer norm of each token in the mixes gave 70.6; another dropout of the mixes "
    "was tried, too. How many were tried before these was not written down.",
    "ner_wnut17": _AS_TWEETS,
    "ner_newswire": _AS_TWEETS,
    "tagger": "nothing.",
    "textcat": "nothing.",
    "roles": "one other batch size, learning rate, dropout and depth of the encoder each, for both networks.",
    "coreference": "nothing for x alone. For ELMo, a mix that begins at gamma 1 with a dropout of 0.4. It made no "
    "difference: 58.6 %, and 58.7 % with the config's gamma 3 and dropout 0.2 (after 640 updates).",
    "entailment": "another batch size and dropout, for both networks. For ELMo, a mix that begins at gamma 1 with a "
    "dropout of 0.4: it had 61.3 % after 900 updates with seed 0, the config's gamma 3 and dropout 0.2 had 63.8 %, and "
    "x alone 59.4 % (earlier weights of `en_mini`).",
    "answers": "another number of epochs, for both networks. ELMo's mix has the gamma and dropout of entailment.",
}

READ = """\
Of the {paragraphs} paragraphs of the test part, `en_mini` has read {read}, without the questions: a tenth or more of
their runs of eight words are in its text of Wikipedia. The same runs on {found} ({source})."""

ALTERNATIVES = """\
What you could train on your own text in place of ELMo: static vectors (floret; spaCy keeps them frozen), initial
weights of x (`spacy pretrain`; they are tuned with the component), or a biLM of half an hour
([LSTM 512](pretraining.md#which-size); its evaluation took eight of its minutes). Each had about half an hour of one
core, with the settings of its documentation, and read the first text of the embedded biLM: Wikipedia of 2015. `spacy
pretrain` had numpy multiply its matrices; without that it would have read less. The embedded biLM's minutes are those
of [all its runs](#how-the-bilms-learned). Minutes are those of one core: an hour of two cores counts as 120. It also
had 7 minutes of a GPU, in which it read 600 million of its words; `en_midi` had 9 minutes of a GPU and none of a core.
Words read are each program's own count, with repetitions. The task is [Broad Twitter](#entities-broad-twitter). Words
per second: two threads, the networks in turns, ELMo's caches off. Thinc multiplies matrices with one thread, so the
second thread helps ELMo alone. `spacy pretrain` changes the weights of x alone, so its speed is the same."""

TUNED = """\
`en_mini` was tuned on the words of a task's training part, without the labels: for one epoch, with the settings of
`init-pretrain-config --init en_mini`. The weights that were best on the development part were kept and frozen, and
[x; tuned], which is [x; ELMo] with them, was trained as before. The paper did the same (its appendix A.1): perplexity
fell, the accuracy on SNLI's development part rose by 0.6 points, and that on SST stayed about the same. Perplexities
are those of the forward direction on the development part, from the zero state, by a softmax over 50,000 words. All
other words count as `<UNK>`. If there are many of these, a tuned biLM soon learns to predict them; "of known words"
leaves them out. The paper's are of other words: compare only the changes."""
TUNED_SCORES = "Scores of the test part in %, means over the runs, and the same measure on the development part:"
# Table 7 of Peters et al. 2018: forward perplexity before and after; of contexts for SQuAD, of CoNLL-2003 for entities
PAPER_TUNED = {
    "ner_newswire": "103.2 to 46.3",
    "textcat": "131.5 to 78.6",
    "entailment": "72.1 to 16.8",
    "answers": "99.1 to 43.5",
}

PACES = """\
Updates until x alone has its best score on the development part, and until [x; ELMo] has reached that score; means over
the runs in which it did. The score is the one by which training keeps the best weights; for UD English EWT it is a
weighted mean of tags, morphology and dependencies. In the paper, semantic roles took 486 epochs without ELMo and 10
with it."""

ABLATIONS = """\
`python -m spacy project run ablations .` Scores of the development part, in %.

- [x; ELMo] has ELMo at the input of the encoder, and for newswire at its output too. It learns gamma and the weights of
  the layers, without an l2 and without a layer norm. The biLM is frozen. Each other network differs in what it is named
  for. All have {updates} updates and one run; [x; ELMo] has three on the first two.
- Scores are those of a run's best evaluation on the development part, because the test part is not for choosing. So
  they are a little too good. Difference: of the first measure, from [x; ELMo].
- The loss of a component in spaCy is a sum over the batch, and the paper's a mean over examples. So an l2 of 0.001 is
  weaker here than the paper's lambda of 0.001. The same strength is the paper's lambda times the number of examples in
  a batch."""
SHARES = """\
The first measure on the development part, in %. An update sees as many words of a small share as of all. So a small
share is read more often: on newswire 114 times at 1 %, and 1.1 times at 100 %. "To the end": the task's own runs, whose
sections name their weights of `en_mini`. On UD English EWT, the parsers of the other rows also learn labels that occur
once (`min_action_freq` is 1); the task itself leaves out those that occur fewer than 30 times."""

FILES = ("weights.hdf5", "softmax.hdf5")
TEXTS = {"wikipedia": "Wikipedia", "novels": "novels", "newswire": "newswire", "tweets": "tweets"}
BILMS = """\
Perplexity from the zero state, by a softmax over the 50,000 words of `en_mini`; all other words count as `<UNK>`. It is
exp of the mean loss of both directions. The biLMs have not read these texts: the held-out articles of Wikipedia, the
first 3,000 held-out sentences of novels, and the development parts of Worldwide Newswire and Broad Twitter. Tags: what
a linear classifier of the universal tags of UD English EWT gets right on the development part, in %."""
BITS = """\
The biLM of which `en_mini` was made, as it was trained, and its copies by
[`elmo pack`](pretraining.md#a-smaller-file). `en_mini` is the copy with `--bits 8`. Change: the norm of the change of a
layer's vectors, as a share of their norm, over 200 sentences of held-out Wikipedia. Perplexity: of its first 1,000
sentences, with the softmax of the copy."""

LEARNING = """\
Perplexity during the runs that made the biLMs: of 1,000 sentences that are spread over the held-out text of Wikipedia,
by a softmax over the same 50,000 words. Tokens are those of one direction; `</S>` counts as one. A run begins with the
weights of the biLM's run before it. "Averaged": an average of the last weights was scored. Only a few figures of some
runs were kept. [Pretraining](pretraining.md#how-en_mini-was-trained) has the commands, but those of runs 2 and 3, which
were not kept word for word, and tells what the texts are."""

INSIDE = """\
What each layer of `en_mini` tells, as in section 5.3 of the paper. Layer 0 sees the characters of a word alone; 1 and 2
are the LSTM layers. Tags: the accuracy, in %, of a linear classifier on each frozen layer, on the development part.
Entities: the same, but F1 of the labels other than `O`, token by token. Senses: the nearest mean vector in SemCor, F1
over all test sets. "Without a layer": the most frequent label of the word, or its first sense. The paper's figures are
for the fine tags of the Penn Treebank, and for other test sets of senses, where the first sense has 65.9. Each figure
is of one classifier. [Inside the biLM](inside.md) says more."""
# by the name of a record: the question, its measure, and the paper's figures of the first and second LSTM layer
PROBES = {
    "probe_upos": ("universal tags, UD English EWT", "accuracy", ("", "")),
    "probe_tag": ("fine tags (XPOS), UD English EWT", "accuracy", ("97.3", "96.8")),
    "probe_ent": ("entities, Broad Twitter", "f1", ("", "")),
}
PAPER_SENSES = ("67.4", "69.0")
LAYERS = ("layer 0", "layer 1", "layer 2", "mean")

ELSEWHERE = """\
## Figures on other pages

- [Performance](performance.md): words per second beside other programs, memory, and what bfloat16 costs.
- [Exactness](exactness.md): how closely the vectors agree with those of AllenNLP and bilm-tf, and with each other.
- [Scale](scale.md): the hours and the storage that a very large corpus takes.
- [Reliability](reliability.md): what was measured with damaged files, killed processes and long runs.
- [Pretraining](pretraining.md): the speed of training, and the sizes, optimizers and small texts that were tried.
- [Training on ELMo](training.md) and [the paper's other tasks](tasks.md): their time and memory."""
