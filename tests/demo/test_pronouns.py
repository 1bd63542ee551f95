"""What "it" attends to: against attention worked out by hand, alone and in a batch."""

import numpy as np
import pytest
import torch

from text_columns import text_columns
from transduce.attention import capture
from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.data.columns.packed import pack
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.demo.pronouns import Head, Look, Sought, attention_by_head, clearest, kept_from
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe

TIRED = Sought("The animal didn't cross the street because it was too tired.", "it", "animal")
WIDE = Sought("Because it was wide, the street wasn't crossed.", "it", "street")
HEADS = 2


def untrained(task="translation", model="transformer", data=None):
    """A pipeline with random weights, whose tokenizer cuts the words of the sentences above into pieces."""
    table = {
        "task": {"kind": task},
        "data": data or {"train": [{"source": "none.en", "target": "none.fr"}]},
        "model": {"kind": model, "d_model": 16, "heads": HEADS, "feed_forward": 16},
    }
    recipe = parse_recipe(table, "test")
    tokenizer = train_tokenizer(TokenizerConfig(vocabulary=48, min_frequency=1), [TIRED.sentence, WIDE.sentence])
    columns = text_columns(tokenizer if task == "translation" else None, tokenizer)
    torch.manual_seed(0)
    made = make_task(recipe, columns)
    weights = {name: w.detach() * 3 for name, w in make_model(recipe, made).named_parameters()}
    return Pipeline(ModelFile(weights, recipe.to_table(), pack(columns)[0], {}, {}))


@pytest.fixture(scope="module")
def pipeline():
    return untrained()


def test_what_is_kept_from_a_word_is_cut_in_every_head(pipeline):
    """Against the same cut by the places of its pieces, found by hand."""
    tokenizer = pipeline.task.tokenizers["source"]
    pieces = tokenizer.tokens(tokenizer.encode([TIRED.sentence])[0])
    starts = [place for place, piece in enumerate(pieces) if piece.startswith("▁") or piece == "."]
    spans = zip(starts, [*starts[1:], len(pieces)], strict=True)
    words = dict(zip(TIRED.sentence.replace(".", " .").split(), spans, strict=True))
    hidden = ["animal", "cross", "because", "was", "tired"]
    cut = [
        Place(f"encoder.blocks.{block}.self_attention", query=query, key=key)
        for block in range(len(pipeline.model.encoder.blocks))
        for query in range(*words["it"])
        for word in hidden
        for key in range(*words[word])
    ]
    with capture(pipeline, cut=cut):
        expected = pipeline.predict(TIRED.sentence)
    assert kept_from(pipeline, TIRED.sentence, "it", hidden) == expected.text
    assert expected.log_probability != pipeline.predict(TIRED.sentence).log_probability
    with pytest.raises(InputError, match='has no word "street car"'):
        kept_from(pipeline, TIRED.sentence, "it", ["street car"])


def test_the_first_block_by_hand(pipeline):
    """Query of "it" times keys, softmax, pieces added up: from the weights alone, without the model's own code."""
    tokenizer = pipeline.task.tokenizers["source"]
    ids = [*tokenizer.encode([TIRED.sentence])[0], tokenizer.end]
    pieces = tokenizer.tokens(ids)
    assert len(pieces) > len(TIRED.sentence.split()) + 4  # words are in pieces, or this would show little
    stack = pipeline.model.encoder
    with torch.no_grad():
        x_TD = stack.positions(pipeline.model.source_embedding(torch.tensor([ids])))[0]
        block = stack.blocks[0]
        x_TD = block.self_residual.norm(x_TD)
        query_TD, key_TD = block.self_attention.query(x_TD), block.self_attention.key_value(x_TD)[:, :16]
    starts = [i for i, piece in enumerate(pieces) if piece.startswith("▁") or piece in {".", "</s>"}]
    words = [pieces[a:b] for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    it = next(i for i, word in enumerate(words) if "".join(word) == "▁it")
    rows = range(starts[it], starts[it + 1])
    for head in range(HEADS):
        part = slice(head * 8, head * 8 + 8)
        expected = np.zeros(len(words))
        for row in rows:
            scores = [float(query_TD[row, part] @ key_TD[key, part]) / 8**0.5 for key in range(len(pieces))]
            alpha = np.exp(scores) / np.exp(scores).sum()
            for word, start in enumerate(starts):
                expected[word] += alpha[start : start + len(words[word])].sum() / len(rows)
        look = attention_by_head(pipeline, [TIRED])[Head(0, head)][0]
        assert look.words[1] == "animal" and look.words[look.query] == "it" and look.noun == 1
        np.testing.assert_allclose(look.weights, expected, atol=1e-5)


def test_words_are_those_of_every_other_view(pipeline):
    """The page's and a prediction's; punctuation stands alone, apostrophes and hyphens within words do not."""
    sought = Sought("The well-known animal didn't cross (it was tired).", "it", "animal")
    words = attention_by_head(pipeline, [sought])[Head(0, 0)][0].words
    plain = ["The", "well-known", "animal", "didn't", "cross", "(", "it", "was", "tired", ")", ".", "</s>"]
    source = pipeline.predict([sought.sentence])[0].attention().source
    assert words == plain == [word.text for word in source.words]


def test_together_as_alone(pipeline):
    both = attention_by_head(pipeline, [TIRED, WIDE])
    assert sorted(both) == [Head(block, head) for block in range(3) for head in range(HEADS)]
    for place, sought in enumerate((TIRED, WIDE)):
        for head, (alone,) in attention_by_head(pipeline, [sought]).items():
            together = both[head][place]
            assert (together.words, together.query, together.noun) == (alone.words, alone.query, alone.noun)
            np.testing.assert_allclose(together.weights, alone.weights, atol=1e-5)
            assert together.weights.sum() == pytest.approx(1, abs=1e-5)


def test_found_means_heavier_than_everything_else():
    assert look([0.2, 0.5, 0.3]).found
    assert not look([0.5, 0.3, 0.2]).found
    assert look([0.2, 0.5, 0.3]).weight == 0.5


def test_the_clearest_head_finds_both_nouns_before_it_finds_one_well():
    half, faint, strong = Head(0, 0), Head(1, 2), Head(2, 1)
    found = {
        half: [look([0.01, 0.98, 0.01]), look([0.5, 0.45, 0.05])],
        faint: [look([0.3, 0.4, 0.3]), look([0.2, 0.6, 0.2])],
        strong: [look([0.2, 0.5, 0.3]), look([0.2, 0.5, 0.3])],
    }
    assert clearest(found) == strong
    assert clearest({half: found[half], faint: found[faint]}) == faint
    assert str(strong) == "encoder block 3, head 2"


def test_a_sentence_without_the_word_is_refused(pipeline):
    with pytest.raises(InputError, match=r'"The street was wide\." has no word "it"'):
        attention_by_head(pipeline, [Sought("The street was wide.", "it", "street")])


def test_a_language_model_has_no_source_words():
    model = untrained("language_modelling", "transformer_decoder", {"train": [{"text": "none.txt"}]})
    with pytest.raises(InputError, match="only a model with an encoder"):
        attention_by_head(model, [TIRED])


def look(weights):
    return Look(["a", "noun", "it"], query=2, noun=1, weights=np.array(weights))
