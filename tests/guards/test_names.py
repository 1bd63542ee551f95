"""One name for one thing: no public class is called as another one of the package."""

import ast
from collections import defaultdict
from pathlib import Path

import transduce

PACKAGE = Path(transduce.__file__).parent


def test_no_public_class_name_stands_twice() -> None:
    where = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(file.relative_to(PACKAGE)))
    twice = {name: sorted(files) for name, files in where.items() if len(files) > 1}
    assert not twice, f"name one of each otherwise: {twice}"
