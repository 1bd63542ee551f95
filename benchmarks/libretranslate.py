"""Do packages of ours work in LibreTranslate? Run with the Python of an environment that has LibreTranslate:

    python -m venv other && other/bin/pip install libretranslate libretranslatepy
    other/bin/python benchmarks/libretranslate.py PACKAGE... [--text "One sentence. Another one."]

Installs the packages into an empty home by Argos Translate, starts LibreTranslate's own server on a free port, and
asks it through libretranslatepy: which languages there are, and whether two sentences are translated as two. It uses no
network. Exits with 1 if anything is not as it should be.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.metadata import version
from pathlib import Path

INSTALL = "import sys, argostranslate.package as p\nfor each in sys.argv[1:]: p.install_from_path(each)"
SECONDS = 300  # for the server to begin to answer


def main() -> None:
    """Prints what was asked and answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, nargs="+")
    parser.add_argument("--text", default="Two dogs run. A man sleeps.", help="two sentences, for the first package")
    asked = parser.parse_args()
    libraries = ("libretranslate", "argos-translate-lt", "ctranslate2", "minisbd", "libretranslatepy")
    print(", ".join(f"{name} {version(name)}" for name in libraries))
    pairs = [languages_of(each) for each in asked.packages]
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "ARGOS_PACKAGES_DIR": f"{home}/packages"}
        environment |= {"ARGOS_CHUNK_TYPE": "MINISBD", "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home}
        subprocess.run([sys.executable, "-c", INSTALL, *map(str, asked.packages)], check=True, env=environment)
        codes = sorted({code for pair in pairs for code in pair})
        port = free_port()
        command = [str(Path(sys.executable).with_name("libretranslate")), "--port", str(port)]
        command += ["--load-only", ",".join(codes), "--disable-web-ui"]
        with subprocess.Popen(command, env=environment, cwd=home) as server:
            try:
                sound = answers(f"http://127.0.0.1:{port}/", server, codes, pairs[0], asked.text)
            finally:
                server.terminate()
    sys.exit(0 if sound else 1)


def languages_of(package: Path) -> tuple[str, str]:
    """Codes of its source and target."""
    with zipfile.ZipFile(package) as packed:
        [name] = [each for each in packed.namelist() if each.endswith("/metadata.json")]
        found = json.loads(packed.read(name))
    return found["from_code"], found["to_code"]


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def answers(
    address: str, server: "subprocess.Popen[bytes]", codes: list[str], pair: tuple[str, str], text: str
) -> bool:
    """Whether the server lists these languages, and translates the text as its two sentences by themselves."""
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(address)
    listed = None
    began = time.monotonic()
    while listed is None and server.poll() is None and time.monotonic() - began < SECONDS:
        try:
            listed = client.languages()
        except OSError:
            time.sleep(1)
    if listed is None:
        print("the server did not answer.")
        return False
    found = sorted(each["code"] for each in listed)
    print(f"languages: {', '.join(found)}")
    first, _, second = text.partition(". ")
    whole, *parts = (client.translate(each, *pair) for each in (text, f"{first}.", second))
    for source, output in zip((text, f"{first}.", second), (whole, *parts), strict=True):
        print(f"{pair[0]}: {source}\n{pair[1]}: {output}")
    return found == codes and words(whole) == [word for part in parts for word in words(part)]


def words(text: str) -> list[str]:
    """Without case and punctuation: LibreTranslate gives an output the first letter and last mark of its source."""
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    main()
