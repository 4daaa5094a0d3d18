"""Each converter: small files become docs as a person reads them, and damaged lines are named."""

import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from role_cases import roles_in
from spacy.tokens import Doc, DocBin

from scripts import convert
from scripts.convert import Question, divide, place_of, train_and_dev
from spacy_elmo.analysis.senses import Instance, Lemma, SenseSentence, read_first_senses, read_senses
from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.coreference import clusters_of
from spacy_elmo.tasks.entailment import KEYS
from spacy_elmo.tasks.shared import texts_of

TWEETS = (
    "@\tB-PER\ncolgo\tB-PER\nhey\tO\n\n"  # two entities side by side
    "New\tB-LOC\nYork\tI-LOC\n \t \nMoscow\tI-LOC\nBBC\tI-ORG\nNews\tI-ORG\n\t\n"  # I- begins one; blanks separate
    "\tO\n\n"  # a tweet without a word
    "ke s\tO\n😄 \tO\n\tO\nAus\u00adtralian\tB-LOC\r\n"  # a blank inside a word and behind one
)
ROLES = (
    "# sent_id = one\n"
    "President\tNNP\tPROPN\t-\t-\t(ARG0*\t*\n"
    "Bush\tNNP\tPROPN\t-\t-\t*)\t*\n"
    "named\tVBD\tVERB\tname\tname.01\t(V*)\t*\n"
    "people\tNNS\tNOUN\t-\t-\t(ARG1*)\t(ARG0*)\n"
    "to\tTO\tPART\t-\t-\t(C-ARG1*\t*\n"
    "help\tVB\tVERB\thelp\thelp.01\t*)\t(V*)\n\n"
    "# sent_id = two\n# text = #\n#\tNN\tSYM\t-\t-\n\n"
)
LITBANK = [("Her", "(0)|(1"), ("sister", "1)"), ("slept", "_"), (".", ""), ("", ""), ("She", "(1)"), ("I", "(2)")]
SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
    '1\tA man sleeps .\tHe is old .\t4.5\tNEUTRAL\r\n2\tTwo  dogs\t" A dog\t3\tENTAILMENT\r\n'
)
CONTEXT = "In 1990 Anna went to Bonn. Bert went to Rome in 199."
ITEM = {"question": " Where did Bert go? ", "answer": "Rome"}
SQUAD = {"question": "Where?", "answers": [{"answer_start": 21, "text": "Bonn"}, {"answer_start": 0, "text": "Rome"}]}
INDEX = """bank%1:14:00:: 08420278 2 20
bank%1:17:01:: 09213565 1 25
open%3:00:00:: 01652782 1 60
open%5:00:00:available:00 00183053 2 3
river_bank%1:17:00:: 09213999 1 0
"""
SENSES = """# token\tlemma\tpos\tsenses (resource:reftype:reference, separated by a blank)
# d0 sent 1
The\tthe\tDT\t-
river_bank\triver_bank\tNN\tWordNet-eng30:sense_number:1 WordNet-eng30:lexical_key:1:17:00::
# d0 sent 2
Banks\tBank\tNNS\tWordNet-2.1:sense:bank%1:14:00:: WordNet-2.1:sense:bank%1:99:00::
open\topen\tJJ\tWordNet-eng171:lexical_key:5:00:00:available:00;3:00:00:: WordNet-eng171:synset:eng171-0-a
n't\tn't\tRB\tWordNet-eng171:lexical_key:U
"""

VOCAB = spacy.blank("xx").vocab


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / name


def converted(folder: Path, converter: str, text: str, name: str = "source", **options: Any) -> list[Doc]:
    """Return the docs that a converter makes of a text."""
    source, target = written(folder, name, text), folder / "corpus" / "target.spacy"
    if converter in ("answers", "entailment"):
        getattr(convert, converter)(target, [source], **options)
    else:
        getattr(convert, converter)(source, target, **options)
    return list(DocBin().from_disk(target).get_docs(VOCAB))


def test_entities(tmp_path: Path) -> None:
    docs = converted(tmp_path, "conll", TWEETS)
    assert [([token.text for token in doc], [(ent.text, ent.label_) for ent in doc.ents]) for doc in docs] == [
        (["@", "colgo", "hey"], [("@", "PER"), ("colgo", "PER")]),
        (["New", "York"], [("New York", "LOC")]),
        (["Moscow", "BBC", "News"], [("Moscow", "LOC"), ("BBC News", "ORG")]),
        (["ke s", "😄", "Aus\u00adtralian"], [("Aus\u00adtralian", "LOC")]),
    ]
    assert all(doc.has_unknown_spaces for doc in docs)  # spaCy then trains on these words
    first, second = converted(
        tmp_path, "conll", "-DOCSTART- O\n\na\tO\nBonn\tB-LOC\n\nRome\tI-LOC\nb\tO\n-DOCSTART- O\n"
    )
    assert [doc.text.strip() for doc in (first, second)] == ["a Bonn", "Rome b"]
    assert [(ent.text, ent.label_) for ent in second.ents] == [("Rome", "LOC")]


