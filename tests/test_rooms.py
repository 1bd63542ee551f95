"""The house keeps its order: imports go only downwards, and importing is cheap and silent."""

import ast
import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import transduce

PACKAGE = Path(transduce.__file__).parent

# Ground floor first. A line imports from lines below it in the house, that is above it here, and from within itself.
# A file or folder named here is a floor of its own, whatever room it stands in.
FLOORS = [
    "errors",
    "version",
    "extras",  # what is not installed, and how to
    "config",
    "names",
    "sentences",  # of a text, and whether training pairs are single ones
    "arguments",  # what people hand to a model in Python
    "devices",
    "config_errors",  # what is wrong with a config, in words
    "allocator",
    "native",  # kernels in C++, which know tensors and nothing else
    "processor",  # what it multiplies fast
    "int8",
    "linear",  # matrix products, which everything multiplies by
    "atomic",
    "bounded_json",
    "storage",
    "undrawn",
    "model_file",
    "attention",
    "layers",
    "models",
    "data",
    "metrics",
    "search",
    "tasks",
    "training.config",  # a table of settings, which recipes hold
    "environment",  # what a figure was measured on, which evaluation reports
    "recipe",
    "wanted",
    "workers",
    "inputs",
    "inference",
    "likelihood",
    "long_text",
    "training.log",  # what a training says of itself, which is shown while it trains
    "explore",  # of a model and its task; what asks a pipeline stands above it
    "outline",
    "pipeline",
    "evaluation",
    "distillation",
    "shortlist",
    "explore.pronouns",
    "explore.exploration",
    "explore.offline",
    "serve",
    "training",
    "apart",  # work in a process of its own
    "side_by_side",  # trainings in several
    "taught",
    "compare",
    "cli",
    "__init__",
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
    """The place in FLOORS of the longest entry that `module` is or is inside."""
    fitting = [each for each in FLOORS if module == each or module.startswith(each + ".")]
    assert fitting, f"{module} stands on no floor: give it its place in FLOORS in {__file__}"
    return FLOORS.index(max(fitting, key=len))


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


IMPORTS = {module: imported(file) for module, file in FILES.items()}


@pytest.mark.parametrize("module", FILES)
def test_imports_go_only_downwards(module: str) -> None:
    upwards = sorted(other for other in IMPORTS[module] if floor(other) > floor(module))
    assert not upwards, f"{module} imports upwards: {upwards}"


def test_no_two_files_need_each_other() -> None:
    TopologicalSorter(IMPORTS).prepare()  # raises CycleError, which names them


def test_every_floor_is_there() -> None:
    gone = [each for each in FLOORS if not any(name == each or name.startswith(each + ".") for name in FILES)]
    assert not gone, f"FLOORS in {__file__} names what is not there: {gone}"


def python(script: str) -> str:
    """What `script` writes to standard output; it must succeed and keep quiet on standard error."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


VERBS = [module for module in FILES if module.split(".")[0] == "cli"]


@pytest.mark.parametrize("module", ["", *VERBS])
def test_the_command_line_starts_without_anything_heavy(module: str) -> None:
    name = f"transduce.{module}".rstrip(".")
    loaded = set(python(f"import {name}, sys; print(*sys.modules)").split())
    assert not loaded & HEAVY


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
