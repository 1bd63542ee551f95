"""Which modules of Transduce the package without torch carries, and how they are copied into it.

Nothing is there twice in the repository. At build time the modules that the package needs are found by following
imports, and copied as modules of `transduce_runtime`, so that both packages can be installed side by side.
"""

import ast
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
BEGINNINGS = ("transduce.without_torch.translator", "transduce.cli.runtime")
SERVER = "transduce.cli.runtime_serve"  # what it imports needs the libraries of the extra `serve`
TEMPLATE = ".html.jinja"  # of a file beside a module, which it fills in
PAGES = ("page_file", "templates")  # modules that put the files of a folder beside them into one
PAGE = "page"  # that folder
NEW_NAME = "transduce_runtime"
MENTION = re.compile(r"\btransduce(?=\.\w)")  # of a module, in imports and elsewhere


def carried(without: str = "") -> list[str]:
    """The modules that the package needs, and the packages that they lie in.

    Args:
        without: a module that is left out, with what only it needs.
    """
    found: set[str] = set()
    waiting = list(BEGINNINGS)
    while waiting:
        new = loaded_with(waiting.pop()) - found
        found |= new
        waiting += {late for each in new for late in imports(each)[1] - {without} if not needs_torch(late)}
    return sorted(found)


@cache
def loaded_with(module: str) -> frozenset[str]:
    """The modules of ours that are loaded when a module is, itself among them."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        each = waiting.pop()
        if each and each not in found:
            found.add(each)
            waiting += [*imports(each)[0], each.rpartition(".")[0]]
    return frozenset(found)


def needs_torch(module: str) -> bool:
    """Whether torch is imported when a module is loaded."""
    return any(imports_torch(each) for each in loaded_with(module))


@cache
def imports_torch(module: str) -> bool:
    """Whether the module itself imports torch when it is loaded."""
    names = {name for node in _at_load(tree_of(module)) for name in _named(node)}
    return any(name.partition(".")[0] == "torch" for name in names)


@cache
def imports(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """The modules of ours that a module imports when it is loaded, and those that its functions import."""
    tree = tree_of(module)
    at_once = frozenset(each for node in _at_load(tree) for each in _named(node))
    everything = frozenset(each for node in ast.walk(tree) for each in _named(node))
    for_types = {
        each for node in ast.walk(tree) if _is_for_types(node) for one in ast.walk(node) for each in _named(one)
    }
    ours = {each for each in everything if path_of(each) is not None}
    return frozenset(ours & at_once), frozenset(ours - at_once - for_types)


def tree_of(module: str) -> ast.Module:
    """The text of one of our modules, parsed."""
    path = path_of(module)
    assert path is not None, module
    return ast.parse(path.read_text(encoding="utf-8"))


def path_of(module: str) -> Path | None:
    """The file of one of our modules; None if it is none."""
    place = SOURCE / module.replace(".", "/")
    paths = place.with_suffix(".py"), place / "__init__.py"
    return next((path for path in paths if module.startswith("transduce") and path.is_file()), None)


def write_to(folder: Path) -> None:
    """Write the modules to `folder`, under the package's own name."""
    for module in carried():
        path = path_of(module)
        assert path is not None
        to = folder / NEW_NAME / path.relative_to(SOURCE / "transduce")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
        template = path.with_suffix(TEMPLATE)
        if template.is_file():
            to.with_suffix(TEMPLATE).write_bytes(template.read_bytes())
        if path.stem in PAGES:
            shutil.copytree(path.with_name(PAGE), to.with_name(PAGE), dirs_exist_ok=True)
    for path in sorted(Path(__file__).parent.glob("transduce_runtime/*.py")):  # in place of those of `transduce`
        (folder / NEW_NAME / path.name).write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / NEW_NAME / "py.typed").touch()


def renamed(text: str) -> str:
    """A module's text, in which the modules of Transduce are those of the package."""
    return MENTION.sub(NEW_NAME, text)


def _at_load(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements that are run when a module is loaded."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_for_types(node):
            waiting += ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _named(node: ast.AST) -> set[str]:
    """The modules that an import names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return set()
