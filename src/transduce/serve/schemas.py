"""The bodies of requests and answers, which are also the OpenAPI description."""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from transduce.inference.glossary import Glossary
from transduce.inference.sentences import Split

TO = "The code of the language to write, for a model that writes several."


class FirstFault(FailFast):
    """Report only the first error of a list. Hashable, as a union requires."""

    def __hash__(self) -> int:
        return hash(self.fail_fast)


Texts = Annotated[list[str], FirstFault()]

SPLIT = (
    "sentences: a text is cut into its sentences; none: it is read as a whole; auto: cut, if the model was trained on "
    "pairs of single sentences."
)

PROTECT = (
    "keep numbers, addresses, codes, placeholders and emoji, leave text without letters and digits as it is, and read "
    "capitals, quotes and invisible characters as the training text had them."
)
MOST_TERMS = 2_000  # of a request
GLOSSARY = "terms and their translations, which outputs use: an object, or its JSON as text in a form."


def _terms(given: Any) -> Any:
    """A glossary; a form's is JSON as text. Raises ValueError for text that is none."""
    try:
        terms = (json.loads(given) if given.strip() else None) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON object of terms and their translations") from None
    if isinstance(terms, dict) and len(terms) > MOST_TERMS:
        raise ValueError(f"{len(terms):,} terms; a request may have {MOST_TERMS:,} at most")
    return terms


GlossaryField = Annotated[dict[str, str] | None, BeforeValidator(_terms)]


def terms_of(glossary: dict[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The terms of a request. Raises InputError for terms that are none."""
    return Glossary.of(glossary).terms


class Problem(BaseModel):
    """Why a request was not answered."""

    error: str


class OpenAIError(BaseModel):
    """type: invalid_request_error, or server_error. code: the status."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIProblem(BaseModel):
    """The same, as OpenAI's clients read it."""

    error: OpenAIError


class TranslateRequest(BaseModel):
    """As LibreTranslate has it; keys that it does not know are ignored."""

    model_config = ConfigDict(json_schema_extra={"example": {"q": "Two dogs run.", "source": "en", "target": "de"}})

    q: str | Texts = Field(description="A text, or several.")
    source: str = Field(description='Language code, or "auto" for the language that is detected.')
    target: str = Field(description="Language code; it chooses the language of a model that writes several.")
    format: Literal["text", "html"] = Field(
        default="text", description="html: markup is kept, text between is translated."
    )
    alternatives: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Further translations of each text: at most so many, as the model has them.",
    )
    api_key: str | None = Field(default=None, description="If the server wants one.")
    model: str | None = Field(
        default=None, description="Our addition: a model by name; its languages are then not asked."
    )
    split: Split = Field(default="auto", description=f"Our addition: {SPLIT}")
    protect: bool = Field(default=True, description=f"Our addition: {PROTECT}")
    glossary: GlossaryField = Field(default=None, description=f"Our addition: {GLOSSARY}")
    matches: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Our addition, for a model with a translation memory: also list its pairs whose sources are at "
        "least so similar to a part of the text, in percent.",
    )


class DetectedLanguage(BaseModel):
    """A language and how sure it is that a text is in it, in percent; "und" and 0 where that is not known."""

    language: str
    confidence: float


class MatchAnswer(BaseModel):
    """A pair of a translation memory, its number, and the similarity of its source in percent."""

    similarity: int
    source: str
    target: str
    pair: int


