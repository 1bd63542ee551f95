"""`transduce predict` imports what an answer needs and nothing else: torch alone takes longer than all the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

NOT_NEEDED = {
    "matplotlib",
    "pyarrow",  # corpora
    "rich",  # nobody looks at a pipe
    "rouge_score",
    "sacrebleu",
    "sacremoses",
    "scipy",
    "sympy",
    "tomli_w",
    "torch._dynamo",
    "torch._inductor",
    "torch.utils.tensorboard",
    "transduce.training.loop",
    "uvicorn",
}
ONLY_TORCHS = {"pydantic", "importlib.metadata", "transduce.documents.docx"}
SCRIPT = """
import sys
from transduce.cli.app import main
sys.argv = ["transduce", "predict", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("engine", ["torch", "kernels", "auto"])
@pytest.mark.usefixtures("kernels")
def test_the_first_answer_waits_for_nothing_else(tiny_run: Path, engine: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tiny_run / "model.safetensors"), "--engine", engine]
    done = subprocess.run(command, input="1 2\n", capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    loaded = set(done.stderr.split())
    assert ("torch" in loaded) == (engine == "torch")
    assert not loaded & (NOT_NEEDED if engine == "torch" else NOT_NEEDED | ONLY_TORCHS)
