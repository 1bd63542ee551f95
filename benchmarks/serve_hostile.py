"""Does the server answer others at once while it is sent what is made to hurt it?

    python benchmarks/serve_hostile.py [--requests 20] [--rounds 3] [--threads 1] [--model MODEL]

Starts `transduce serve` twice with a toy model (random weights, a subword tokenizer with the pattern of old model
files), or with --model. One of the two is sent so many hostile requests at once (tests/serve/hostile.py: one of each
kind, then again from the first), the other one nothing. Until all are answered, /health of both is asked again and
again, each time over a new connection: what the idle one takes is the machine's own doing. Prints JSON: these times and
how each hostile request was answered.
"""

import argparse
import http.client
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
from serve_load import started

from transduce.runtime.environment import library_versions, machine

sys.path += [str(Path(__file__).resolve().parents[1] / "tests" / each) for each in ("", "serve")]
from hostile import hurting

from random_models import SHORT, model_file, translator
from served import CODES
from transduce.core.model_file import save_model_file
from transduce.data.tokenizers.patterns import once_a_run


def main() -> None:
    """All rounds, then one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = asked.model or toy(Path(folder) / "toy.safetensors")
        with (
            started(model, "--threads", asked.threads, "--queue", 1024) as (_, address),
            started(model, "--threads", 1, "--queue", 1024) as (_, idle),
        ):
            rounds = [under_fire(address, idle, part) for part in parts(asked.requests, asked.rounds)]
    found = {
        "machine": machine(),
        "versions": library_versions(),
        "requests_at_once": asked.requests,
        "health_under_fire_seconds": told([each for times, _, _ in rounds for each in times]),
        "health_of_the_idle_seconds": told([each for _, times, _ in rounds for each in times]),
        "rounds": [answers for _, _, answers in rounds],
    }
    print(json.dumps(found, indent=2))


def toy(path: Path) -> Path:
    """A random translator that reads subwords, with the pattern that old model files have for spaces at the end."""
    file = model_file(translator(kind="bpe", task=CODES, search={**SHORT, "method": "beam", "beam": 5}))
    now, before = (json.dumps(pattern) for pattern in (once_a_run(r" +\z"), r" +\z"))
    assert all(text.count(now) == 1 for text in file.tokenizers.values())
    tokenizers = {side: text.replace(now, before) for side, text in file.tokenizers.items()}
    save_model_file(path, replace(file, tokenizers=tokenizers))
    return path


def parts(requests: int, rounds: int) -> list[list[str]]:
    """The names of the hostile requests of each round."""
    names = cycle(hurting())
    return [list(islice(names, requests)) for _ in range(rounds)]


def health(address: str) -> float:
    """Seconds from opening a connection until /health has answered; a minute at most."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
    return time.perf_counter() - begun


def under_fire(address: str, idle: str, names: Sequence[str]) -> tuple[list[float], list[float], list[dict[str, Any]]]:
    """The times of /health while the requests of these names are sent and answered, here and there; what each got."""
    times, others = [], []
    with ProcessPoolExecutor(1, get_context("spawn")) as other:  # whose work does not hold up who measures
        other.submit(hurting).result()  # it is there
        firing = other.submit(fire, address, names)
        while not firing.done():
            times.append(health(address))
            others.append(health(idle))
            time.sleep(0.01)
        return times, others, firing.result()


def fire(address: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """All at once."""
    asked = hurting()

    def ask(name: str) -> dict[str, Any]:
        path, body, kind = asked[name]
        begun = time.perf_counter()
        try:
            answer = httpx.post(address + path, content=body, headers={"content-type": kind}, timeout=300)
            got = {"status": answer.status_code, "answer": answer.text[:80]}
        except httpx.HTTPError as error:
            got = {"status": type(error).__name__, "answer": ""}
        return {"request": name, "path": path, "seconds": round(time.perf_counter() - begun, 3), **got}

    with ThreadPoolExecutor(len(names)) as together:
        return list(together.map(ask, names))


def told(seconds: Sequence[float]) -> dict[str, float]:
    """In short."""
    cuts = quantiles(seconds, n=1000)
    found = {"median": cuts[499], "p99": cuts[989], "p99.9": cuts[998], "worst": max(seconds)}
    return {"asked": len(seconds), **{name: round(value, 4) for name, value in found.items()}}


if __name__ == "__main__":
    main()