def test_roles(tmp_path: Path) -> None:
    first, second = converted(tmp_path, "roles", ROLES)
    assert roles_in(first) == {
        2: [(0, 2, "ARG0"), (2, 3, "V"), (3, 4, "ARG1"), (4, 6, "C-ARG1")],
        5: [(3, 4, "ARG0"), (5, 6, "V")],
    }
    assert (list(second.spans), len(second.spans["predicates"])) == (["predicates"], 0)  # annotated: it has none


def test_coreference(tmp_path: Path) -> None:
    lines = ["\t".join(["x", "0", "0", word, "_", mark]) if word else "" for word, mark in LITBANK]
    text = "\n".join(["#begin document (x); part 0", *lines, "", "#end document", ""])
    numbers = {"train": 1, "dev": convert.DEV[0], "test": convert.TEST[0]}
    for number in numbers.values():
        written(tmp_path, f"{number}_x_brat.conll", text)
    convert.coreference(tmp_path, tmp_path / "corpus")
    for part in numbers:
        [doc] = DocBin().from_disk(tmp_path / "corpus" / f"{part}.spacy").get_docs(VOCAB)
        assert [sent.text for sent in doc.sents] == ["Her sister slept .", "She I"]
        found = [[(span.start, span.text) for span in cluster] for cluster in clusters_of(doc)]
        assert found == [[(0, "Her")], [(0, "Her sister"), (4, "She")], [(5, "I")]]
    assert len({*convert.DEV, *convert.TEST}) == 20


def test_sentiment(tmp_path: Path) -> None:
    first, second = converted(tmp_path, "sst", "__label__5\tA  fine\u00a0film\n\n__label__1\t`` Bad ''\n")
    assert [token.text for token in first] == ["A", "fine", "film"]
    assert (first.cats, second.cats) == ({"1": 0.0, "5": 1.0}, {"1": 1.0, "5": 0.0})


@pytest.mark.parametrize("name", ["x.tsv", "x.jsonl", "SICK_x.txt", "labels.dev", "snli_1.0_x.jsonl", "snli_1.0_x.txt"])
def test_pairs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [("neutral", "A man sleeps .", "He is old . "), ("entailment", "Two  dogs", '" A dog')]
    snli = [  # as published, on a class "-" no three annotators agreed
        {
            "annotator_labels": [label, "neutral"],
            "gold_label": label,
            "sentence1": premise,
            "sentence1_parse": "(ROOT (NP))",
            "sentence2": hypothesis,
            "sentence2_parse": "(ROOT (S))",
        }
        for label, premise, hypothesis in [("-", "A", "B"), *pairs]
    ]
    texts = {
        "x.tsv": "".join("\t".join(pair) + "\n" for pair in pairs),
        "x.jsonl": "".join(json.dumps(dict(zip(("label", "premise", "hypothesis"), pair))) + "\n" for pair in pairs),
        "SICK_x.txt": SICK,
        "labels.dev": "neutral\nentailment\n",
        "snli_1.0_x.jsonl": "".join(json.dumps(row) + "\n" for row in snli),
        "snli_1.0_x.txt": "".join(
            "\t".join(map(str, row)) + "\n" for row in [snli[0], *(row.values() for row in snli)]
        ),
    }
    for place, part in ((1, "s1.dev"), (2, "s2.dev")):
        written(tmp_path, part, "".join(f"{pair[place]}\n" for pair in pairs))
    first, second = converted(tmp_path, "entailment", texts[name], name)
    assert ("1 pairs with - for a class left out" in capsys.readouterr().out) == name.startswith("snli")
    assert (first.text, second.text) == ("A man sleeps .\nHe is old .", 'Two dogs\n" A dog')
    assert first.cats == {"contradiction": 0.0, "entailment": 0.0, "neutral": 1.0}
    pair = texts_of(second, KEYS)
    assert pair is not None
    assert [token.text for token in pair[1]] == ['"', "A", "dog"]


@pytest.mark.parametrize(("number", "kept"), [(1, 4), (2, 2), (3, 2), (4, 1), (9, 0)])
def test_pairs_of_a_premise_stay_together(number: int, kept: int) -> None:
    pairs = [("neutral", premise, "h") for premise in "abccd"]
    assert divide(pairs, number) == (pairs[:kept], pairs[kept:])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("paragraphs.json", [{"context": CONTEXT, "qas": [ITEM]}]),
        ("questions.json", [{"context": CONTEXT, **ITEM}]),
        ("lines.jsonl", {"context": CONTEXT, "questions": [ITEM]}),
    ],
)
def test_questions(name: str, content: Any, tmp_path: Path) -> None:
    [doc] = converted(tmp_path, "answers", json.dumps(content), name)
    assert [doc.spans[key][0].text for key in ("question", "context")] == ["Where did Bert go?", CONTEXT]
    assert [span.text for span in doc.spans["answer"]] == doc.spans["answer"].attrs["texts"] == ["Rome"]


