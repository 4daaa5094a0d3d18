"""RoBERTa-base in spacy-curated-transformers, random weights, in its own environment (see peer_worker.py).

Its pieces are learnt from the measured sentences: as many that a word has about 1.3 of them, as RoBERTa's own 50,265
give on English text. Docs come with their tokens, as ours do.
"""

import importlib.metadata
from pathlib import Path
from typing import Any

from peer_worker import Embedder, Sentences, serve

PIECES_PER_WORD = 1.3
VOCABULARY = 50_265  # RoBERTa's; rows that no piece has cost no time


def learn_pieces(folder: Path, sentences: Sentences) -> float:
    """Write vocab.json and merges.txt; returns pieces per word."""
    from tokenizers import ByteLevelBPETokenizer

    lines = [" " + " ".join(sentence) for sentence in sentences]
    words = sum(map(len, sentences))
    low, high = 300, VOCABULARY
    while True:
        size = (low + high) // 2
        tokenizer = ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer.train_from_iterator(lines, size, min_frequency=1, show_progress=False, special_tokens=special)
        rate = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(lines)) / words
        if high - low < 20:
            break
        low, high = (size, high) if rate > PIECES_PER_WORD else (low, size)
    tokenizer.save_model(str(folder))
    return rate


def load(folder: Path, sentences: Sentences, largest: int, threads: int) -> Embedder:
    """A pipeline of the transformer alone."""
    import spacy
    import spacy_curated_transformers  # noqa: F401
    import torch
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.util import registry

    torch.set_num_threads(threads)
    pieces = folder / "pieces"
    pieces.mkdir(exist_ok=True)
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
    loaded = registry.resolve({"loader": loader | files})["loader"]
    example = Example.from_dict(Doc(nlp.vocab, words=["a"]), {})
    pipe.initialize(lambda: [example], nlp=nlp, piecer_loader=loaded)

    def embed(part: Sentences) -> list[Any]:
        docs = [Doc(nlp.vocab, words=list(words)) for words in part]
        # in float32, one row a piece
        return [doc._.trf_data.last_hidden_layer_state.dataXd for doc in nlp.pipe(docs, batch_size=len(docs))]

    versions = {package: importlib.metadata.version(package) for package in (name, "torch")}
    return Embedder(embed, {**versions, "pieces per word": round(rate, 2)})


if __name__ == "__main__":
    serve(load)
