"""`transduce info`: show what a model file holds, before anything in it is used."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

UNUSED = ("tokenizer", "batch", "training")  # sections of the recipe of a model that was converted


def info(
    path: Annotated[Path, typer.Argument(help="A model file, or the directory of a finished run.")],
    tensors: Annotated[bool, typer.Option("--tensors", help="Also list the tensors with their shapes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, for programs.")] = False,
) -> None:
    """Show what a model file holds, without running anything from it.

        transduce info runs/my

    That is its settings, tokenizers, provenance, scores and sizes.
    """
    from transduce.core.model_summary import describe

    facts = describe(path)
    if as_json:
        import json

        typer.echo(json.dumps(facts, indent=2))
    else:
        _show(facts, tensors)


def _show(facts: dict[str, Any], tensors: bool) -> None:
    from transduce.runtime.console import make_console

    console = make_console()
    console.print(_table("Model", _summary(facts)))
    metrics = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in facts["metrics"].items()}
    if metrics:
        console.print(_table("Metrics", flat(metrics)))
    config = facts["config"]
    if "converted" in facts["provenance"]:  # nothing here was learnt by these, and the tokenizers are shown above
        config = {name: section for name, section in config.items() if name not in UNUSED}
    for title, told in {"Config": config, "Provenance": facts["provenance"]}.items():
        if told:
            console.print(_table(title, {name: _in_a_line(each) for name, each in _readable(told).items()}))
    if tensors:
        shapes = {tensor["name"]: f"{tensor['dtype']} {tensor['shape']}" for tensor in facts["tensors"]}
        console.print(_table("Tensors", shapes))
    else:
        console.print("--tensors lists them; --json prints everything.", style="dim", highlight=False)


def _summary(facts: dict[str, Any]) -> dict[str, str]:
    from transduce.core.atomic import human_size

    dtypes = ", ".join(f"{count} {dtype}" for dtype, count in facts["dtypes"].items())
    rows = {
        "file": facts["file"],
        "size": human_size(facts["bytes"]),
        "parameters": f"{facts['parameters']:,} in {len(facts['tensors'])} tensors ({dtypes})",
    }
    for side, tokenizer in facts["tokenizers"].items():
        size = "unknown size" if tokenizer["size"] is None else f"{tokenizer['size']:,} entries"
        rows[f"tokenizer, {side}"] = f"{tokenizer['kind']}, {size}"
    if facts["tied"]:
        rows["tied"] = ", ".join(f"{name} = {first}" for name, first in facts["tied"].items())
    if lexicon := facts["lexicon"]:
        rows["shortlist"] = (
            f"up to {lexicon['candidates']} candidates for each of {lexicon['source_tokens']:,} source tokens, "
            f"{lexicon['frequent']} frequent ones ({human_size(lexicon['bytes'])})"
        )
    if ngrams := facts["ngrams"]:
        rows["language model"] = (
            f"{ngrams['ngrams']:,} n-grams of up to {ngrams['order']} tokens ({human_size(ngrams['bytes'])})"
        )
    if facts["foreign_code"]:
        rows["code outside Transduce"] = f"{', '.join(facts['foreign_code'])} (needs --trust-code)"
    return rows


def _readable(provenance: dict[str, Any]) -> dict[str, Any]:
    """The same, with characters and words counted instead of listed, as there are thousands, without n-grams, and with
    recordings among the `examples` by name."""
    from transduce.data.character_profile import CharacterProfile
    from transduce.data.speech.uploads import called

    if isinstance(examples := provenance.get("examples"), list):
        provenance = provenance | {"examples": [called(each) if _is_sound(each) else each for each in examples]}
    provenance = {name: each for name, each in provenance.items() if name not in ("ngrams", "words")}
    provenance |= _kept_and_known(provenance)
    noted = provenance.get("characters")
    if not isinstance(noted, dict):
        return provenance
    found = {side: CharacterProfile.from_dict(each) for side, each in noted.items()}
    return provenance | {"characters": {side: f"{each.different:,} different" for side, each in found.items() if each}}


def _kept_and_known(provenance: dict[str, Any]) -> dict[str, Any]:
    """What of sources their translations keep, and how many words have capitals, in numbers."""
    found = dict[str, Any]()
    if isinstance(noted := provenance.get("protected"), dict):
        pairs = {kind: each for kind, each in noted.items() if isinstance(each, list) and len(each) == 2}
        found["protected"] = {kind: f"{kept} of {seen} kept" for kind, (seen, kept) in pairs.items()}
    typography = provenance.get("typography")
    if isinstance(typography, dict) and isinstance(words := typography.get("cased"), str):
        found["typography"] = typography | {"cased": f"{len(words.split()):,} words"}
    return found


def _is_sound(example: Any) -> bool:
    return isinstance(example, str) and example.startswith("data:")


def _in_a_line(value: Any) -> str:
    """A section as `key value` pairs, hashes cut short."""
    if not isinstance(value, dict):
        return _short(value)
    return ", ".join(f"{key} {each}" for key, each in ((key, _short(each)) for key, each in flat(value).items()))


def _short(value: Any) -> str:
    """As text, with checksums cut to their first digits."""
    return re.sub(r"\b[0-9a-f]{64}\b", lambda found: found[0][:12], str(value))


def _table(title: str, rows: dict[str, str]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    from transduce.core.printable import printable_line

    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    for name, value in rows.items():
        table.add_row(Text(printable_line(name), style="cyan"), Text(printable_line(value)))
    return table


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested tables as one: `{"a": {"b": 1}}` -> `{"a.b": "1"}`."""
    rows: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            rows |= flat(value, f"{prefix}{key}.")
        else:
            rows[prefix + key] = str(value)
    return rows
