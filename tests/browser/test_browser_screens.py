"""The pictures of the documentation are taken by a script, from any translator."""

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser

REPOSITORY = Path(__file__).parents[2]


def test_every_picture_of_the_page_is_taken(browser: Browser, trained_run: Path, tmp_path: Path) -> None:
    """`browser` is there so that the test is skipped where no browser is."""
    from PIL import Image

    script = REPOSITORY / "docs" / "make_screens.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRANSDUCE_CHROMIUM": browser.browser_type.executable_path}
    if not Path(environment["TRANSDUCE_CHROMIUM"]).exists():
        del environment["TRANSDUCE_CHROMIUM"]
    command = [sys.executable, str(script), str(trained_run), "--folder", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    taken = {path.stem for path in tmp_path.glob("*.png")}
    pictures = {path.stem for path in (REPOSITORY / "docs" / "images").glob("explorer-*.png")}
    assert taken == pictures - {"explorer-words"}  # that one is of another model
    for path in tmp_path.glob("*.png"):
        assert len(Image.open(path).convert("RGB").getcolors(10**7) or []) > 20, path.name
