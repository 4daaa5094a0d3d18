"""Runs one of the programs of peers.py in its own environment, with nothing of this project.

    python peer_worker.py NAME FOLDER LARGEST_BATCH THREADS

Answers each line of stdin with a line of JSON: "first N FILE" embeds the first N sentences as one batch and saves them
as .npy (from the zero state, if it is the first command), "run N BATCH" embeds the first N sentences in batches and
tells the seconds. The first line, unasked, tells what is running. FOLDER is what common.write_model wrote.

    python peer_worker.py activations OPTIONS WEIGHTS SENTENCES.json LAYERS.npz

AllenNLP's biLM: the top layer of each sentence, with <S> and </S>, *Shape:* (tokens + 2, width), named by its number.
"""

import json
import logging
import os
import sys
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

Sentences = Sequence[Sequence[str]]
# returns the vectors of a batch, which can be indexed by sentence; and versions and other facts for the notes
Loaded = tuple[Callable[[Sentences], Any], dict[str, Any]]


def activations(options: str, weights: str, sentences: str, output: str) -> None:
    import numpy as np
    import torch
    from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

    bilm = _ElmoBiLm(options, weights).eval()
    found = {}
    with torch.no_grad():
        for number, sentence in enumerate(json.loads(Path(sentences).read_text(encoding="utf-8"))):
            bilm._elmo_lstm.reset_states()  # it would carry its state to the next sentence
            found[str(number)] = bilm(batch_to_ids([sentence]))["activations"][-1][0].numpy()
    np.savez(output, **found)


def allennlp(folder: Path, sentences: Sentences, largest: int, threads: int) -> Loaded:
    """AllenNLP's Elmo in evaluation with one plain mix, the mean of the layers."""
    import torch
    from allennlp.modules.elmo import Elmo, batch_to_ids

    torch.set_num_threads(threads)
    elmo = Elmo(str(folder / "options.json"), str(folder / "model.hdf5"), 1, dropout=0.0).eval()

    @torch.no_grad()
    def embed(part: Sentences) -> Any:
        return elmo(batch_to_ids(part))["elmo_representations"][0].numpy()

    return embed, {"AllenNLP": version("allennlp"), "torch": torch.__version__}


def simple_elmo(folder: Path, sentences: Sentences, largest: int, threads: int) -> Loaded:
    """bilm-tf's network under TensorFlow; the mean of the layers, as "all" would copy three times as much.

    The session stays open: without one, the package would read all weights again on each call.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from simple_elmo import ElmoModel
    from simple_elmo.elmo import weight_layers

    model = ElmoModel()
    logging.getLogger().setLevel(logging.WARNING)  # it logs every batch
    model.load(str(folder), max_batch_size=largest, limit=None)  # the ids of all the vocabulary's words are cached
    model.elmo_sentence_input = weight_layers("input", model.sentence_embeddings_op, use_layers="average")
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.compat.v1.Session(config=config)
    session.run(tf.compat.v1.global_variables_initializer())

    def embed(part: Sentences) -> Any:
        return model.get_elmo_vectors(part, warmup=False, layers="average", session=session)

    return embed, {"simple_elmo": version("simple_elmo"), "TensorFlow": tf.__version__}


PIECES_PER_WORD = 1.3
VOCABULARY = 50_265  # RoBERTa's; rows that no piece has cost no time


def learn_pieces(folder: Path, sentences: Sentences) -> float:
    """Write vocab.json and merges.txt; returns pieces per word."""
    from tokenizers import ByteLevelBPETokenizer

    lines = [" " + " ".join(sentence) for sentence in sentences]
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

    def learned(size: int) -> tuple[float, Any]:
        tokenizer = ByteLevelBPETokenizer()
        tokenizer.train_from_iterator(lines, size, min_frequency=1, show_progress=False, special_tokens=special)
        n_pieces = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(lines))
        return n_pieces / sum(map(len, sentences)), tokenizer

    # fewer pieces with a larger vocabulary
    size = 300 + bisect_left(range(300, VOCABULARY, 20), -PIECES_PER_WORD, key=lambda n: -learned(n)[0]) * 20
    rate, tokenizer = learned(size)
    folder.mkdir(exist_ok=True)
    tokenizer.save_model(str(folder))
    return rate


def roberta(folder: Path, sentences: Sentences, largest: int, threads: int) -> Loaded:
    """RoBERTa-base in spacy-curated-transformers, random weights. Docs come with their tokens, as ours do.

    Its pieces are learnt from the sentences: as many that a word has about 1.3 of them, as RoBERTa's own give on
    English text.
    """
    import spacy
    import spacy_curated_transformers  # noqa: F401
    import torch
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.util import registry

    torch.set_num_threads(threads)
    pieces = folder / "pieces"
    rate = learn_pieces(pieces, sentences)
    name = "spacy-curated-transformers"
    model = {
        "@architectures": f"{name}.RobertaTransformer.v1",
        "vocab_size": VOCABULARY,
        "piece_encoder": {"@architectures": f"{name}.ByteBpeEncoder.v1"},
        "with_spans": {"@architectures": f"{name}.WithStridedSpans.v1"},
    }
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("curated_transformer", config={"model": model})
    loader = {"@model_loaders": f"{name}.ByteBpeLoader.v1"}
    files = {"vocab_path": str(pieces / "vocab.json"), "merges_path": str(pieces / "merges.txt")}
    example = Example.from_dict(Doc(nlp.vocab, words=["a"]), {})
    pipe.initialize(lambda: [example], nlp=nlp, piecer_loader=registry.resolve({"loader": loader | files})["loader"])

    def embed(part: Sentences) -> list[Any]:
        docs = [Doc(nlp.vocab, words=list(words)) for words in part]
        # in float32, one row a piece
        return [doc._.trf_data.last_hidden_layer_state.dataXd for doc in nlp.pipe(docs, batch_size=len(docs))]

    return embed, {name: version(name), "torch": version("torch"), "pieces per word": round(rate, 2)}


def serve(load: Callable[[Path, Sentences, int, int], Loaded], folder: Path, largest: int, threads: int) -> None:
    """Load a model, and answer requests from stdin."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print must not look like an answer
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    embed, about = load(folder, sentences, largest, threads)
    print(json.dumps(about), file=replies)
    for line in sys.stdin:
        command, number, rest = line.rstrip("\n").split(" ", 2)
        part = sentences[: int(number)]
        if command == "first":
            import numpy as np

            np.save(rest, np.asarray(embed(part)))
            print(json.dumps({"saved": True}), file=replies)
            continue
        size, begin = int(rest), time.perf_counter()
        for k in range(0, len(part), size):
            first = float(embed(part[k : k + size])[0].flat[0])
            assert first == first, "the vectors are not numbers"
        print(json.dumps({"seconds": time.perf_counter() - begin}), file=replies)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    name, *arguments = sys.argv[1:]
    if name == "activations":
        activations(*arguments)
    else:
        serve(globals()[name], Path(arguments[0]), int(arguments[1]), int(arguments[2]))
