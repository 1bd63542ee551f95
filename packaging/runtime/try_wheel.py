"""Whether the wheel says what it should: python try_wheel.py PYTHON [WHOLE], of an environment without torch.

The stored model files of the tests are read, and one of them is served. They have to say what is stored beside them.
With WHOLE, the Python of an environment with the whole package, this reads and serves them as well, and has to say the
same.
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


def stored(python: str) -> bool:
    """Whether the wheel says what the commits said that wrote the files."""
    known = json.loads((FILES[0].parent / "predictions.json").read_text(encoding="utf-8"))
    paths = [str(FILES[0].with_name(f"{name}.safetensors")) for name in known]
    lines = sorted({each["source"] for listed in known.values() for each in listed})
    script = WHEELS.replace("beam=3, nbest=2", "beam=1")
    done = subprocess.run(
        [python, "-c", script, json.dumps([paths, lines])], capture_output=True, text=True, check=True
    )
    found = [{each["source"]: each["text"] for each in listed} for listed in json.loads(done.stdout)]
    wanted = [{each["source"]: each["output"] for each in listed} for listed in known.values()]
    return all(own.items() <= said.items() for own, said in zip(wanted, found, strict=True))


if __name__ == "__main__":
    if not stored(sys.argv[1]):
        sys.exit("the wheel says something else than what is stored in tests/formats/predictions.json.")
    wheel = said(sys.argv[1], WHEELS, ["-m", "transduce_runtime"])
    wheel += tuple(served(sys.argv[1], ["-m", "transduce_runtime"]))
    if len(sys.argv) > 2:
        whole = said(sys.argv[2], OURS, ["-m", "transduce"])
        whole += tuple(served(sys.argv[2], ["-m", "transduce"]))
        if wheel != whole:
            sys.exit(f"the wheel says something else:\n{wheel}\n{whole}")
    beside = "as the whole package says" if len(sys.argv) > 2 else "as stored (no environment with the whole package)"
    print(f"{len(FILES)} models, {len(LINES)} lines, as lines and served: {beside}")
