"""What docs/results.md says of the data of each task, and of the paper's task that stands beside it."""

from __future__ import annotations

_NER = "The score counts an entity as right if both its words and its label are."

# by the name of the task
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
    "for development, 2,210 for the test. Phrases are not used. By its size alone, the test part gives an accuracy of "
    "43 % a standard error of 1.1 points.",
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

# tasks of Table 1 of Peters et al. 2018
PAPER_TASKS = {
    "ner": "CoNLL-2003",
    "ner_wnut17": "CoNLL-2003",
    "ner_newswire": "CoNLL-2003",
    "textcat": "SST-5",
    "roles": "OntoNotes",
    "coreference": "OntoNotes",
    "entailment": "SNLI",
    "answers": "SQuAD",
}
