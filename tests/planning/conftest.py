"""A recipe on files of its own, for the benchmarks that train without it."""

import json
from pathlib import Path

import pytest

from tiny_recipe import DIGITS, TINY_RECIPE


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns of sources, the target between them."""
    folder = tmp_path_factory.mktemp("toy")
    for part, numbers in {"train": range(60), "dev": range(60, 70), "test": range(70, 90)}.items():
        rows = [(" ".join(str(n)), " ".join(DIGITS[int(d)] for d in str(n)), f"N;{n % 2}") for n in numbers]
        (folder / f"{part}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    columns = "source_column = [0, 2], target_column = 1"
    _, _, rest = TINY_RECIPE.partition("[tokenizer]")
    path = folder / "toy.toml"
    path.write_text(
        f'[task]\nmetrics = ["exact_match", "per"]\n[data]\nroot = {json.dumps(str(folder))}\n'
        f'train = [{{ tsv = "train.tsv", {columns} }}]\nvalidation = {{ tsv = "dev.tsv", {columns} }}\n'
        f'test = {{ words = {{ tsv = "test.tsv", {columns} }} }}\n[tokenizer]{rest}',
        encoding="utf-8",
    )
    return path
