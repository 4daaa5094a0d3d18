"""Matrix products of the task components by numpy's library instead of BLIS, which Thinc uses by default."""

from collections.abc import Callable

from spacy.language import Language
from thinc.api import Model, NumpyOps


def build_numpy_gemm() -> Callable[[Language], Language]:
    """Build spacy-elmo.NumpyGemm.v1 for [nlp] after_pipeline_creation.

    The matrix products (gemm) of all components are numpy's, which were three to six times as fast as BLIS where they
    were measured (docs/training.md). They use as many threads as numpy's library is told to (OMP_NUM_THREADS). Other
    pipelines, and models on a GPU, stay as they are. Results differ by rounding.
    """

    def after_pipeline_creation(nlp: Language) -> Language:
        for _, pipe in nlp.components:
            model = getattr(pipe, "model", None)
            if isinstance(model, Model):
                for node in model.walk():
                    if type(node.ops) is NumpyOps:  # not one of its subclasses, which bring their own products
                        node.ops = NumpyOps(use_blis=False)
        return nlp

    return after_pipeline_creation
