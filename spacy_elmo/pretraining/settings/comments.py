"""What a pretraining config says of its settings."""

import re

COMMENTS = {
    "paths": "relative paths begin at the folder that the command runs in",
    "paths.train": "text, one sentence a line (plain, .gz, .xz, .zst), .jsonl or .spacy: a file, a folder or a pattern",
    "paths.heldout": "the same, for the held-out perplexity; null: cut off from paths.train",
    "paths.vocabulary": "one word a line, the most frequent first (spacy elmo vocab writes one); null: built from "
    "paths.train",
    "paths.init": 'folder of a biLM to go on from, with softmax and vocabulary where it has them, or "en_mini"; '
    "null: random weights",
    "bilm": "sizes of the network, laid out as options.json; left out: those of paths.init",
    "corpus.language": 'whose spaCy tokenizer splits the text, like "en"; null: words are separated by blanks',
    "corpus.heldout_share": "last share of the sentences that is held out, where paths.heldout is null",
    "corpus.shuffle_block": "sentences are shuffled inside blocks of so many, and the blocks among themselves",
    "vocabulary.size": "words that the softmax predicts, <S>, </S> and <UNK> included",
    "vocabulary.min_count": "how often a word must occur to be one of them",
    "training.streams": "rows of a batch, of all processes together",
    "training.steps": "positions of a batch in each row, and steps of truncated back-propagation",
    "training.zero_state_share": "share of the streams in which each sentence starts from the zero state, not the "
    "carried one",
    "training.dropout": "on each LSTM layer's input and the top layer's output",
    "training.epochs": "length of the run",
    "training.total_tokens": "the same in tokens, which counts where it is set",
    "training.accumulate": "batches of an update",
    "training.frozen_tokens": "so many tokens at the beginning of a run from paths.init train the softmax alone",
    "training.workers": "threads of a process, 1 or an even number",
    "training.precision": 'of the matrix products: "float32", "bfloat16", or "auto": bfloat16 where the machine has '
    "instructions for it",
    "training.device": '"cpu" or "cuda"',
    "training.seed": "of the weights, the order of the sentences, and all else that is drawn",
    "training.patience": "evaluations without a better held-out perplexity after which the run stops; 0: never",
    "training.softmax.kind": '"sampled" (log-uniform negatives, corrected), "full" or "adaptive"',
    "training.softmax.negatives": "sampled words, shared by a batch and both directions",
    "training.softmax.cutoffs": "where the clusters of the adaptive softmax begin",
    "training.optimizer.name": '"adamw" or "adagrad", whose rate, clip_norm and loss_scale make sense together alone',
    "training.optimizer.learning_rate": "highest rate of the schedule",
    "training.optimizer.beta1": "AdamW's",
    "training.optimizer.beta2": "AdamW's",
    "training.optimizer.epsilon": "added to the denominator of an update",
    "training.optimizer.weight_decay": "AdamW's, of all matrices of the biLM, not of the softmax",
    "training.optimizer.initial_accumulator": "where Adagrad's sums of squares begin",
    "training.optimizer.clip_norm": "bound of the gradient's global norm",
    "training.optimizer.loss_scale": "what the mean loss is multiplied by before the gradient is clipped",
    "training.schedule.kind": 'how the rate falls: "constant" (not at all), "linear" or "cosine"',
    "training.schedule.warmup_steps": "updates of its linear rise",
    "training.schedule.decay_share": "last share of the run in which it falls",
    "training.schedule.final_share": "share of the rate that is left at the end",
    "evaluation.every": "updates from one evaluation to the next",
    "evaluation.checkpoint_every": "updates from one checkpoint to the next",
    "evaluation.sentences": "held-out sentences scored on the way, spread over the held-out text; at the end all are",
}


def commented(text: str) -> str:
    """A config with a line of explanation above each setting."""
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        header, setting = re.fullmatch(r"\[(.+)\]", line), re.match(r"(\w+) = ", line)
        if header:
            section = header[1]
        key = section if header else f"{section}.{setting[1]}" if setting else ""
        if key in COMMENTS:
            lines.append(f"# {COMMENTS[key]}")
        lines.append(line)
    return "\n".join(lines) + "\n"
