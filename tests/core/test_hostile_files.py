"""150 of the model files of benchmarks/hostile_model_files.py: each is refused in words, or loaded and right."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from hostile_files import SPOILS

FILES = 150


def test_every_hostile_file_is_refused_in_words_or_loaded_and_right() -> None:
    """In one process, which nothing ends and to which little memory is left, where the system has such a limit."""
    script = Path(__file__).parents[1] / "hostile_files.py"
    command = [sys.executable, str(script), "0", str(FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each for each in found if each["outcome"].startswith("failed")] == []
    assert (done.returncode, len(found)) == (0, FILES), done.stderr[-2000:]
    spoilt = Counter(name for each in found for name in each["what"].split(" + "))
    assert set(spoilt) == {spoil.__name__ for spoil in SPOILS}
    assert {each["outcome"].partition(":")[0] for each in found} == {"refused", "right"}
