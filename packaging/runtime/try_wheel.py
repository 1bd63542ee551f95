"""Whether the wheel says what the whole package says: python try_wheel.py PYTHON, of an environment without torch.

The stored model files of the tests are read by both, each in a process of its own; one of them is also served by both.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

FILES = sorted((Path(__file__).resolve().parents[2] / "tests/formats").glob("*.safetensors"))
LINES = ["1 2 3", "9 9", "", "7 5 1 0 8"]
OURS = """
import json, sys
import transduce
paths, lines = json.loads(sys.argv[1])
print(json.dumps([[each.to_dict() for each in transduce.load(path).predict(lines, beam=3, nbest=2)] for path in paths]))
"""
WHEELS = """
import importlib.util, pathlib
assert importlib.util.find_spec("torch") is None, "this environment has torch"
assert "site-packages" in pathlib.Path(importlib.util.find_spec("transduce_runtime").origin).parts
""" + OURS.replace("import transduce\n", "import transduce_runtime as transduce\n")


def said(python: str, script: str, command: list[str]) -> tuple[str, str]:
    """What a script prints, and what the command writes for the lines with the first file."""
    asked = json.dumps([[str(path) for path in FILES], LINES])
    script_said = subprocess.run([python, "-c", script, asked], capture_output=True, text=True, check=True).stdout
    lines = "".join(f"{line}\n" for line in LINES)
    run = subprocess.run(
        [python, *command, "predict", str(FILES[0])], input=lines, capture_output=True, text=True, check=True
    )
    return script_said, run.stdout


def served(python: str, command: list[str]) -> list[str]:
    """What the server says to each line, and its description."""
    arguments = [python, *command, "serve", str(FILES[0]), "--port", "0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = (re.search(r"Serving on (http://[^,]+)", line) for line in process.stderr)
            address = next(found[1] for found in told if found)
            body = {"q": LINES, "source": "auto", "target": "und"}
            asked = Request(f"{address}/translate", json.dumps(body).encode(), {"content-type": "application/json"})
            return [urlopen(each, timeout=60).read().decode() for each in (asked, f"{address}/openapi.json")]
        finally:
            process.terminate()


if __name__ == "__main__":
    whole = said(sys.executable, OURS, ["-m", "transduce"])
    wheel = said(sys.argv[1], WHEELS, ["-m", "transduce_runtime"])
    whole += tuple(served(sys.executable, ["-m", "transduce"]))
    wheel += tuple(served(sys.argv[1], ["-m", "transduce_runtime"]))
    if wheel != whole:
        sys.exit(f"the wheel says something else:\n{wheel}\n{whole}")
    print(f"{len(FILES)} models, {len(LINES)} lines: the same from both, as lines and served")
