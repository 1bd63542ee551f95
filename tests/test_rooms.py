"""The house keeps its order: imports go only downwards, and importing is cheap and silent."""

import ast
import json
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import transduce

PACKAGE = Path(transduce.__file__).parent

# Ground floor first. A room imports from rooms below it in the house, that is above it here, and from within itself.
ROOMS = [
    "version",
    "core",  # errors, settings, names, files, tensors in files
    "data",  # files -> tokens -> stores -> batches
    "doctor",  # what is wrong with a corpus
    "metrics",  # scores with signatures
    "kernels",  # products and C++, which know tensors and nothing else
    "runtime",  # the machine: devices, workers, child processes, the log of a run
    "attention",  # the mechanism
    "layers",  # what attention is stacked with
    "fused",  # kernels that stand in for whole stacks
    "models",  # one architecture a file
    "objectives",  # what training minimises
    "search",  # how outputs are found
    "recipe",  # a training as a table of settings
    "inference",  # texts to predictions: decoding, likelihood, constraints
    "documents",  # files of documents: what of them is text
    "tasks",  # which kind of input and output
    "interpret",  # what a model did with a text
    "pipeline",  # `transduce.load`
    "without_torch",  # the same for Transformers, on NumPy and the kernels alone
    "bulk",  # the same work on many lines, here or on a cluster
    "interop",  # model files of others
    "demo",
    "evaluation",
    "explore",  # the page
    "serve",
    "training",
    "planning",  # a training without a recipe
    "distillation",
    "compare",
    "api",  # `transduce.train`, `transduce.evaluate`
    "site",  # interactive pages about attention
    "__init__",
    "cli",
    "__main__",
]
HEAVY = {"torch", "numpy", "pyarrow", "pydantic", "tokenizers", "safetensors", "sacrebleu", "sacremoses", "matplotlib"}
HEAVY |= {"fastapi", "starlette", "uvicorn"}


def module_name(file: Path) -> str:
    """`training/loop.py` -> "training.loop"; a room's `__init__.py` is the room."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def floor(module: str) -> int:
    """The place in ROOMS of the room that `module` stands in."""
    room = module.split(".", maxsplit=1)[0]
    assert room in ROOMS, f"{module} stands in no room: give {room} its place in ROOMS in {__file__}"
    return ROOMS.index(room)


def imported(file: Path) -> set[str]:
    """The modules of this package that `file` imports anywhere in it, also inside functions and for types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports here are written from the package's root"
            module = str(node.module)
            # `from transduce.attention import masks` imports a module; `.. import KeyValue` a room's public name.
            found |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    ours = {name.removeprefix("transduce.") for name in found if name.startswith("transduce.")}
    return {name for name in ours if name in FILES}


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports; made by the first test that asks, as every worker loads this file."""
    return {module: imported(file) for module, file in FILES.items()}


@pytest.mark.parametrize("module", FILES)
def test_imports_go_only_downwards(module: str) -> None:
    upwards = sorted(other for other in imports()[module] if floor(other) > floor(module))
    assert not upwards, f"{module} imports upwards: {upwards}"


def test_no_two_files_need_each_other() -> None:
    TopologicalSorter(imports()).prepare()  # raises CycleError, which names them


def test_every_room_is_there() -> None:
    there = {name.split(".")[0] for name in FILES}
    assert set(ROOMS) == there, "ROOMS and the package's folders differ"


def test_at_the_top_stand_three_files() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "version.py"}


def test_there_are_at_most_fourteen_levels() -> None:
    needs: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, others in imports().items():
        room = module.split(".")[0]
        needs[room] |= {other.split(".")[0] for other in others} - {room}
    levels: dict[str, int] = {}
    for room in TopologicalSorter(needs).static_order():
        levels[room] = 1 + max((levels[other] for other in needs[room]), default=0)
    assert max(levels.values()) <= 14, levels


def python(script: str) -> str:
    """What `script` writes to standard output; it must succeed and keep quiet on standard error."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


VERBS = [module for module in FILES if module.split(".")[0] == "cli"]


def test_the_command_line_starts_without_anything_heavy() -> None:
    """One process imports the modules one after the other and tells what each of them loads."""
    names = ["transduce", *(f"transduce.{module}" for module in VERBS)]
    script = f"""
import importlib, json, sys
def loaded(name):
    before = set(sys.modules)
    importlib.import_module(name)
    return sorted(set(sys.modules) - before)
print(json.dumps({{name: loaded(name) for name in {names}}}))
"""
    found = json.loads(python(script))
    assert {name: set(modules) & HEAVY for name, modules in found.items()} == {name: set() for name in names}


def test_importing_is_silent_and_changes_nothing() -> None:
    everything = [f"transduce.{module}" for module in FILES if not module.startswith("__")]
    script = f"""
import importlib, json, os, random, signal, sys
import numpy, rich.style, torch  # rich draws from `random` when it is imported; that is not our doing
def world():
    return [
        repr(random.getstate()), repr(numpy.random.get_state()), torch.get_rng_state().tolist(),
        torch.get_num_threads(), repr(torch.get_default_dtype()), sorted(os.environ.items()), os.getcwd(),
        torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled(),
        [repr(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)],
    ]
before = world()
for name in {everything}:
    importlib.import_module(name)
print(json.dumps([one == other for one, other in zip(before, world(), strict=True)]))
"""
    unchanged = json.loads(python(script))  # nothing but this line was printed
    assert all(unchanged)
