"""`elmo explore`: the page in a real browser, beside Python's own vectors and predictions; `elmo predict`."""

import json
import random
import re
import shutil
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import spacy
from commands import invoke, run
from embedded_case import model_of

from spacy_elmo import ElmoEmbedder, predict_words
from spacy_elmo.cli.explore import PREDICTED_WORDS
from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.language_model import LanguageModel

SENTENCE = "The émigrés sat on the bank of the river ."
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"


@pytest.fixture(scope="module")
def en_mini():
    """The folder of en_mini with its softmax."""
    return str(Path(__file__).parents[2] / "packages" / "en_mini" / "spacy_elmo_en_mini")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a tiny biLM with a softmax of eight words."""
    folder = tmp_path_factory.mktemp("tiny")
    model_of().save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def page_file(en_mini, tmp_path_factory):
    path = tmp_path_factory.mktemp("explore") / "explore.html"
    assert "Words: 5; occurrences of them: 41" in run("elmo", "explore", path, "--model", en_mini)
    assert path.stat().st_size < 12_000_000
    return path


def data_of(page):
    """What the page holds of the occurrences."""
    return json.loads(re.search('<script id="data"[^>]*>(.*?)</script>', page.read_text(encoding="utf8"))[1])


# The page in a browser


@pytest.fixture(scope="module")
def open_page():
    """Opens pages in Chromium. They must make no requests, and no errors in the console."""
    api = pytest.importorskip("playwright.sync_api", reason="the page's tests need pip install playwright")
    if CHROMIUM is None:
        pytest.skip("the page's tests need Chromium (apt-get install chromium)")
    faults: list[str] = []

    def opened(file):
        page = browser.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else faults.append(request.url),
        )
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        return page

    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        browser.close()
        assert faults == []


@pytest.fixture(scope="module")
def page(page_file, open_page):
    return open_page(page_file)


def read(page, sentence):
    page.fill("#sentence", sentence)
    page.press("#sentence", "Enter")
    page.wait_for_function(
        "n => sentence.words.length === n && document.querySelector('#predictions li')", arg=len(sentence.split())
    )


@pytest.mark.slow
def test_vectors_are_those_of_python(page, en_mini):
    read(page, SENTENCE)
    got = np.array(page.evaluate("sentence.layers.map(layer => layer.map(vector => [...vector]))"))
    expected = ElmoEmbedder(en_mini).embed_sentence(SENTENCE.split())
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.slow
def test_predictions_are_those_of_python(page, en_mini):
    read(page, SENTENCE)
    place = SENTENCE.split().index("bank")
    page.click(f"#tokens button:nth-child({place + 1})")
    got = page.evaluate("place => sentence.ask({place}).then(answer => answer.predictions)", place)
    words = LanguageModel.load(en_mini).words
    frequent = set(words[:PREDICTED_WORDS])
    expected = predict_words(spacy.blank("en")(SENTENCE), place, len(words), en_mini)
    for found, all_words in zip(got, expected):
        kept = [(word, p) for word, p in all_words if word in frequent]
        total = sum(p for _, p in kept)
        assert [word for word, _ in found] == [word for word, _ in kept[:10]]
        np.testing.assert_allclose([value for _, value in found], [p / total for _, p in kept[:10]], rtol=1e-3)


@pytest.mark.slow
def test_points_move_with_the_slider_and_can_be_hovered_and_pinned(page, en_mini):
    page.select_option("#word", "spring")
    count = page.evaluate("contexts.group.length")
    places = {}
    for layer in ("2", "0", "1"):
        page.evaluate("value => { const s = $('layer'); s.value = value; s.dispatchEvent(new Event('input')); }", layer)
        places[layer] = np.array(page.evaluate("contexts.places"))
        assert len(places[layer]) == count
    assert np.abs(places["1"] - places["2"]).max() > 0.1
    assert np.abs(places["0"]).max() < 0.05  # layer 0 sees the word alone
    x, y = page.evaluate("contexts.screen[0]")
    page.hover("#points", position={"x": x, "y": y})
    assert "spring" in page.inner_text("#hovered").lower()
    page.click("#points", position={"x": x, "y": y})
    nearest = page.inner_text("#nearest")
    assert nearest.startswith("Nearest to")
    assert len(page.query_selector_all("#nearest li")) == min(10, count - 1)
    # the order is that of the cosines of Python's vectors
    pinned, sentences = page.evaluate("contexts.pinned"), page.evaluate("contexts.group.map(o => [o.words, o.place])")
    embedder = ElmoEmbedder(en_mini)
    exact = [embedder.embed_sentence(words)[1, place] for words, place in sentences]
    norms = [vector / np.linalg.norm(vector) for vector in exact]
    best = max(float(norms[pinned] @ v) for i, v in enumerate(norms) if i != pinned)
    assert float(page.inner_text("#nearest li:first-child b")) == pytest.approx(best, abs=0.005)


@pytest.mark.slow
def test_keyboard_reaches_points_and_words(page):
    page.focus("#points")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    first = page.evaluate("contexts.hovered")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("contexts.hovered") != first
    page.keyboard.press("Enter")
    assert page.evaluate("contexts.pinned === contexts.hovered")
    page.focus("#tokens button[aria-pressed=true]")
    before = page.evaluate("sentence.chosen")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("sentence.chosen") == before + 1


@pytest.mark.slow
def test_two_sentences_side_by_side(page, en_mini):
    read(page, SENTENCE)
    expected_words = page.evaluate("sentence.ask({place: 4}).then(answer => answer.predictions)")
    other = "She opened an account at a bank ."
    page.fill("#second", other)
    page.press("#second", "Enter")
    page.wait_for_function("n => pair.words.length === n", arg=len(other.split()))
    page.select_option("#pair-layer", "2")
    rows = page.query_selector_all("#pair-table tbody tr")
    got = [[float(cell.inner_text()) for cell in row.query_selector_all("td")] for row in rows]
    a, b = (ElmoEmbedder(en_mini).embed_sentence(text.split())[2] for text in (SENTENCE, other))
    a, b = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (a, b))
    cosines = a @ b.T
    np.testing.assert_allclose(got, cosines, atol=0.006)
    nearest = [(i, int(j)) for i, j in enumerate(cosines.argmax(1)) if cosines[:, j].argmax() == i]
    framed = page.evaluate(
        "[...document.querySelectorAll('.nearest')].map(c => [c.parentNode.rowIndex - 1, c.cellIndex - 1])"
    )
    assert [tuple(pair) for pair in framed] == nearest
    assert page.inner_text("#pair-nearest").count(" \u2013 ") == min(5, len(nearest))
    # the sentence above is still the one whose words are predicted
    assert page.evaluate("sentence.ask({place: 4}).then(answer => answer.predictions)") == expected_words


@pytest.mark.slow
def test_the_saved_picture_and_its_words_which_do_not_cover_each_other(page, tmp_path):
    page.select_option("#word", "plant")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "plant.svg"
    download.value.save_as(tmp_path / "plant.svg")
    picture = page.context.browser.new_page()
    picture.goto((tmp_path / "plant.svg").as_uri())
    boxes = picture.evaluate(
        "[...document.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()])"
        ".map(([text, box]) => [text, box.left, box.top, box.right, box.bottom])"
    )
    n_points, n_senses = page.evaluate("contexts.group.length"), 2
    assert picture.evaluate("document.querySelectorAll('path').length") == n_points + n_senses
    picture.close()
    texts = [text for text, *_ in boxes]
    assert texts[0].startswith("plant: ")
    assert texts[-2:] == ["factory", "flower"]
    assert len(texts) > 1 + n_points // 2 + n_senses
    for (_, *a), (_, *b) in combinations(boxes, 2):
        assert a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1


KINDS = ["2008", "0", "-1", "1e3", "3.5", "constructor", "__proto__", "toString", "length", "e-mail", "post\u2013war"]
KINDS += ["New York", "25\u00a0785", "don't", "U.S.", "'tis", "<b>", "null", "\U0001f600", "Straße", "a:b"]


@pytest.mark.slow
def test_each_word_has_its_own_points(model, open_page, tmp_path):
    rng = random.Random(0)
    sentences = [rng.choices([*KINDS, "the", ".", "river"], k=rng.randint(3, 9)) for _ in range(40)]
    text, file = tmp_path / "text.jsonl", tmp_path / "page.html"
    text.write_text("".join(json.dumps({"tokens": words}) + "\n" for words in sentences))
    counts = Counter(word for words in sentences for word in words)
    chosen = [word for word in rng.sample(KINDS, len(KINDS)) if counts[word] > 1]
    run("elmo", "explore", file, text, "--words", ",".join(chosen), "--model", model)
    page, embedder = open_page(file), ElmoEmbedder(model)
    assert page.evaluate("[...$('word').options].map(option => option.value)") == chosen
    assert page.inner_text("#tokens button[aria-pressed=true]") == chosen[0]  # shown first
    for word in chosen:
        page.select_option("#word", value=word)
        shown = page.evaluate("contexts.group.filter(o => !o.own).map(o => o.layers.map(l => [...l]))")
        expected = [
            embedder.embed_sentence(words)[:, place]
            for words in sentences
            for place, other in enumerate(words)
            if other == word
        ]
        np.testing.assert_allclose(shown, expected, atol=np.abs(expected).max() / 250)  # of 8 bits
        page.hover("#points", position=dict(zip("xy", page.evaluate("contexts.screen[0]"))))
        assert page.inner_text("#hovered mark").split() == word.split()


@pytest.mark.slow
def test_a_word_that_the_tokenizer_divides(model, open_page, tmp_path):
    lines = ["I sent an e-mail to New York .", "The E-mail came .", "New mail of old York .", "New York !"]
    text, file = tmp_path / "text.txt", tmp_path / "page.html"
    text.write_text("\n".join(lines) + "\n")
    assert "occurrences of them: 4" in run("elmo", "explore", file, text, "--words", "e-mail,New York", "-m", model)
    page, embedder = open_page(file), ElmoEmbedder(model)
    first = ["I", "sent", "an", "e", "-", "mail", "to", "New", "York", "."]
    assert page.evaluate("sentence.words") == first
    assert page.inner_text("#tokens button[aria-pressed=true]") == "e"
    places = {"e-mail": [(first, 3, 6), (["The", "E", "-", "mail", "came", "."], 1, 4)]}
    places["New York"] = [(first, 7, 9), (["New", "York", "!"], 0, 2)]
    for word, found in places.items():
        page.select_option("#word", value=word)
        shown = page.evaluate("contexts.group.filter(o => !o.own).map(o => o.layers.map(l => [...l]))")
        means = [embedder.embed_sentence(words)[:, start:end].mean(1) for words, start, end in found]
        np.testing.assert_allclose(shown, means, atol=np.abs(means).max() / 250)


# The command


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A text in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("A bank in town .\nThe bank lent money .\n")
    return "a.txt"


def test_words_of_a_text(text: str, model: str) -> None:
    Path(text).write_text("They paid 25,000 for it .\nWe paid 25,000 too .\n")
    told = run("elmo", "explore", "a.html", text, "--words", '"25,000",paid,zebra', "--model", model)
    assert "zebra: less than twice in the text" in told
    data = data_of(Path("a.html"))
    assert (data["attributes"], data["predictions"]) == (["word"], True)
    assert [word for word, _ in data["words"]] == ["25,000", "paid"]
    assert [each["values"] for each in dict(data["words"])["paid"]] == [{"word": "paid"}] * 2


def test_a_text_with_a_pipeline_gives_tags_documents_and_mixes(text):
    for name in ("one", "two"):
        Path(f"{name}.txt").write_text(f"A bank in town {name} .\nThe bank of the river .\n", encoding="utf8")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(GOLDEN)}})
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PLACE", "pattern": "bank"}])
    nlp.to_disk("pipeline")
    options = ("--words", "bank", "--pipeline", "pipeline", "--parquet", "points.parquet")
    run("elmo", "explore", "page.html", "one.txt", "two.txt", *options)
    values = [occurrence["values"] for occurrence in dict(data_of(Path("page.html"))["words"])["bank"]]
    assert values == [{"document": f"{name}.txt", "entity": "PLACE"} for name in ("one", "one", "two", "two")]
    rows = pyarrow.parquet.read_table("points.parquet").to_pylist()
    expected = ElmoEmbedder(GOLDEN).embed_sentence(["A", "bank", "in", "town", "one", "."])[:, 1].mean(0)
    np.testing.assert_allclose(rows[0].pop("vector"), expected, atol=1e-5)
    assert rows[0] == {"word": "bank", "sentence": "A bank in town one .", "document": "one.txt", "entity": "PLACE"}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_senses_of_a_table(kind: str, text: str, model: str) -> None:
    rows = [("A Bank by the bank.", "bank", "money"), ("The e-mail.", "e-mail", "post")]
    rows += [("The bank lent.", "bank", "loan"), ("One e-mail to the bank.", "e-mail", "post")]
    records = [json.dumps(dict(zip(("text", "word", "sense"), row))) for row in rows]
    lines = ["text,word,sense", *map(",".join, rows)] if kind == "csv" else records
    Path(f"senses.{kind}").write_text("\n".join(lines) + "\n")
    run("elmo", "explore", "page.html", f"senses.{kind}", "--colour-by", "sense", "--model", model)
    data = data_of(Path("page.html"))
    assert data["attributes"] == ["sense"]
    found = {
        word: [
            (" ".join(data["sentences"][each["sentence"]]), each["place"], each["values"]["sense"]) for each in group
        ]
        for word, group in data["words"]
    }
    first = "A Bank by the bank ."
    assert found == {
        "bank": [(first, 1, "money"), (first, 4, "money"), ("The bank lent .", 1, "loan")],
        "e-mail": [("The e - mail .", 1, "post"), ("One e - mail to the bank .", 1, "post")],
    }


@pytest.mark.parametrize("name", ["document", "entity", "id"])
def test_a_column_may_have_any_name(name: str, text: str) -> None:
    """Also one by which the page colours without it: one's own wins."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(GOLDEN)}})
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PLACE", "pattern": "bank"}])
    nlp.to_disk("pipeline")
    rows = [{"text": "A bank .", name: "one"}, {"text": "The bank .", name: None}, {"text": "No bank .", name: "two"}]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run("elmo", "explore", "page.html", "a.jsonl", "--words", "bank", "--colour-by", name, "--pipeline", "pipeline")
    values = [occurrence["values"][name] for occurrence in dict(data_of(Path("page.html"))["words"])["bank"]]
    assert values == ["one", "none", "two"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("empty.txt",), "empty.txt: no sentence"),
        (("--colour-by", "sense"), "--colour-by is 'sense', but there is no TEXT"),
        (("right.csv", "--colour-by", "genre"), "right.csv: has 'word', 'sense' beside the text. Expected 'genre'"),
        (("senses.csv", "--colour-by", "sense"), "senses.csv, line 3: its word is 'shore', which its text"),
        (("a.txt", "--colour-by", "sense"), "Expected 'text' among its columns"),
        (("a.txt", "--parquet", "./page.html"), "this process writes there already. Expected another"),
        (("a.txt", "--lang", "xx1"), "the language is 'xx1'"),
        (("--pipeline", "none"), "none: can't be loaded"),
        (("--words", ",,"), "--words is ',,', which names no word"),
        (("a.txt", "--words", "zebra"), "--words is zebra, and the text has none of these twice"),
        (("once.txt",), "no word of the text occurs twice"),
    ],
)
def test_what_explore_refuses(options: tuple[str, ...], message: str, text: str) -> None:
    Path("empty.txt").touch()
    Path("senses.csv").write_text("text,word,sense\nA bank .,bank,money\nA bank .,shore,river\n")
    Path("right.csv").write_text("text,word,sense\nA bank .,bank,money\n")
    Path("once.txt").write_text("The cat sleeps on the bank .", encoding="utf-8")
    assert message in run("elmo", "explore", "page.html", *options, code=1)
    assert not Path("page.html").exists()


