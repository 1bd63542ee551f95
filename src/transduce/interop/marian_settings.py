"""How marian-decoder and Bergamot's translator would search with a model: their `.yml` as settings of ours.

| key | here |
|---|---|
| `beam-size` | `method`, `beam` |
| `normalize` p: log p / L^p | `length_rule = "power"`, `alpha` |
| `max-length-factor` m: m S tokens, S with the end token | `max_length_factor`, `max_length_offset` |
| `allow-unk` | whether the unknown token may be written, of a `.bin` |
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.bounded_file import bounded_text
from transduce.core.errors import InputError
from transduce.search.keys import KEYS

NAMES = ("decoder.yml", "config*.yml")  # beside a model
LARGEST = 2**20  # bytes
BEAM, NORMALIZE, FACTOR = "beam-size", "normalize", "max-length-factor"
DEFAULTS = {BEAM: 12.0, NORMALIZE: 0.0, "word-penalty": 0.0, FACTOR: 3.0}  # of marian-decoder


class MarianSettings(NamedTuple):
    """search: keys of [search]; empty where there is no file. file: where they come from.

    writes_unknown: whether outputs may hold the unknown token.
    """

    search: dict[str, Any]
    writes_unknown: bool = False
    file: Path | None = None


def yaml_values(text: str) -> dict[str, str]:
    """The lines `key: value` of a text in YAML; what is a list or a table there is left out."""
    found = (re.fullmatch(r"([\w-]+):\s*(.*?)\s*", line) for line in text.split("\n"))
    return {match[1]: match[2].strip("\"'") for match in found if match}


def settings_beside(path: Path) -> MarianSettings:
    """Those of the `.yml` beside a model, which names it among its models.

    Raises:
        InputError: a value is wrong, or there is a word penalty, which search here does not have.
    """
    for file in sorted(each for name in NAMES for each in path.parent.glob(name)):
        text = bounded_text(file, LARGEST)
        if path.name in text:
            return _settings(file, yaml_values(text))
    return MarianSettings({})


def _settings(file: Path, values: Mapping[str, str]) -> MarianSettings:
    problems: list[str] = []

    def number(key: str, name: str) -> float:
        bounds, value = KEYS[name].bounds, values.get(key, "") or DEFAULTS[key]
        try:
            found = float({"true": "1", "false": "0"}.get(str(value), value))
        except ValueError:
            found = float("nan")
        if not bounds.get("ge", found) <= found <= bounds.get("le", found):
            wanted = f"a number from {bounds['ge']:g} to {bounds['le']:g}"
            problems.append(f"{file}: {key}: expected {wanted}; got {value!r}.")
            return DEFAULTS[key]
        return found

    beam, alpha, factor = (
        number(key, name) for key, name in ((BEAM, "beam"), (NORMALIZE, "alpha"), (FACTOR, "max_length_factor"))
    )
    if (penalty := values.get("word-penalty", "0")) not in ("0", "0.0"):
        problems.append(f"{file}: word-penalty = {penalty}: search here has none. Delete the line to do without it.")
    if problems:
        raise InputError(problems)
    method = {"method": "beam", "beam": int(beam)} if beam > 1 else {"method": "greedy"}
    lengths = {"max_length_factor": factor, "max_length_offset": int(factor)}
    search = {**method, "length_rule": "power", "alpha": alpha, **lengths}
    return MarianSettings(search, values.get("allow-unk") == "true", file)
