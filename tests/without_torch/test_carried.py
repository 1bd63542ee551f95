"""The package without torch: its modules are found by their imports, and work under its own name."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import transduce
from scripts import loaded
from served import start
from transduce.kernels.native import kernels

CARRIED = loaded("packaging/runtime/carried.py")
BUILT_ON = {"numpy", "tokenizers", "sentencex"}  # the dependencies of the package
SERVED_BY = {
    "fastapi",
    "jinja2",
    "markupsafe",
    "prometheus_client",
    "pydantic",
    "starlette",
    "uvicorn",
}  # its extra `serve`
OPTIONAL = {"fsspec", "rich", "pyarrow", "torch"}  # imported where they are there, or for whoever has torch loaded


def libraries(module: str) -> tuple[set[str], set[str]]:
    """What is neither ours nor Python's: of the imports at load, and of all, but those for types."""
    tree = CARRIED.tree_of(module)
    at_load = {name for node in CARRIED._at_load(tree) for name in CARRIED._named(node)}
    everything = {name for node in ast.walk(tree) for name in CARRIED._named(node)}
    known = {*sys.stdlib_module_names, "transduce"}
    first, all_of_them = ({name.partition(".")[0] for name in names} - known for names in (at_load, everything))
    return first, all_of_them


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """All that are carried. Here and not above: every worker loads this file, and one runs it."""
    return {*CARRIED.carried()}


@pytest.fixture(scope="module")
def alone() -> set[str]:
    """Those that are carried without the server."""
    return {*CARRIED.carried(without=CARRIED.SERVER)}


def test_no_module_needs_more_than_the_package_brings(modules: set[str], alone: set[str]) -> None:
    for module in modules:
        at_load, everything = libraries(module)
        known = BUILT_ON if module in alone else BUILT_ON | SERVED_BY
        assert at_load <= known, module
        assert everything <= known | OPTIONAL, module
        assert not CARRIED.needs_torch(module), module


def test_modules_are_followed(modules: set[str], alone: set[str]) -> None:
    assert {"transduce.without_torch.translator", "transduce.kernels.native.openmp", "transduce.cli.text"} <= modules
    assert not {"transduce.recipe.recipe", "transduce.training.memory", "transduce.serve.pipeline_model"} & modules
    assert "transduce.core.config" not in alone
    assert {"transduce.core.config", "transduce.serve.app", "transduce.serve.kernels_model"} <= modules
    assert CARRIED.needs_torch("transduce.layers.stack")
    assert CARRIED.renamed("from transduce.core import x  # pip install transduce.\n") == (
        "from transduce_runtime.core import x  # pip install transduce.\n"
    )


SCRIPT = """
import json, sys
for name in ("torch", "pydantic", "transduce", "rich", "typer"):
    sys.modules[name] = None  # importing it raises ImportError
import transduce_runtime as transduce
path, lines = json.loads(sys.argv[1])
print(json.dumps([each.to_dict() for each in transduce.load(path).predict(lines, beam=3)]))
"""


MODEL = Path(__file__).parents[1] / "formats/format-2.safetensors"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds it, with the kernels of this machine."""
    if (native := kernels()) is None:
        pytest.skip("no kernels: there was no C++ compiler when the package was installed, or TRANSDUCE_NATIVE=off")
    folder = tmp_path_factory.mktemp("package")
    CARRIED.write_to(folder)
    compiled = Path(native.__file__)
    shutil.copy(compiled, folder / "transduce_runtime/kernels/native" / compiled.name)
    return folder


@pytest.mark.usefixtures("kernels")
def test_the_package_translates_under_its_own_name(package: Path) -> None:
    model = MODEL
    lines = ["1 2 3", "", "9 9"]
    alone = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", SCRIPT, json.dumps([str(model), lines])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.stderr == ""
    expected = [each.to_dict() for each in transduce.load(model, device="cpu").predict(lines, beam=3)]
    assert json.loads(done.stdout) == json.loads(json.dumps(expected))
    command = [sys.executable, "-m", "transduce_runtime", "predict", str(model), "--beam", "3"]
    told = subprocess.run(command, input="1 2 3\n", capture_output=True, text=True, check=True, env=alone).stdout
    assert told == f"{expected[0]['text']}\n"


SERVE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
for name in ("torch", "transduce", "rich", "typer"):
    sys.modules[name] = None
from transduce_runtime.cli.runtime import main
main()
"""


@pytest.mark.usefixtures("kernels")
def test_the_package_serves_under_its_own_name(package: Path) -> None:
    process, address = start(f"one={MODEL}", f"two={MODEL}", "search.beam=2", command=["-c", SERVE, str(package)])
    try:
        asked = {"q": ["1 2 3", "9 9"], "source": "auto", "target": "und"}
        found = httpx.post(f"{address}/translate", json=asked).json()
        expected = [each.text for each in transduce.load(MODEL, device="cpu").predict(asked["q"], beam=2)]
        assert found["translatedText"] == expected
        assert [each["name"] for each in httpx.get(f"{address}/ready").json()["models"]] == ["one", "two"]
        assert "<h1" in httpx.get(f"{address}/docs").text  # of the template
        assert "T.translate = async" in httpx.get(f"{address}/").text  # of the files in the page's folder
    finally:
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("arguments", "hidden", "code", "said"),
    [
        (
            ["serve", str(MODEL)],
            "fastapi",
            2,
            'serving needs fastapi, which is not installed: .*"transduce-runtime.serve."',
        ),
        (["serve", str(MODEL), "--queue", "0"], "", 2, "serve.queue"),
        (["serve", "gone.safetensors"], "", 2, "there is no such file"),
        (["serve", "search.beam=2"], "", 2, "expected a run directory or a model file"),
        (["serve", str(MODEL), "search.coverage=0.5"], "", 2, "needs a search that goes step by step"),
        (["translate", str(MODEL)], "", 2, "choose from .*serve"),
        ([], "", 2, "required: command"),
        (["--version"], "", 0, "transduce-runtime [0-9]"),
        (["--help"], "", 0, r"COMMAND\s+--help"),
        (["serve", "--help"], "", 0, "--api-key-file"),
    ],
)
def test_its_command_says_what_is_wrong(package: Path, arguments: list[str], hidden: str, code: int, said: str) -> None:
    script = SERVE.replace('"typer"', f'"typer", "{hidden or "typer"}"')
    command = [sys.executable, "-c", script, str(package), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert re.search(said, done.stdout + done.stderr)
