"""The factory `elmo`."""

import warnings
from inspect import Parameter, signature

from spacy.language import Language

from ..errors import Errors, OtherLanguageWarning, SettingsError
from ..models.language import language_of
from ..models.types import BiLMModel
from . import registries  # noqa: F401  # the default config names a span getter
from .checks import Store
from .elmo import ElmoPipe

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.BiLM.v1",
    "bilm": None,
    "options_file": None,
    "weight_file": None,
    "get_spans": {
        "@span_getters": "spacy-elmo.sentences.v1",
        "window": 250,
        "overlap": 50,
        "longest_sentence": 1000,
    },
    "precision": "float32",
    "stateful": False,
    "trainable": False,
    "cached_words": 16384,
    "width": None,
}
# the other defaults are stated once, in the signature of ElmoPipe
OWN_DEFAULTS = {
    name: parameter.default
    for name, parameter in signature(ElmoPipe.__init__).parameters.items()
    if parameter.kind is Parameter.KEYWORD_ONLY
}


@Language.factory(
    "elmo",
    assigns=[
        "doc._.elmo",
        "doc._.elmo_layers",
        "span._.elmo",
        "span._.elmo_layers",
        "token._.elmo",
        "token._.elmo_layers",
    ],
    default_config={"model": DEFAULT_MODEL, **OWN_DEFAULTS},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: BiLMModel,
    attr: str,
    frozen: bool,
    set_vectors: bool,
    scalar_mix_parameters: list[float] | None,
    max_batch_tokens: int,
    store: Store,
    learn_rate_factor: float,
    cache_mb: int,
    cache_file: str | None,
) -> ElmoPipe:
    """Create the component `elmo`.

    nlp: the pipeline.
    name: name of the component.
    model: spacy-elmo.BiLM.v1, or any Model[List[Doc], List[Floats3d]] that returns *Shape:* (layers, tokens, width)
        for each doc.
    attr: name of the extension attributes. With different names there can be two embedders in one pipeline.
    frozen: whether the biLM is not trained; false: it learns from all components that have listeners.
    set_vectors: whether `.vector`, `.has_vector` and `.similarity` of tokens, spans and docs come from ELMo.
    scalar_mix_parameters: weights of the layers before the softmax (AllenNLP's name); null: the mean of the layers.
    max_batch_tokens: number of tokens that run at once, at most.
    store: what is stored on each doc: "layers" (in float32), "layers_float16", "mix" (only the vectors), or "none": the
        layers are held until all listeners have read them.
    learn_rate_factor: factor of the learning rate for a biLM that is not frozen.
    cache_mb: size in MiB of the memory in which layers are cached while components are trained on a frozen biLM.
    cache_file: path of a file in which all these layers are cached, for later epochs and runs; null: none.

    Issues an OtherLanguageWarning if the biLM's model card names another language than the pipeline's. Raises
    SettingsError if a setting cannot be used, or if another elmo pipe has the same attr.
    """
    for other, pipe in nlp.components:
        if isinstance(pipe, ElmoPipe) and pipe.attr == attr:
            raise SettingsError(Errors.ATTR_TWICE.format(attr=attr, other=other))
    language = language_of(model)
    if language is not None and nlp.lang not in (language, "xx", None):
        warning = Errors.OTHER_LANGUAGE.format(name=name, language=language, lang=nlp.lang)
        warnings.warn(warning, OtherLanguageWarning, stacklevel=2)
    return ElmoPipe(
        nlp.vocab,
        model,
        name,
        attr=attr,
        frozen=frozen,
        set_vectors=set_vectors,
        scalar_mix_parameters=scalar_mix_parameters,
        max_batch_tokens=max_batch_tokens,
        store=store,
        learn_rate_factor=learn_rate_factor,
        cache_mb=cache_mb,
        cache_file=cache_file,
    )