# Predictions


@pytest.mark.parametrize(("i", "n"), [(1.5, 3), (0, 0), (0, "3"), (None, 1), (4, 5)])
def test_what_predict_words_refuses(i: Any, n: Any) -> None:
    with pytest.raises(SettingsError, match=r"Expected a Doc, a whole number|i is 4, but the doc has 2 tokens"):
        predict_words(spacy.blank("en")("A bank"), i, n)


def test_predict_words_reads_the_sentence_of_the_token(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    two, one = nlp("It rains . The cat sat ."), nlp("The cat sat .")
    assert predict_words(two, 4, model=model) == predict_words(one, 1, model=model)


@pytest.mark.parametrize("i", [2, -5])
def test_predict_words_reads_the_sentence_without_the_word(model, i):
    doc = spacy.blank("en")("The cat sat on the mat .")
    found, words = predict_words(doc, i, 5, model), [token.text for token in doc]
    language_model = LanguageModel.load(model)
    layers = ElmoEmbedder(model).embed_sentence(words)[2]  # the engine, not the module that predicts
    weight, bias = (value.numpy() for value in language_model.softmax.state_dict().values())
    p = []
    for h in (layers[1, :16], layers[3, 16:]):
        exponentials = np.exp(weight.astype(np.float64) @ h + bias)
        p.append(exponentials / exponentials.sum())
    p.append(p[0] * p[1] * np.arange(1, len(bias) + 1))
    p[2] /= p[2].sum()
    for got, expected in zip(found, p):
        order = np.argsort(-expected)[:5]
        assert [word for word, _ in got] == [language_model.words[k] for k in order]
        np.testing.assert_allclose([value for _, value in got], expected[order], rtol=1e-4)


def test_predict_prints_each_place(model):
    found = json.loads(run("elmo", "predict", "The cat sat on the mat .", "--model", model, "--top", 2, "--json"))
    doc = spacy.blank("en")("The cat sat on the mat .")
    assert [place.pop("word") for place in found] == [token.text for token in doc]
    expected = predict_words(doc, 3, 2, model)._asdict()
    assert found[3] == {name: [list(pair) for pair in words] for name, words in expected.items()}
    lines = invoke("elmo", "predict", "The cat sat", "--model", model).output.splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count("%") == 3 * 3 * 5
    assert "<UNK>: any word that is not in the biLM's vocabulary" in lines


@pytest.mark.parametrize("gap", ["__", "_____", "[MASK]", "<mask>"])
def test_predict_fills_gaps(model, gap):
    """With the words that are most probable whatever stands there."""
    found = json.loads(run("elmo", "predict", f"The {gap}'s mat .", "--model", model, "--top", 3, "--json"))
    expected = predict_words(spacy.blank("en")("The cat's mat ."), 1, 3, model)._asdict()
    assert found == [{"word": gap} | {name: [list(pair) for pair in words] for name, words in expected.items()}]
    two = run("elmo", "predict", f"{gap} sat on a_b a__b {gap}.", "--model", model, "--top", 1)
    assert two.count(gap) == 2
    assert two.count("%") == 2 * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [(("  ",), "TEXT is ' ', which has no words"), (("a", "--lang", "xx1"), "the language is 'xx1'")],
)
def test_what_predict_refuses(options: tuple[str, ...], message: str) -> None:
    assert message in run("elmo", "predict", *options, code=1)
