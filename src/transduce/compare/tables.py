"""Tables of compare.json for people, with the same rows on the terminal, in Markdown and on the page."""

from typing import Any, NamedTuple

from transduce.compare.complexity import complexity_of
from transduce.core.atomic import human_size

Results = dict[str, Any]
NOTHING = "–"


class Table(NamedTuple):
    """Rows of text. The first column is a name, the others are figures.

    notes: what a reader needs to know.
    """

    title: str
    headers: list[str]
    rows: list[list[str]]
    notes: list[str]


def all_tables(results: Results) -> list[Table]:
    """Everything, what decides first."""
    return [
        main_table(results),
        *verdicts(results),
        cost_table(results),
        growth_table(results),
        complexity_table(results),
        every_figure(results),
    ]


def main_table(results: Results) -> Table:
    """One row a variant: the metric that decides by every search, perplexity, speed, memory, parameters."""
    figures = _headline(results)
    headers = ["variant", *(_label(figure, results) for figure in figures), "against " + results["baseline"], "p"]
    headers += ["parameters", "training tok/s", *(f"{search} tok/s" for search in _timed(results)), "memory"]
    rows = []
    for name, variant in results["variants"].items():
        difference = figures[0]["variants"].get(name, {}).get("difference") if figures else None
        row = [name + _state(variant), *(_value(figure, name) for figure in figures)]
        row += [_difference(difference, figures[0]["digits"]), _p(difference)] if figures else [NOTHING, NOTHING]
        row += [f"{variant['parameters']:,}", _count(variant["training_tokens_a_second"])]
        row += [_count(variant["decoding_tokens_a_second"][search]) for search in _timed(results)]
        rows.append([*row, _size(variant["memory"]["training_bytes"] or variant["memory"]["peak_bytes"])])
    seeds = len(results["seeds"])
    notes = [
        f"Budget {results['budget']['text']} a training, {seeds} training{'s' if seeds > 1 else ''} of each variant.",
        "[95 % intervals] and p: paired bootstrap over sentences and trainings, 1,000 resamples.",
        *(f"{_label(figure, results)}: {figure['signature']}" for figure in figures),
        *dict.fromkeys(figure["note"] for figure in figures if "note" in figure),
        "Training tokens are target tokens, validations left out; decoding tokens are output tokens in batches of "
        f"{results['decode_batch']}. Memory: the most that a training's process held beyond its libraries.",
    ]
    return Table("Quality, speed, memory", headers, rows, notes)


def cost_table(results: Results) -> Table:
    """One row a training: what it spent and how it ended."""
    headers = ["training", "updates", "target tokens", "minutes", "operations", "ended"]
    rows = []
    for name, variant in results["variants"].items():
        for run in variant["runs"]:
            row = [f"{name}, seed {run['seed']}"]
            if run["state"] == "finished":
                row += [f"{run['updates']:,}", f"{run['target_tokens']:,}", f"{run['minutes']:.1f}"]
                row += [f"{run['operations']:.2e}", run["ended"]]
            else:
                row += [NOTHING] * 4 + [run["failed"].split("\n")[0] or "not trained yet"]
            rows.append(row)
    notes = ["Minutes are training time with validations, summed over resumes. Operations are counted matrix products."]
    return Table("Trainings", headers, rows, notes)


def growth_table(results: Results) -> Table:
    """Measured growth with sequence length beside the orders of the textbooks."""
    variants = results["variants"]
    growths = [variant["growth"] for variant in variants.values()]
    lengths = growths[0]["lengths"]
    headers = ["variant", *(f"n = {length}" for length in lengths), "time ~", "operations ~"]
    headers += ["layer", "sequential", "path"]
    rows = []
    for (name, variant), growth in zip(variants.items(), growths, strict=True):
        theory = complexity_of(variant["kind"], variant.get("encoder", ""))
        times = [f"{1000 * seconds:.2f} ms" for seconds in growth["seconds_a_layer"]]
        fits = [_power(growth["exponent"]), _power(growth["exponent_of_operations"])]
        rows.append([name, *times, *fits, *(theory[2:] if theory else [NOTHING] * 3)])
    read = {
        "frame": "pair of n frames and n / 10 tokens",
        "vector": "sequence of n vectors",
        "node": "ring of n nodes",
        "word": "tree of n words",
    }
    pair = read.get(growths[0].get("unit", ""), "pair of n and n tokens")
    notes = [
        f"Time of a forward and backward pass over one {pair}, or a text of n tokens and a short question, "
        "divided by the number of layers; "
        f"exponents fitted from n = {growths[0]['fitted_from']} on.",
        "The last three columns are theory, of mixing positions alone: n positions, d width, k kernel. Position-wise "
        "layers, O(n d²), come on top: self-attention is cheaper than recurrence for n < d, than a convolution for "
        "n < k d.",
    ]
    return Table("Growth with sequence length", headers, rows, notes)


