"""Two outputs weighed token by token, against one step after the other, and the source words that are cut by hand."""

import math

import pytest
import torch

from drawn_models import classifier, parser
from random_models import language_model, translator
from transduce.attention.capture import capture
from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.data.collate import padded
from transduce.explore.exploration import asked
from transduce.interpret.layers import attending
from transduce.interpret.why_not import why_not
from transduce.pipeline.pipeline import Pipeline

TEXT, OTHER = "ba de zzz fi", "go ku ba"


def stepped(pipeline: Pipeline, source: list[int], ids: list[int]) -> list[tuple[float, int, float]]:
    """log p of each token and of the end, with the likeliest token there, one step of the model at a time."""
    model, task, found = pipeline.model, pipeline.task, []
    with torch.inference_mode():
        memory, state = model.start(padded([source], task.tokenizers["source"].pad), 1)
        token = task.tokenizers["target"].start
        for each in [*ids, task.tokenizers["target"].end]:
            logs_BV, state = model.step(torch.tensor([token]), memory, state)
            logs = logs_BV[0].tolist()
            found.append((logs[each], max(range(len(logs)), key=logs.__getitem__), max(logs)))
            token = each
    return found


@pytest.mark.parametrize("made", [translator, parser])
def test_both_outputs_are_weighed_as_search_weighs_them(made) -> None:
    pipeline = made(seed=4)
    other = OTHER if made is translator else "(S (NP XX ) (VP XX ) )"
    own, given = asked(pipeline, TEXT, None), asked(pipeline, TEXT, other)
    found = why_not(pipeline.model, pipeline.task, TEXT, own, given)
    tokenizer = pipeline.task.tokenizers["target"]
    for name, each in (("own", own), ("other", given)):
        expected = stepped(pipeline, list(each.source), each.target)
        told = found[name]["tokens"]
        assert [one["log_probability"] for one in told] == pytest.approx([value for value, *_ in expected], abs=1e-4)
        assert [one["likeliest"]["log_probability"] for one in told] == pytest.approx(
            [m for *_, m in expected], abs=1e-4
        )
        best = [tokenizer.tokens([token])[0] for _, token, _ in expected]
        assert [one["likeliest"]["token"].strip("▁") for one in told] == [text.strip("▁") for text in best]
        assert found[name]["log_probability"] == pytest.approx(math.fsum(value for value, *_ in expected), abs=1e-3)


def test_a_word_that_is_cut_is_masked_in_encoder_and_decoder() -> None:
    pipeline = translator("bpe", seed=4)
    own, other = asked(pipeline, TEXT, None), asked(pipeline, TEXT, OTHER)
    found = why_not(pipeline.model, pipeline.task, TEXT, own, other)
    assert [each["word"] for each in found["words"]] == TEXT.split()
    parts = [part.name for part in attending(pipeline.model, pipeline.task) if part.columns == "source"]
    assert {name.split(".")[0] for name in parts} == {"encoder", "decoder"}
    spans = pipeline.task.tokenizers["source"].offsets(TEXT)
    for each in found["words"]:
        keys = [place for place, (start, end) in enumerate(spans) if max(start, each["start"]) < min(end, each["end"])]
        # the mark of a word that stands alone as a token belongs to its word
        keys = sorted({*keys, *(k - 1 for k in keys if k and not TEXT[slice(*spans[k - 1])].strip())})
        with capture(pipeline, cut=[Place(name, key=key) for name in parts for key in keys]):
            cut = {
                n: sum(v for v, *_ in stepped(pipeline, list(g.source), g.target))
                for n, g in (("own", own), ("other", other))
            }
        for name in ("own", "other"):
            assert each[name] == pytest.approx(cut[name] - found[name]["log_probability"], abs=1e-3), (each, name)
        assert abs(each["own"]) > 1e-3, "the cut is felt"


@pytest.mark.parametrize(("made", "text"), [(classifier, "good"), (language_model, "ba de")])
def test_others_do_not_weigh_one_token_after_the_other(made, text: str) -> None:
    pipeline = made()
    given = asked(pipeline, "ba de", text)
    with pytest.raises(InputError, match="one token after the other"):
        why_not(pipeline.model, pipeline.task, "ba de", given, given)


def test_the_check_may_end_it() -> None:
    pipeline = translator()
    given = asked(pipeline, TEXT, OTHER)

    def gone() -> None:
        raise InputError("gone")

    with pytest.raises(InputError, match="gone"):
        why_not(pipeline.model, pipeline.task, TEXT, given, given, gone)