class TranslateAnswer(BaseModel):
    """A list where q was a list."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    pivot: str | None = Field(
        default=None, description="Our addition: the language between, where two models translate one behind the other."
    )
    matches: list[MatchAnswer] | list[list[MatchAnswer]] | None = None
    confidence: float | list[float | None] | None = Field(
        default=None,
        description="Our addition: the share of the words that are right, as a calibrated model expects it.",
    )
    warnings: list[str] | list[list[str]] | None = Field(
        default=None, description="Our addition: what an output lacks of its source, or repeats, a sentence each."
    )


class AlternativesRequest(BaseModel):
    """A word of a translation that is to be another. Characters are counted as code points."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"q": "Two dogs run.", "source": "en", "target": "de", "start": 0, "end": 1}},
    )

    q: str = Field(description="The text, as /translate was given it.")
    source: str = Field(description="As in /translate.")
    target: str = Field(description="As in /translate.")
    start: int = Field(ge=0, description="The word's first character in the translation.")
    end: int = Field(ge=1, description="The character behind its last one.")
    outputs: Texts | None = Field(
        default=None,
        description="The translation of each sentence, as an answer of this route gave them; by default the model's.",
    )
    most: int = Field(default=8, ge=1, le=20, description="How many alternatives to look for.")
    model: str | None = Field(default=None, description="A model by name; its languages are then not asked.")
    split: Split = Field(default="auto", description=SPLIT[0].upper() + SPLIT[1:])

    @model_validator(mode="after")
    def _has_characters(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end: expected more than start, {self.start}; got {self.end}")
        return self


class LinkAnswer(BaseModel):
    """A word of the source, characters [start, end) of the text, and the share of cross-attention that it has."""

    start: int
    end: int
    weight: float


class WordAlternative(BaseModel):
    """Another word in this place, and the translation that goes on from it. score: of the sentence."""

    word: str
    translatedText: str
    outputs: list[str]
    score: float


class AlternativesAnswer(BaseModel):
    """Other words in the place of one, the best first.

    outputs: the translation of each sentence; sentence: the one with the word. start, end: the characters of
    `translatedText` that an alternative replaces first.
    """

    translatedText: str
    outputs: list[str]
    sentence: int
    start: int
    end: int
    links: list[LinkAnswer]
    alternatives: list[WordAlternative]


class Language(BaseModel):
    """A language that some model reads."""

    code: str
    name: str
    targets: list[str]


class SearchRequest(BaseModel):
    """How to search, and with which model."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(default=None, description="A model by name; by default the first.")
    method: Literal["greedy", "beam", "sample"] | None = Field(default=None, description="By default the recipe's.")
    beam: int | None = Field(default=None, ge=1, le=1000)
    alpha: float | None = Field(
        default=None, ge=0, le=10, allow_inf_nan=False, description="Ranked by log p / L^alpha."
    )
    nbest: int | None = Field(default=None, ge=1, le=1000, description="Outputs listed for each text.")
    max_new: int | None = Field(default=None, ge=0, le=100_000, description="Length beyond what the source suggests.")
    temperature: float | None = Field(default=None, ge=0.01, le=100, allow_inf_nan=False)
    top_k: int | None = Field(default=None, ge=1, le=1_000_000)
    top_p: float | None = Field(default=None, ge=0.001, le=1, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=0, le=2**32 - 1)


class PredictRequest(SearchRequest):
    """`transduce predict` over HTTP: each text is treated as a line is there."""

    model_config = ConfigDict(json_schema_extra={"example": {"texts": ["Two dogs run."], "beam": 4, "nbest": 3}})

    texts: Texts = Field(description="Each is translated, or continued, by itself.")
    to: str = Field(default="", max_length=100, description=TO)
    split: Split = Field(default="auto", description=SPLIT[0].upper() + SPLIT[1:])
    long: Literal["split", "truncate", "refuse"] = Field(default="split", description="Of a text too long to read.")
    scores: bool = Field(default=False, description="Add score and log_probability.")
    tokens: bool = Field(default=False, description="Add tokens and their log-probabilities.")
    alignment: bool = Field(default=False, description="Add which source token each output token attended to most.")
    attention: bool = Field(default=False, description="Add all attention weights.")
    protect: bool = Field(default=True, description=PROTECT)
    glossary: GlossaryField = Field(default=None, description=GLOSSARY)
    origins: bool = Field(
        default=False, description="Of a model with a translation memory, add where each token came from."
    )
    matches: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Of a model with a translation memory, add the pairs whose sources are at least so similar to the "
        "text, in percent.",
    )


class NodeAnswer(BaseModel):
    """A node of a tree: its words, its likeliest label, and how likely that is."""

    text: str
    label: str
    probability: float


class LabelledWordAnswer(BaseModel):
    """A word, its label and the probability of this one, and its characters [start, end) of the text."""

    word: str
    label: str
    probability: float
    start: int
    end: int


class EntityAnswer(BaseModel):
    """Words of one kind, their characters [start, end) of the text, and the probability of their labels together."""

    kind: str
    text: str
    start: int
    end: int
    probability: float


class PhraseAnswer(BaseModel):
    """A phrase over the words [start, end), from 0, and the probability that the sentence has it."""

    label: str
    start: int
    end: int
    probability: float


class CutAnswer(BaseModel):
    """How many tokens a text has, and how many of them were read."""

    tokens: int
    read: int


class Output(BaseModel):
    """One output. ended is false when it was cut off at its limit; log-probabilities are natural."""

    text: str
    ended: bool
    score: float | None = None
    log_probability: float | None = None
    tokens: list[str] | None = None
    token_log_probabilities: list[float] | None = None
    probabilities: dict[str, float] | None = None
    """Of every label, from a classifier."""
    start: int | None = Field(default=None, description="Of a span: its first character in the text.")
    end: int | None = Field(default=None, description="Of a span: the character behind its last one in the text.")
    no_answer: float | None = Field(default=None, description="The probability that the text holds no answer.")
    label: str | None = Field(default=None, description="Of a tree: the label of its root.")
    nodes: list[NodeAnswer] | None = Field(default=None, description="Of a tree: every node, each behind its parts.")
    words: list[LabelledWordAnswer] | None = Field(default=None, description="Of a tagger: every word with its label.")
    entities: list[EntityAnswer] | None = Field(default=None, description="Of a tagger: the spans that labels say.")
    phrases: list[PhraseAnswer] | None = Field(default=None, description="Of a chart parser: those of its tree.")
    cut: CutAnswer | None = Field(default=None, description="Of a text that was cut, as it is longer than is read.")
    vector: list[float] | None = Field(default=None, description="Of a sentence encoder: the vector of the text.")


class AttentionAnswer(BaseModel):
    """Weights as heads x rows x columns by module. A row is the output token that it helped to predict; the columns of
    the modules in `cross` are the source's tokens, those of others what the module itself read.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    cross: list[str]
    weights: dict[str, list[list[list[float]]]] | None = None
    alignment: list[int] | None = Field(
        default=None,
        description="For each output token, the place of its source token: the mean of all cross-attention.",
    )


class OriginEntryAnswer(BaseModel):
    """An entry of a memory that says a token: its pair, its place in the target, its part of p_knn, its distance."""

    pair: int
    position: int
    weight: float
    distance: float


class TokenOriginAnswer(BaseModel):
    """Where a token came from: the memory's weight there, and its part of the token's probability."""

    token: str
    memory: float
    share: float
    entries: list[OriginEntryAnswer]


class MemoryPairAnswer(BaseModel):
    """A pair of a memory."""

    source: str
    target: str


class PredictionAnswer(Output):
    """The best output, and what else was requested. attention is null for a text that was read in pieces."""

    nbest: list[Output] | None = None
    matches: list[MatchAnswer] | None = None
    origins: list[TokenOriginAnswer] | None = None
    origin_pairs: dict[str, MemoryPairAnswer] | None = Field(
        default=None, description="The pairs that origins name, by number."
    )
    confidence: float | None = Field(
        default=None, description="The share of the words that are right, as a calibrated model expects it."
    )
    word_confidences: list[tuple[str, float]] | None = Field(
        default=None, description="Each word of the output, and the probability that it is right."
    )
    unknown_words: list[str] | None = Field(default=None, description="Words of the text that no training source had.")
    warnings: list[str] | None = Field(
        default=None, description="What the output lacks of its source, or repeats, a sentence each."
    )
    unseen: float | None = Field(
        default=None,
        description="The share of the text's characters that no training source had, where the model knows them.",
    )
    attention: AttentionAnswer | None = None


class PredictAnswer(BaseModel):
    """Predictions in the order of the texts. version counts how often this model was loaded."""

    model: str
    version: int
    predictions: list[PredictionAnswer]


class StreamRequest(BaseModel):
    """One text, translated or continued greedily."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"text": "Two dogs run."}})

    text: str
    model: str | None = Field(default=None, description="A model by name; by default the first.")
    to: str = Field(default="", max_length=100, description=TO)
    split: Split = Field(default="auto", description=SPLIT[0].upper() + SPLIT[1:])
    max_new: int | None = Field(default=None, ge=0, le=100_000, description="Length beyond what the source suggests.")


class GenerateRequest(BaseModel):
    """A text out of a language model, as `transduce generate` writes it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"text": "Two dogs", "temperature": 0.8}})

    text: str = Field(default="", description="The text that it begins with.")
    model: str | None = Field(default=None, description="A model by name; by default the first.")
    acrostic: str = Field(
        default="", max_length=64, description="The first characters of the lines, one a line, in place of a text."
    )
    separator: str | None = Field(
        default=None, min_length=1, max_length=16, description="What stands between the lines; by default by the model."
    )
    method: Literal["sample", "greedy"] = "sample"
    max_new: int | None = Field(default=None, ge=0, le=100_000, description="Tokens to write at most.")
    temperature: float | None = Field(default=None, ge=0.01, le=100, allow_inf_nan=False)
    top_k: int | None = Field(default=None, ge=1, le=1_000_000)
    top_p: float | None = Field(default=None, ge=0.001, le=1, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=0, le=2**32 - 1)


class ModelState(BaseModel):
    """One model. targets: the languages to choose from, of a model that writes several.

    problem: why its current file is not in use.
    """

    name: str
    version: int
    task: str
    source: str | None
    target: str | None
    targets: list[str] | None = None
    problem: str | None = None


class ListedModel(ModelState):
    """One model, also as OpenAI's clients read it. id: its name. created: 0, as model files do not say it."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "transduce"


class ModelList(BaseModel):
    """The models by name, the default first."""

    object: Literal["list"] = "list"
    data: list[ListedModel]


class Ready(BaseModel):
    """Whether requests are taken."""

    ready: bool
    models: list[ModelState]


class Health(BaseModel):
    """The process answers."""

    status: str
    version: str


def search_of(asked: SearchRequest | StreamRequest | GenerateRequest) -> tuple[tuple[str, Any], ...]:
    """The search settings that a request names, by the recipe's keys."""
    keys = ("method", "beam", "alpha", "nbest", "temperature", "top_k", "top_p", "seed")
    values = {key: getattr(asked, key, None) for key in keys} | {"max_length_offset": asked.max_new}
    return tuple((key, value) for key, value in values.items() if value is not None)
