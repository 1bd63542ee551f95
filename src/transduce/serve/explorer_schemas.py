"""The bodies of the explorer's requests and answers, which are also the OpenAPI description.

Matrices come as `weights`, or under their own names, in base64: little-endian fp32, row after row.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from transduce.serve.schemas import MemoryPairAnswer, SearchRequest, Texts, TokenOriginAnswer

EXAMPLE: JsonDict = {"text": "Two dogs run."}
SOUND = "For a model of speech, a sound file as data:audio/wav;base64,.."
Kind = Literal["encoder", "decoder", "cross", "other"]
Axis = Literal["source", "target", "decoder_input", "other"]


class CutRequest(BaseModel):
    """What is not attended to: a key of a query of a head; what is left out means all."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="The module that attends, as `attention` and /v1/explore/models name it.")
    head: int | None = Field(default=None, ge=0, le=100_000)
    query: int | None = Field(default=None, ge=0, le=100_000)
    key: int | None = Field(default=None, ge=0, le=100_000)


class ExploreRequest(SearchRequest):
    """One sentence, and how to search, as /v1/predict has it."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    text: str = Field(description=f"A sentence that the model reads in one piece, or several such sentences. {SOUND}")
    sentence: int = Field(default=0, ge=0, description="Of several sentences which is explored; all are translated.")
    as_it_stands: bool = Field(
        default=False, description="Of a language model: nothing is written, and the text itself is explored."
    )
    cut: list[CutRequest] = Field(
        default=[], max_length=10_000, description="What is masked inside the softmax; the model answers without it."
    )


class PairRequest(BaseModel):
    """One sentence and an output of it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLE})

    text: str = Field(description=f"A sentence that the model reads in one piece. {SOUND}")
    model: str | None = Field(default=None, description="A model by name; by default the first.")
    target: str | Texts | None = Field(
        default=None, description="A text, or the tokens of one as nbest lists them; by default the prediction."
    )


class StepsRequest(PairRequest):
    """One query of one head."""

    model_config = ConfigDict(json_schema_extra={"example": {**EXAMPLE, "name": "decoder.reader", "query": 0}})

    name: str = Field(description="The module that attends, as `attention` and /v1/explore/models name it.")
    head: int = Field(default=0, ge=0, le=100_000)
    query: int = Field(ge=0, le=100_000, description="The row of the weights.")


class WhyRequest(PairRequest):
    """One sentence, its output, and another one that was expected."""

    model_config = ConfigDict(json_schema_extra={"example": {**EXAMPLE, "other": "Zwei Katzen rennen."}})

    other: str = Field(description="The other output, as a text.", max_length=100_000)


class PageRequest(BaseModel):
    """A sentence whose page is to be saved as one file."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLE})

    text: str = Field(description=f"A sentence that the model reads in one piece, or several such sentences. {SOUND}")
    model: str | None = Field(default=None, description="A model by name; by default the first.")


class PositionsRequest(BaseModel):
    """Positions of a model; without one, sinusoidal ones of any width."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"length": 50, "width": 128}})

    model: str | None = None
    length: int = Field(default=50, ge=1, le=200)
    width: int | None = Field(default=None, ge=2, le=1024, description="Without a model.")


class TrainingRequest(BaseModel):
    """The training of a model that is served from its run directory."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, json_schema_extra={"example": {}})

    model: str | None = Field(default=None, description="A model by name; by default the first.")
    start: int = Field(default=0, ge=0, le=2**53, alias="from", description="`size` of the answer before.")


class TokenAnswer(BaseModel):
    """A token without the mark of a word's beginning, and its characters [start, end) of the text."""

    text: str
    start: int
    end: int


class WordAnswer(TokenAnswer):
    """A word and the places of its tokens."""

    tokens: list[int]


class SideAnswer(BaseModel):
    """One text."""

    text: str
    tokens: list[TokenAnswer]
    words: list[WordAnswer]


class ListedAnswer(BaseModel):
    """One output of the n-best list; tokens are the model's own pieces."""

    text: str
    score: float
    log_probability: float
    tokens: list[str]
    token_log_probabilities: list[float]


class AlternativeAnswer(BaseModel):
    """A token that could have stood there."""

    token: str
    log_probability: float


class CandidateAnswer(BaseModel):
    """A token that the beam weighed. parent: its place in the step before, -1 at the start."""

    token: int
    text: str
    parent: int
    log_probability: float
    total: float
    kept: bool
    finished: bool


class LatticeAnswer(BaseModel):
    """Everything that the beam weighed, step by step."""

    steps: list[list[CandidateAnswer]]


class MatrixAnswer(BaseModel):
    """Numbers in base64."""

    shape: list[int]
    weights: str


class LayerAnswer(MatrixAnswer):
    """A part that attends: heads x rows x columns. decoder_input is the start token and then the output."""

    name: str
    kind: Kind
    layer: int
    heads: int
    rows: Axis
    columns: Axis
    causal: bool


class SentenceAnswer(BaseModel):
    """One of several sentences and what came of it."""

    text: str
    output: str


class WholeAnswer(BaseModel):
    """A text of several sentences and its output; sentence: which of them is explored."""

    text: str
    output: str
    sentence: int
    sentences: list[SentenceAnswer]


