"""An end-to-end memory network (Sukhbaatar et al. 2015): K hops over the sentences of a story, then one answer.

A sentence of J words x_1 .. x_J, and likewise the question, is a sum of the embeddings of its words:

    m_i^k = sum_j l_j * A^k x_ij + T_A^k(i),   c_i^k = sum_j l_j * C^k x_ij + T_C^k(i),   u^1 = sum_j l_j * B q_j
    l_j(d) = 2 (1 - j / J) - 2 (d / D) (1 - 2 j / J)                      position encoding; 1 for bags of words
    p_i^k = softmax_i(u^k . m_i^k),   o^k = sum_i p_i^k c_i^k                                (equations 1 and 2)
    u^(k+1) = u^k + o^k,   logits = W u^(K+1)                                                (equations 3 and 4)

i counts backwards: T(1) belongs to the sentence just before the question. The memory always has the same number of
slots. An empty one is all zeros, so that its score is 0 and it says nothing: a hop may look there if no sentence helps.
An answer is a bag of words as well, whose embeddings are the rows of W. l is twice that of the paper's section 4.1, as
in its authors' code, so that words weigh as much as in a bag.

Adjacent tying: A^(k+1) = C^k, B = A^1, W = C^K. Layer-wise tying: A^k = A^1, C^k = C^1, u^(k+1) = H u^k + o^k.

Shapes: B batch, M sentences of a story, N sentences of all stories, W words, S slots, K hops, E sets of embeddings,
D width, V vocabulary, C labels.
"""

from typing import Literal, NamedTuple, Self

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Specs
from transduce.data.columns.story import Sentences

STARTS = 0.1  # standard deviation of all weights


class MemoryNetworkConfig(Config):
    """Hops, how sentences are encoded, which embeddings are the same, and what training does besides."""

    kind: Literal["memory_network"] = "memory_network"
    d_model: int = Field(default=50, ge=1)
    """Width of embeddings and of what is read."""
    hops: int = Field(default=3, ge=1, le=100)
    """How often the memory is read."""
    slots: int = Field(default=50, ge=1)
    """Number of sentences in the memory: of longer stories, the last ones."""
    encoding: Literal["position", "bag"] = "position"
    """How words make a sentence: weighted by their position, or as a bag of words."""
    temporal: bool = True
    """Whether each slot has an embedding of its own, which says how long ago its sentence was."""
    tied: Literal["adjacent", "layerwise"] = "adjacent"
    """Which embeddings are the same: what one hop reads is what the next one looks for (adjacent), or those of all hops
    (layerwise), as in a recurrent network."""
    noise: float = Field(default=0.1, ge=0, le=1)
    """In training, up to this share of empty slots is put between the sentences of a story, at random places."""
    linear_start: int = Field(default=0, ge=0)
    """Number of first updates in which hops are without softmax. Validation always has it."""

    def holding(self, parts: int) -> Self:
        """With a slot for each of so many sentences."""
        return self.model_copy(update={"slots": parts})


class _Read(NamedTuple):
    """The sentences in the memories of a batch, row by row, all (N,): row, slot, and place in its story."""

    row: Tensor
    slot: Tensor
    place: Tensor


class Hop(nn.Module):
    """One reading of the memory. It has no weights of its own; a capture records p (B, 1, 1, M) of each sentence."""

    role: Role = "memory"
    side: Side = "encoder"

    def forward(
        self, u_BD: Tensor, m_ND: Tensor, c_ND: Tensor, read: _Read, shape: tuple[int, int], linear: bool
    ) -> Tensor:
        """o (B, D). shape: slots of a memory, sentences of the longest story."""
        slots, sentences = shape
        score_N = (m_ND * u_BD[read.row]).sum(-1)
        p_N = score_N
        if not linear:
            at_N = read.row * slots + read.slot
            score_BS = score_N.new_zeros(len(u_BD) * slots).scatter(0, at_N, score_N).view(-1, slots)
            p_N = score_BS.softmax(-1, dtype=torch.float32).flatten()[at_N].to(score_N.dtype)
        record = active_record()
        if record is not None:
            p_BM = p_N.new_zeros(len(u_BD), sentences).index_put((read.row, read.place), p_N)
            record.take(self, p_BM[:, None, None])
        return torch.zeros_like(u_BD).index_add(0, read.row, p_N[:, None] * c_ND)


