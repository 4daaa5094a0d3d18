"""Ask the embedded biLM what its layers know, by this package's commands, and write the answers to results/inside.json.

    python -m scripts.bilms.inside probe_upos probe_tag probe_ent senses neighbours

Neighbours: those of ambiguous words in context, as in Table 4 of Peters et al. 2018. Each word of ambiguous_words.tsv
stands in two sentences, one for each of two senses. judged_neighbours.tsv has what a judge said of the neighbours.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy_elmo import ElmoEmbedder, WordIndex, build_index
from spacy_elmo.errors import CommandError

from ..runs.experiments import keep_result, minutes_since
from ..runs.train_runs import bilm_mark
from ..shared import TAGGED, origin, run_command, run_elmo

_SENSES = "semcor30 senseval2 senseval3 semeval2007_task17 semeval2013_task12_en"  # the first one is for training
COMMANDS = {
    "probe_upos": f"probe {' '.join(TAGGED)} --attr upos --random",
    "probe_tag": f"probe {' '.join(TAGGED)} --attr tag --random",
    "probe_ent": "probe corpus/ner/train.spacy corpus/ner/dev.spacy --attr ent --random",
    "senses": "wsd {} --first-senses corpus/senses/first_senses.tsv".format(
        " ".join(f"corpus/senses/{name}.tsv" for name in _SENSES.split())
    ),
}
WORDS = Path(__file__).with_name("ambiguous_words.tsv")
CORPORA = (Path(TAGGED[0]), Path("corpus/ner/train.spacy"))
FOUND = 5  # neighbours of each word
_AROUND = 2  # words kept on each side: a result is no copy of the corpus, and `number` finds the whole sentence


def neighbours(words: Path, corpora: Sequence[Path], embedder: ElmoEmbedder) -> dict[str, Any]:
    """Return the neighbours of ambiguous words in the last layer, and in layer 0, which sees a word alone.

    words: a table of word, sense, sentence, another sense, its sentence.
    corpora: .spacy files.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder, words.open(encoding="utf-8", newline="") as file:
        room = Path(folder)
        (room / "corpus").mkdir()
        for number, path in enumerate(corpora):
            shutil.copyfile(path, room / "corpus" / f"{number}.spacy")
        build_index(room / "corpus", room / "index", embedder, lang=None)
        index = WordIndex(room / "index", embedder)
        text = dict.fromkeys(word for i in range(len(index.corpus)) for word in index.corpus.sentence(i))
        (room / "types.txt").write_text("".join(f"{word}\n" for word in text), encoding="utf-8")
        build_index(room / "types.txt", room / "types", embedder, lang=None, layer=0)
        types = WordIndex(room / "types", embedder)
        _, *rows = csv.reader(file, delimiter="\t")
        for word, *both in rows:
            senses = []
            for sense, sentence in zip(both[::2], both[1::2]):
                near = [
                    {
                        "cosine": round(one.cosine, 3),
                        "number": one.sentence,
                        "before": one.words[max(0, one.place - _AROUND) : one.place],
                        "word": one.words[one.place],
                        "after": one.words[one.place + 1 : one.place + 1 + _AROUND],
                    }
                    for one in index.neighbours(sentence, word, FOUND, one_per_sentence=True)
                ]
                senses.append({"sense": sense, "sentence": sentence, "neighbours": near})
            alone = types.neighbours(word, word, FOUND, other_words=True)
            static = [{"cosine": round(one.cosine, 3), "word": one.words[0]} for one in alone]
            found.append({"word": word, "static": static, "senses": senses})
        return {"layer": index.header.layer, "tokens": len(index), "sentences": len(index.corpus), "words": found}


def main(names: list[str]) -> None:
    """Put a record for each of NAMES into results/inside.json: probe_upos, probe_tag, probe_ent, senses, neighbours."""
    for name in names:
        facts, begin = {**origin(), "bilm": bilm_mark()}, time.perf_counter()
        if name == "neighbours":
            command, result = "python -m scripts.bilms.inside neighbours", neighbours(WORDS, CORPORA, ElmoEmbedder())
        elif name in COMMANDS:
            command = f"python -m spacy elmo {COMMANDS[name]} --json"
            result = json.loads(run_elmo(*shlex.split(COMMANDS[name]), "--json", output=True))
        else:
            raise CommandError(f"the question is {name!r}. Expected one of {', '.join([*COMMANDS, 'neighbours'])}.")
        measured = {"minutes": minutes_since(begin), "result": result}
        keep_result("inside", name, {"command": command, **facts, **measured})


if __name__ == "__main__":
    run_command(main)
