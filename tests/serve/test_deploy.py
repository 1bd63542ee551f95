"""What `deploy/` holds is what the page shows, and says only what `transduce serve` takes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scripts import ROOT
from transduce.cli.app import app

DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
UNIT, IMAGES = DEPLOY / "transduce.service", [DEPLOY / "Dockerfile", DEPLOY / "runtime.Dockerfile"]
EACH = pytest.mark.parametrize("file", [UNIT, *IMAGES], ids=["unit", "image", "runtime"])


@EACH
def test_the_page_shows_the_file(file: Path) -> None:
    assert f"\n{file.read_text(encoding='utf-8')}```\n" in PAGE


@EACH
def test_its_options_are_those_of_serve(file: Path) -> None:
    started = [line for line in file.read_text(encoding="utf-8").splitlines() if "serve" in line and "--host" in line]
    options = {each for line in started for each in re.findall(r"--[a-z-]+", line)} | {"--api-key-file"}
    told = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    assert len(options) == 3
    assert all(each in told for each in options)


@pytest.mark.parametrize("file", IMAGES, ids=["whole", "runtime"])
def test_what_the_image_copies_is_there_and_is_not_ignored(file: Path) -> None:
    ignored = file.with_name(f"{file.name}.dockerignore").read_text(encoding="utf-8")
    kept = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", file.read_text(encoding="utf-8"), re.M)
    copied = {name for line in copies for name in line.split()}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/transduce/bin/transduce", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    if "Failed to initialize manager" in done.stderr:
        pytest.skip("systemd-analyze cannot run in this container")
    assert (done.returncode, done.stderr) == (0, "")