class MemoryNetwork(nn.Module):
    """Implements `Classifies` and `FollowsUpdates` (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not a story and a label; two labels are the same word to it.
    """

    Config = MemoryNetworkConfig

    def __init__(self, config: MemoryNetworkConfig, specs: Specs) -> None:
        super().__init__()
        source, target = specs.source, specs.target
        if source is None or source.kind != "story" or target.kind != "label":
            raise InputError(
                '[model] kind = "memory_network": expected a task with stories and labels; got another one.'
            )
        self.config, self.linear = config, False
        adjacent = config.tied == "adjacent"
        sets = config.hops + 1 if adjacent else 3  # A^1 = B, C^1 = A^2, .., C^K = W; or A, C, B
        self.embedding_VED = nn.Parameter(torch.empty(source.size, sets, config.d_model))
        self.time_SED = None
        if config.temporal:
            self.time_SED = nn.Parameter(torch.empty(config.slots, sets if adjacent else 2, config.d_model))
        self.hops = nn.ModuleList(Hop() for _ in range(config.hops))
        self.between = None if adjacent else nn.Linear(config.d_model, config.d_model, bias=False)
        self.output = None if adjacent else nn.Linear(config.d_model, target.size, bias=False)
        for weight in self.parameters():
            nn.init.normal_(weight, std=STARTS)
        if adjacent and (not target.words or len(set(target.words)) < len(target.words)):
            raise InputError(
                'model.tied = "adjacent": two answers are the same to the tokenizer. Use kind = "whitespace" with a '
                'larger tokenizer.vocabulary and min_frequency = 1, or tied = "layerwise".'
            )
        label_C = torch.tensor([len(words) for words in target.words])
        self.register_buffer("label_words", torch.tensor(sum(target.words, ())), persistent=False)
        self.register_buffer("label_starts", label_C.cumsum(0) - label_C, persistent=False)
        self.label_words: Tensor
        self.label_starts: Tensor

    def begin_update(self, update: int) -> None:
        """Without softmax up to `linear_start`."""
        self.linear = update <= self.config.linear_start

    def classify(self, inputs: Sentences) -> Tensor:
        """Logits (B, C)."""
        read = self._places(inputs.story.lengths)
        story_NW = inputs.story.values[read.row, read.place]
        words_N = inputs.words.values[read.row, read.place]
        m_NED, u_BED = self._encoded(story_NW, words_N), self._encoded(*inputs.question)
        if self.time_SED is not None:
            m_NED = m_NED[:, : self.time_SED.shape[1]] + self.time_SED[read.slot]
        vectors = m_NED.unbind(1)
        shape, linear = (self.config.slots, inputs.story.values.shape[1]), self.linear and self.training
        u_BD = u_BED[:, 0 if self.between is None else 2]
        for k, hop in enumerate(self.hops):
            m_ND, c_ND = (vectors[k], vectors[k + 1]) if self.between is None else vectors[:2]
            o_BD = hop(u_BD, m_ND, c_ND, read, shape, linear)
            u_BD = (u_BD if self.between is None else self.between(u_BD)) + o_BD
        return self._logits(u_BD)

    def _logits(self, u_BD: Tensor) -> Tensor:
        if self.output is not None:
            return self.output(u_BD)
        return u_BD @ F.embedding_bag(self.label_words, self.embedding_VED[:, -1], self.label_starts, mode="sum").T

    def _places(self, lengths_B: Tensor) -> _Read:
        """The last sentences of each story, with empty slots between them in training."""
        slots, device = self.config.slots, lengths_B.device
        kept_B = lengths_B.clamp(max=slots)
        slot_1S = torch.arange(slots, device=device)[None]
        taken_BS = slot_1S < kept_B[:, None]
        row_N, back_N = taken_BS.nonzero(as_tuple=True)
        slot_N = back_N
        if self.training and self.config.noise:
            most_B = torch.minimum((kept_B * self.config.noise).ceil(), slots - kept_B)
            empty_B = (torch.rand(len(kept_B), device=device) * (most_B + 1)).long()
            drawn_BS = torch.rand(taken_BS.shape, device=device)
            drawn_BS.masked_fill_(slot_1S >= (kept_B + empty_B)[:, None], 2.0)
            lot_BS = drawn_BS.argsort(1).argsort(1)  # the first `kept` of them hold a sentence, in their order
            slot_N = (lot_BS < kept_B[:, None]).nonzero(as_tuple=True)[1]
        return _Read(row_N, slot_N, lengths_B[row_N] - 1 - back_N)

    def _encoded(self, ids_NW: Tensor, words_N: Tensor) -> Tensor:
        """(N, E, D): the sum of l_j * embedding over the words of each sentence."""
        real_NW = torch.arange(ids_NW.shape[1], device=ids_NW.device) < words_N[:, None]
        row_J, place_J = real_NW.nonzero(as_tuple=True)
        word_J, start_N = ids_NW[row_J, place_J], words_N.cumsum(0) - words_N
        flat_VF = self.embedding_VED.flatten(1)
        if self.config.encoding == "bag":
            return F.embedding_bag(word_J, flat_VF, start_N, mode="sum").view(len(ids_NW), -1, self.config.d_model)
        share_J = (place_J + 1) / words_N[row_J]
        weight_2J = 2 * torch.stack((1 - share_J, 1 - 2 * share_J))  # l is the first, less d / D times the second
        twice_J, starts_N = torch.cat((word_J, word_J)), torch.cat((start_N, start_N + len(word_J)))
        sums = F.embedding_bag(twice_J, flat_VF, starts_N, mode="sum", per_sample_weights=weight_2J.flatten())
        first_NED, second_NED = sums.view(2, len(ids_NW), -1, self.config.d_model)
        share_D = torch.arange(1, self.config.d_model + 1, device=sums.device) / self.config.d_model
        return first_NED - share_D * second_NED
