"""AllenNLP's biLM on sentences, in AllenNLP's own environment: the top layer of each, with <S> and </S>.

python worker_activations.py OPTIONS WEIGHTS SENTENCES.json LAYERS.npz
"""

import json
import sys
import warnings
from pathlib import Path


def main(options: str, weights: str, sentences: str, output: str) -> None:
    """Write an array for each sentence, *Shape:* (tokens + 2, width), named by its number."""
    warnings.filterwarnings("ignore")
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


if __name__ == "__main__":
    main(*sys.argv[1:])