def complexity_table(results: Results) -> Table:
    """The textbooks' table, whole."""
    rows = [[row["name"], row["layer"], row["sequential"], row["path"]] for row in results["complexity"]]
    headers = ["layer", "operations", "sequential steps", "longest path"]
    return Table("What theory says", headers, rows, ["n positions, d width, k kernel, m slots."])


def every_figure(results: Results) -> Table:
    """Every test, search and metric, with the figure of each training and the signature."""
    rows = [
        [
            figure["test"],
            figure["search"] or NOTHING,
            figure["metric"],
            name,
            _value(figure, name),
            _run_values(value, figure),
        ]
        for figure in results["quality"]
        for name, value in figure["variants"].items()
    ]
    signatures = dict.fromkeys(f"{figure['metric']}: {figure['signature']}" for figure in results["quality"])
    headers = ["test", "search", "metric", "variant", "mean", "each training"]
    return Table("Every figure", headers, rows, list(signatures))


def verdicts(results: Results) -> list[Table]:
    """What decides, in sentences."""
    figures = _headline(results)
    if not figures:
        return []
    found = [value["difference"]["verdict"] for value in figures[0]["variants"].values() if "difference" in value]
    return [Table("In words", [], [[sentence] for sentence in found], [])] if found else []


def _headline(results: Results) -> list[dict[str, Any]]:
    """Of the first test: the first metric by every search, the decisive one first, and perplexity."""
    if not results["quality"]:
        return []
    first = results["quality"][0]
    same = [figure for figure in results["quality"] if figure["test"] == first["test"]]
    return [figure for figure in same if figure["metric"] in {first["metric"], "perplexity"}]


def _label(figure: dict[str, Any], results: Results) -> str:
    tests = {each["test"] for each in results["quality"]}
    return label_of(figure, len(tests) > 1)


def label_of(figure: dict[str, Any], with_test: bool) -> str:
    """What a figure is called: its metric, its search, its test."""
    parts = [figure["name"], figure["search"], figure["test"] if with_test else ""]
    return " ".join(part for part in parts if part)


def _timed(results: Results) -> list[str]:
    return [
        search
        for search in results["searches"]
        if any(variant["decoding_tokens_a_second"][search] for variant in results["variants"].values())
    ]


def _state(variant: dict[str, Any]) -> str:
    states = [run["state"] for run in variant["runs"]]
    if states.count("finished") == len(states):
        return ""
    failed = f", {states.count('failed')} failed" if "failed" in states else ""
    return f" ({states.count('finished')} of {len(states)} trained{failed})"


def _value(figure: dict[str, Any], name: str) -> str:
    value = figure["variants"].get(name)
    if value is None:
        return NOTHING
    return with_interval(value, figure["digits"], "")


def _difference(difference: dict[str, Any] | None, digits: int) -> str:
    return with_interval(difference, digits, "+") if difference else NOTHING


def with_interval(value: dict[str, Any], digits: int, sign: str) -> str:
    """A value and its interval."""
    form = f"{{:{sign}z.{digits}f}}"  # z: what rounds to 0 has no sign
    interval = "" if value["interval"] is None else f" [{form}, {form}]".format(*value["interval"])
    return form.format(value["value"]) + interval


def _run_values(value: dict[str, Any], figure: dict[str, Any]) -> str:
    return ", ".join(f"{one:.{figure['digits']}f}" for one in value["runs"])


def _p(difference: dict[str, Any] | None) -> str:
    return f"{difference['p_value']:.3f}" if difference and difference["p_value"] is not None else NOTHING


def _count(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


def _size(value: int | None) -> str:
    return NOTHING if value is None else human_size(value)


def _power(exponent: float | None) -> str:
    return NOTHING if exponent is None else f"n^{exponent:.2f}"
