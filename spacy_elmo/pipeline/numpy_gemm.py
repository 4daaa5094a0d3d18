"""Matrix multiplications of the task components by numpy's library instead of BLIS, which Thinc uses by default."""

from collections.abc import Callable

from spacy.language import Language
from thinc.api import Model, NumpyOps


def build_numpy_gemm() -> Callable[[Language], Language]:
    """Build spacy-elmo.NumpyGemm.v1 for [nlp] after_pipeline_creation.

    numpy computes the matrix multiplications (gemm) of the components that the config has. They alone were three to
    six times as fast as with BLIS, and training as a whole about twice (docs/training.md). They use as many threads as
    numpy's library is told to (OMP_NUM_THREADS). Results differ by rounding. These keep BLIS: the steps of the parser
    and of ner from state to state, layers that are made later (for a label that is added, for a component that is
    added, or by replace_listeners) until the pipeline is loaded again, and other pipelines. Models on a GPU stay as
    they are.
    """

    ops = NumpyOps(use_blis=False)

    def after_pipeline_creation(nlp: Language) -> Language:
        for _, pipe in nlp.components:
            model = getattr(pipe, "model", None)
            if isinstance(model, Model):
                for node in model.walk():
                    if type(node.ops) is NumpyOps:  # not one of its subclasses, which bring their own products
                        node.ops = ops
        return nlp

    return after_pipeline_creation
