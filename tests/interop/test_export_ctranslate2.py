"""Exports to CTranslate2, run by CTranslate2 itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from forked import Run
from random_models import SHORT, language_model, model_file, sentences, translator
from transduce.cli.export import export
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.interop.export_ctranslate2 import CTranslate2Engine, ExportCtranslate2, export_ctranslate2
from transduce.interop.export_huggingface import export_huggingface
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text, compare
from transduce.interop.transformer_parts import logit_bias, parts_of
from transduce.pipeline.pipeline import Pipeline

ctranslate2 = pytest.importorskip("ctranslate2")

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, "tied": "none"}
GOES: list[dict[str, Any]] = [
    {},
    {"norm": "post", "positions": "none", "activation": "gelu", "encoder_layers": 3, "decoder_layers": 1},
    {"norm_kind": "rms", "positions": "learned", "activation": "glu", "tied": "output"},
    {"norm_kind": "rms", "norm": "post", "positions": "shaw", "activation": "geglu"},
    {"positions": "rotary", "activation": "swiglu", "key_value_heads": 1},
    {"key_value_heads": 2, "heads": 4, "positions": "rotary", "tied": "all"},
    {"positions": "t5"},
    {"shared_layers": True, "encoder_layers": 3},
    {"positions": "t5", "score": "dot", "norm": "post"},
]
"""Every value of every setting, in pairs with others."""


def random_translator(settings: dict[str, Any], kind: str = "unigram", **sections: Any) -> Pipeline:
    return translator(kind, model={**SIZES, **settings}, **sections)


@pytest.mark.parametrize("settings", GOES, ids=str)
def test_greedy_search_and_scores_are_equal(settings: dict[str, Any], tmp_path: Path) -> None:
    pipeline = random_translator(settings)
    export_ctranslate2(pipeline, tmp_path, Languages())
    lines = sentences(30)
    found = compare(pipeline, CTranslate2Engine(pipeline, tmp_path), Text("random", lines))
    assert found.holds, found.report()
    assert (found.lines, found.left_out) == (sum(map(bool, lines)), lines.count(""))
    assert_same_log_probabilities(pipeline, ctranslate2.Translator(str(tmp_path), compute_type="float32"))


def assert_same_log_probabilities(pipeline: Pipeline, translator: Any) -> None:
    """Of random targets, given by the engine and by our model, whose logits of tokens never chosen are left out."""
    parts = parts_of(pipeline, "test")
    sources, targets = ([line for line in sentences(20, seed) if line][:12] for seed in (2, 3))
    for source, target in zip(parts.source.encode(sources), parts.target.encode(targets), strict=True):
        [theirs] = translator.score_batch([parts.source.tokens(source)], [parts.target.tokens(target)])
        read, written = [*source, parts.source.end], [parts.target.start, *target]
        with torch.inference_mode():
            logits_BTV = pipeline.model(
                *(Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in (read, written))
            )
        ours_TV = (logits_BTV[0] + logit_bias(parts)).log_softmax(-1)
        ours_T = ours_TV.gather(1, torch.tensor([*target, parts.target.end])[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(theirs.log_probs), ours_T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["bpe", "byte", "character", "whitespace"])
def test_any_tokenizer_goes(kind: str, tmp_path: Path) -> None:
    pipeline = random_translator({}, kind, tags=[">>fr<<"])
    export_ctranslate2(pipeline, tmp_path, Languages())
    lines = [*sentences(20), ">>fr<< ba", "never seen: \u00e9\u20ac"]
    found = compare(pipeline, CTranslate2Engine(pipeline, tmp_path), Text("random", lines))
    assert found.holds, found.report()


def test_what_cannot_go_is_told_all_at_once(tmp_path: Path) -> None:
    settings = {"positions": "alibi", "norm_kind": "batch", "activation": "squared_relu", "normalizer": "sparsemax"}
    pipeline = random_translator({**settings, "score": "cosine", "pattern": "local", "tied": "all", "pointer": True})
    with pytest.raises(InputError) as raised:
        export_ctranslate2(pipeline, tmp_path, Languages())
    named = ("positions", "activation", "norm_kind", "score", "normalizer", "pattern", "pointer")
    assert [each.split("model.")[1].split(" ")[0] for each in raised.value.problems] == list(named)
    apart = random_translator({"positions": "learned", "encoder_positions": "sinusoidal", "encoder_max_length": 99})
    with pytest.raises(InputError, match=r"model\.encoder_positions = 'sinusoidal' cannot be exported") as raised:
        export_ctranslate2(apart, tmp_path, Languages())
    assert len(raised.value.problems) == 2
    with pytest.raises(InputError, match="only models from text to text") as raised:
        export_ctranslate2(language_model(), tmp_path, Languages())
    assert len(raised.value.problems) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [export_ctranslate2, export_huggingface])
def test_another_base_a_scaling_and_norms_of_heads_are_refused(write: Any, tmp_path: Path) -> None:
    scaling = {"kind": "linear", "factor": 2.0}
    settings = {"positions": "rotary", "rotary_base": 5e5, "rotary_scaling": scaling, "query_key_norm": True}
    with pytest.raises(InputError) as raised:
        write(random_translator(settings), tmp_path, Languages())
    named = ["rotary_base", "rotary_scaling", "query_key_norm"]
    assert [each.split("model.")[1].split(" ")[0] for each in raised.value.problems] == named


def test_the_command_compares_on_the_runs_own_text(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = run("export", tiny_run, "--to", "ctranslate2", "--output", folder)
    assert done.code == 0, done.err
    assert "CTranslate2 and Transduce on 20 lines of data.test.held_out" in done.err
    assert "equal tokens     20 of 20" in done.err
    assert "BLEU" in done.err
    assert {path.name for path in folder.iterdir()} >= {"model.bin", "config.json"}
    again = run("export", tiny_run, "--to", "ctranslate2", "--output", folder)
    assert again.code == 2
    assert "there already" in again.err


def test_the_command_checks_the_text_it_is_given(run: Run, tmp_path: Path) -> None:
    path, lines = tmp_path / "model.safetensors", tmp_path / "lines.txt"
    pipeline = random_translator({"positions": "t5"}, search={**SHORT, "max_length_offset": 4})
    save_model_file(path, model_file(pipeline))
    lines.write_text("\n".join(sentences(30)) + "\n", encoding="utf-8")
    none = run("export", path, "--to", "ctranslate2", "--output", tmp_path / "one")
    assert none.code == 0
    assert "nothing was checked" in none.err
    done = run("export", path, "--to", "ctranslate2", "--output", tmp_path / "two", "--check", lines)
    assert done.code == 0, done.err
    assert "empty or too long and left out" in done.err


class Wrong(CTranslate2Engine):
    """Says one output differently."""

    def greedy(self, texts: Any, longest: int) -> Any:
        found = super().greedy(texts, longest)
        return [*found[:-1], found[-1]._replace(tokens=("x",), text="x")]


def test_a_difference_is_shown(tmp_path: Path) -> None:
    pipeline = random_translator({})
    export_ctranslate2(pipeline, tmp_path, Languages())
    text = Text("two lines", ["", "ba be", "bi bo"], ["", "x", "bi"])
    found = compare(pipeline, Wrong(pipeline, tmp_path), text)
    assert not found.holds
    assert (found.equal, found.lines, found.left_out) == (1, 2, 1)
    assert found.first is not None
    assert (found.first.line, found.first.source, found.first.theirs) == (3, "bi bo", "x")
    assert "  first difference line 3: bi bo" in found.report()
    assert found.bleu is not None


def test_a_difference_fails_the_command_unless_it_is_allowed(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ExportCtranslate2, "engine", Wrong)
    with pytest.raises(typer.Exit) as left:
        export([tiny_run], "ctranslate2", tmp_path / "one")
    assert left.value.exit_code == 1
    assert "1 of 20 outputs differ" in capsys.readouterr().err
    assert (tmp_path / "one" / "model.bin").is_file()
    export([tiny_run], "ctranslate2", tmp_path / "two", allow_differences=True)
    assert "1 of 20 outputs differ" in capsys.readouterr().err


def test_references_must_belong_to_the_lines(tmp_path: Path) -> None:
    pipeline = random_translator({})
    export_ctranslate2(pipeline, tmp_path, Languages())
    engine = CTranslate2Engine(pipeline, tmp_path)
    with pytest.raises(InputError, match="2 lines and 1 references"):
        compare(pipeline, engine, Text("x", ["ba", "be"], ["ba"]))
    with pytest.raises(InputError, match="none of its 1 lines can be compared"):
        compare(pipeline, engine, Text("x", [""]))
