"""One name for one thing, and that the field's: no class is called as another one, and no name of ours comes back."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import transduce

PACKAGE = Path(transduce.__file__).parent

EVERYWHERE = {
    "alone_in": "run_lock",
    "aside": "run_in_thread",
    "ClientLeft": "ClientDisconnected",
    "Door": "Drain",
    "formed": "grammar_for",
    "Hear": "OnToken",
    "hear": "on_token",
    "hears": "accepts_audio",
    "in_banks": "add_banks",
    "looks": "attention_limit",
    "predict_aloud": "stream",
    "read_back": "postprocess",
    "readable": "max_source_length",
    "Reader": "CrossAttention",
    "tempered": "temperature_weights",
    "Undrawn": "Deterministic",
    "Weighing": "Normalizer",
    "weighing": "normalizer",
}
"""Names that nothing of the package may have, with the field's."""

SOMEWHERE = {
    "Aligns.align(least)": "min_places",
    "attention.shared_kv_cache.Branch": "DecoderCache",
    "attention.shared_kv_cache.Family": "BeamTree",
    "attention.shared_kv_cache.Shared": "EncoderCache",
    "AutomatonState.begun": "matches",
    "Beginnings.chosen(these)": "selected",
    "check_log_probability(greatest)": "maximum",
    "check_model(wanted)": "ability",
    "child_process.answer(works)": "handlers",
    "cli.predictions.writer(whole)": "multiline",
    "Column.heard": "encode_audio",
    "compare.run._run_worker(job)": "arguments",
    "compare.worker.costs(job)": "arguments",
    "compare.worker.train(job)": "arguments",
    "Comparison.learn_from(most_lines)": "max_lines",
    "Comparison.sample(most_lines)": "max_lines",
    "Confusion.of_most_frequent(most)": "max_labels",
    "core.bounded_file.bounded_bytes(most)": "max_bytes",
    "core.bounded_file.bounded_text(most)": "max_bytes",
    "core.bounded_file.read_bytes(most)": "max_bytes",
    "core.errors.every(most)": "max_problems",
    "core.printable.first_of(most)": "limit",
    "core.printable.listed(most)": "limit",
    "core.printable.quoted(most)": "limit",
    "core.tables.refuse_table(wanted)": "expected",
    "Ctc.align(least)": "min_places",
    "decode.decode(unprompted)": "allow_empty",
    "devices.device_for(wanted)": "device",
    "devices.resolve_device(wanted)": "device",
    "devices.use_device(wanted)": "device",
    "Document.__init__(whole)": "fits",
    "Encoding.is_there": "exists",
    "Ensemble._mean(each)": "logits",
    "explore.exploration.explore(most)": "max_weights",
    "filterbank.resampled(wanted)": "target_rate",
    "fine_tuning.columns_of_start(begun)": "start",
    "fine_tuning.start_weights(begun)": "start",
    "formats.base.check_once(wanted)": "columns",
    "formats.base.too_short(wanted)": "expected",
    "Frames.heard": "encode_audio",
    "FusedBeamSearch.each": "decoders",
    "Groups.apart": "split",
    "Groups.together": "group",
    "interop.parity.held_out_text(most)": "max_lines",
    "KernelsModel.whole": "torch_model",
    "Lattices.note(taken)": "selected",
    "lexicon.read_links(most)": "max_links",
    "LimitsParts.most_parts": "max_parts",
    "LineSample.whole": "all_lines",
    "LookBack.most": "max_weight",
    "Model.look": "reload_if_changed",
    "Network.__init__(whole)": "int8",
    "Packed.__init__(whole)": "int8",
    "PairGroups.draw(wanted)": "count",
    "PairGroups.large(wanted)": "count",
    "Pairs.together": "grouping",
    "PairSide.whole": "all_lines",
    "parallel_map(outside_python)": "releases_gil",
    "Parity.apart": "difference",
    "pieces_of(apart)": "split",
    "pieces_of(how)": "long_text",
    "pipeline.arguments.listed_of(wanted)": "expected",
    "plain_settings.in_place_of(asked)": "overrides",
    "planning.promise.taken": "elapsed",
    "planning.speed.of_a_batch(each)": "seconds_for",
    "precision.resolve_precision(wanted)": "precision",
    "Prediction.look": "attend",
    "Pulse.begun": "step_start",
    "recipe.recipe.lay_over(above)": "overrides",
    "recipe.recipe.merge(below)": "base",
    "Request.least": "min_length",
    "Rules.__init__(least)": "min_length",
    "runtime.workers.each": "parallel_map",
    "scaled_dot_product.attend_visibly": "attend_with_weights",
    "search.beam_selection.dealt": "allocate_slots",
    "segments(whole)": "fits",
    "serve.guards.right_key(told)": "body_key",
    "serve.work.Ask": "SearchOptions",
    "serve.work.Left": "ClientDisconnected",
    "serve.work.Work": "WorkItem",
    "shaded_text.marks(most)": "max_weight",
    "shared_kv_cache._read(openly)": "with_weights",
    "SpanPredictor.how": "reading",
    "spans.Found.each": "log_probabilities",
    "Split.together": "grouping",
    "Stages.together": "parallel",
    "Stages.told": "report_entries",
    "Stopping.came": "received",
    "Tally.figure": "aggregate",
    "Task.whole": "never_split",
    "tasks.learnt": "column_cache",
    "tensors.can_pack(whole)": "int8",
    "terminal.shaded_text(most)": "max_weight",
    "text_ids.most_frequent(least)": "min_frequency",
    "training.beginning.begun": "restore_or_start",
    "training.microbatches.whole": "uncut",
    "training.plots.looked_at": "prediction_with_attention",
    "training.plots.wanted": "figures_enabled",
    "training.prefetch.ahead": "prefetch",
    "training.prefetch.pays": "worth_prefetching",
    "tree_labels.too_wide(most)": "max_parts",
    "WorkItem.ask": "options",
    "WorkItem.check_wanted": "check_connected",
    "WorkItem.left": "disconnected",
    "WorkItem.together": "batch_key",
}
"""Names that these may not have: classes and functions of a module, methods and fields of a class, a (parameter).
"""


def test_no_public_class_name_stands_twice() -> None:
    where = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(file.relative_to(PACKAGE)))
    twice = {name: sorted(files) for name, files in where.items() if len(files) > 1}
    assert not twice, f"name one of each otherwise: {twice}"


def test_nothing_is_called_by_a_name_that_the_field_does_not_know() -> None:
    found = [problem for name in _names() if (problem := _problem(name))]
    assert not found, "\n".join(found)


def _problem(name: str) -> str:
    """What a qualified name should be; "" where nothing is wrong with it."""
    last = name.rstrip(")").replace("(", ".").rpartition(".")[2]
    field = EVERYWHERE.get(last) or next((new for old, new in SOMEWHERE.items() if f".{name}".endswith(f".{old}")), "")
    return f"{name}: the field calls it {field}" if field else ""


def _names() -> Iterator[str]:
    """Every module, class, function, method, field and (parameter) of the package, from its room on."""
    for file in PACKAGE.rglob("*.py"):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        yield module
        yield from _defined(ast.parse(file.read_text(encoding="utf-8")), module)


def _defined(scope: ast.AST, within: str) -> Iterator[str]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{within}.{node.name}"
            yield name
            if not isinstance(node, ast.ClassDef):
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                yield from (f"{name}({each.arg})" for each in arguments)
            yield from _defined(node, name)
        elif isinstance(scope, ast.ClassDef) and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield f"{within}.{node.target.id}"