def test_questions_of_squad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"answer_start": 8, "text": "Anna"}
    impossible = {"question": "Who?", "is_impossible": True, "answers": [], "plausible_answers": [answer]}
    paragraphs = [{"context": CONTEXT, "qas": [SQUAD, impossible]}, {"context": CONTEXT, "qas": []}]
    content = {"version": "v2.0", "data": [{"title": "Bonn", "paragraphs": paragraphs}]}
    [doc] = converted(tmp_path, "answers", json.dumps(content), "squad.json")
    assert [span.text for span in doc.spans["answer"]] == ["Bonn"]  # the other does not stand where it should
    assert "1 questions without an answer in their context left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "question", "place"),
    [
        ("199", "When?", CONTEXT.index("199.")),  # not in 1990
        ("went", "What did Bert do?", CONTEXT.rindex("went")),
        ("went", "What did Anna do?", CONTEXT.index("went")),
        ("Paris", "Where?", -1),
        ("", "Where?", -1),
    ],
)
def test_where_an_answer_stands(answer: str, question: str, place: int) -> None:
    assert place_of(answer, Question(CONTEXT, question, ((None, answer),))) == place


def test_texts_of_questions() -> None:
    questions = [Question(f"Text  {i}", f"{k}?", ((None, "Text"),)) for i in range(40) for k in (0, 1)]
    twice = Question("Text  3", "0?", ((None, "3"),))  # asked before
    train, dev = train_and_dev([*questions, twice])
    keys = sorted({one.key for one in questions})
    assert sorted({one.key for one in dev}) == keys[:4]
    assert sorted({one.key for one in train}) == keys[4:]
    assert (len(train), len(dev)) == (72, 8)
    assert twice not in train + dev


def test_paragraphs_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, "other.json", json.dumps([{"context": f"{CONTEXT} ", "qas": [ITEM]}]))
    with pytest.raises(CorpusError, match="nothing in it"):
        converted(
            tmp_path, "answers", json.dumps([{"context": CONTEXT, **ITEM}]), "x.json", without=tmp_path / "other.json"
        )


def test_senses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, source = written(tmp_path, "index.sense", INDEX), written(tmp_path, "test.tsv", SENSES)
    convert.senses(index, tmp_path / "senses", [source])
    river = Instance(1, 3, Lemma("river_bank", "n"), ("river_bank%1:17:00::",))
    bank = Instance(0, 1, Lemma("bank", "n"), ("bank%1:14:00::",))
    open_ = Instance(1, 2, Lemma("open", "a"), ("open%5:00:00:available:00", "open%3:00:00::"))
    assert read_senses(tmp_path / "senses" / "test.tsv") == [
        SenseSentence(["The", "river", "bank"], [river]),
        SenseSentence(["Banks", "open", "n't"], [bank, open_]),
    ]
    assert read_first_senses(tmp_path / "senses" / "first_senses.tsv") == {
        Lemma("bank", "n"): "bank%1:17:01::",
        Lemma("open", "a"): "open%3:00:00::",
        Lemma("river_bank", "n"): "river_bank%1:17:00::",
    }
    assert "3 words with senses, 1 left out" in capsys.readouterr().out
    for line, message in (("bank\tbank\n", "test.tsv, line 1"), ("The\tthe\tDT\t-\n", "no word has a sense")):
        source.write_text(line)
        with pytest.raises(CorpusError, match=message):
            convert.senses(index, tmp_path / "senses", [source])


@pytest.mark.parametrize(
    ("converter", "text", "message"),
    [
        ("conll", "a\tO\nb O\n", "line 2: got 'b O'. Expected a word, a tab and a tag"),
        ("conll", "a\tO\n\tB-PER\n", "line 2: got .*Expected a word, a tab"),
        ("roles", "\n\na\tX\tX\tgo\tgo.01\n", "line 3: .* Expected .* a column for each predicate"),
        ("roles", "a\tX\tX\tgo\tgo.01\t(V*\nb\tX\tX\t-\t-\t(ARG0*)\n", r"line 1: .*got the roles '\(V\* \(ARG0\*\)'"),
        ("sst", "__label__1\ta\nno label\tb\n", "line 2: .*Expected __label__"),
        ("entailment", "neutral\ta\tb\nneutral\t \tb\n", "after 1 pairs got .*none of them empty"),
        ("entailment", "maybe\ta\tb\n", r"got 'maybe'.*Expected a class \(contradiction, entailment, neutral\)"),
        ("answers", '[{"question": "?"}]', "KeyError: .*Expected questions with answers"),
    ],
)
def test_damaged_files(converter: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=message) as error:
        converted(tmp_path, converter, text)
    assert "source" in str(error.value)
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize(("mark", "message"), [("3)", r"got '3\)'"), ("(3", "open cluster 3")])
def test_damaged_mentions(mark: str, message: str, tmp_path: Path) -> None:
    written(tmp_path, "1_x.conll", f"x\t0\t0\ta\t_\t{mark}\n")
    with pytest.raises(CorpusError, match=message):
        convert.coreference(tmp_path, tmp_path / "corpus")