class RecordingAnswer(BaseModel):
    """What a model of speech heard. Frame f begins at f * shift seconds, and position p of the encoder at
    p * frames_a_position * shift.
    """

    seconds: float
    shift: float
    frames: int
    frames_a_position: int
    frames_a_column: int = Field(description="Frames of which a row of `features` is the mean.")
    features: MatrixAnswer = Field(description="Rows over time x filters, from low to high, as the model reads them.")
    rate: int | None
    sound: str | None = Field(description="WAV in base64 at that rate; null for features that were computed elsewhere.")


class MemoryAnswer(BaseModel):
    """What a translation memory said to each token, and the pairs that are named, by number."""

    origins: list[TokenOriginAnswer]
    origin_pairs: dict[str, MemoryPairAnswer]


class ExplorationAnswer(BaseModel):
    """A prediction with all that was seen on the way. source is null for a language model, lattice without a beam,
    recording for a model that reads text.

    text is what is explored; whole is null where that is all. drawing is the picture of the task, with its kind: the
    words that a classifier looked at, an answer in its text, a tree.
    """

    model: str
    text: str
    whole: WholeAnswer | None
    source: SideAnswer | None
    target: SideAnswer
    recording: RecordingAnswer | None
    score: float
    log_probability: float
    ended: bool
    nbest: list[ListedAnswer]
    alternatives: list[list[AlternativeAnswer]]
    lattice: LatticeAnswer | None
    memory: MemoryAnswer | None = Field(description="null for a model that consults no translation memory.")
    attention: list[LayerAnswer]
    drawing: dict[str, Any] | None


class HeadAnswer(BaseModel):
    """By how much log p of the output changes when this one head is switched off."""

    name: str
    kind: Kind
    layer: int
    head: int
    change: float


class HeadsAnswer(BaseModel):
    """log_probability is with all heads."""

    log_probability: float
    heads: list[HeadAnswer]


class WeighedTokenAnswer(AlternativeAnswer):
    """A token of an output, its log p given those before it, and the likeliest token there."""

    likeliest: AlternativeAnswer


class WeighedAnswer(BaseModel):
    """An output, its end included."""

    tokens: list[WeighedTokenAnswer]
    log_probability: float


class WithoutWordAnswer(BaseModel):
    """By how much log p of both outputs changes when nothing attends to one word of the source."""

    word: str
    start: int
    end: int
    own: float
    other: float


class WhyAnswer(BaseModel):
    """The model's own output and the other one. words is empty where attention cannot be cut."""

    own: WeighedAnswer
    other: WeighedAnswer
    words: list[WithoutWordAnswer]


class RolloutAnswer(BaseModel):
    """Attention roll-out (Abnar and Zuidema 2020, equation 1); what a model does not have is absent."""

    encoder: MatrixAnswer | None = None
    decoder: MatrixAnswer | None = None
    cross: MatrixAnswer | None = None


class StepsAnswer(BaseModel):
    """One query's computation. joined and output are of all heads; output is null where nothing follows the heads."""

    query_token: str
    columns: list[str]
    score: str
    formula: str
    normalizer: str
    width: int
    q: list[float]
    k: list[list[float]]
    v: list[list[float]]
    scores: list[float]
    divisor: float | None
    scaled: list[float]
    bias: list[float] | None
    mask: list[bool]
    weights: list[float]
    read_besides: list[float] | None
    head_output: list[float]
    joined: list[float]
    output: list[float] | None
    example: bool = False


class PositionsAnswer(BaseModel):
    """What there is of a kind; docs/explorer.md has the list."""

    kind: str
    length: int
    width: int | None = None
    heads: int | None = None
    table: str | None = None
    clock: str | None = None
    dots: str | None = None
    bias: str | None = None


class TrainingAnswer(BaseModel):
    """Events of the training's log: train, validation, samples. Ask again from `size` for newer ones."""

    events: list[dict[str, Any]]
    finished: bool
    stopped: bool = Field(description="It is not finished, and nobody trains there now.")
    size: int


class PartAnswer(BaseModel):
    """A part that attends."""

    name: str
    kind: Kind
    layer: int
    heads: int
    cuts: bool = Field(description="Whether `cut` can mask what it attends to.")


class ShowsAnswer(BaseModel):
    """Which views a model has."""

    writes: bool = Field(description="Whether it writes tokens, each with a probability.")
    beam: bool
    steps: bool
    importance: bool
    training: bool
    positions: str
    drawing: str = Field(description="The kind of its predictions' picture; empty where there is none.")
    alone: bool = Field(description="Whether that picture is all: what the model reads or writes is no text.")


class AcceptsAudioAnswer(BaseModel):
    """What recordings a model of speech is given: samples a second that it hears, the longest in seconds and in bytes.

    files: whether it also reads files of the machine, by name.
    """

    rate: int | None
    seconds: float
    files: bool
    bytes: int


class GeneratesAnswer(BaseModel):
    """How a language model writes. lines: what stands between its lines; null if it can write no acrostic."""

    lines: str | None


class OpeningAnswer(BaseModel):
    """Where attention is best seen for the first example: a module, a head of it, a token along its rows."""

    layer: str
    head: int
    row: int


class DescribedAnswer(BaseModel):
    """A model."""

    name: str
    kind: str
    task: str
    source: str | None
    target: str | None
    parameters: int
    layers: list[PartAnswer]
    shows: ShowsAnswer
    examples: list[str] = Field(description="Short validation sources that the model file holds.")
    opening: OpeningAnswer | None
    accepts_audio: AcceptsAudioAnswer | None
    generates: GeneratesAnswer | None


class DescribedModelsAnswer(BaseModel):
    """The default first."""

    models: list[DescribedAnswer]
