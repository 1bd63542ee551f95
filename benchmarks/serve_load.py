"""Does the server answer as `transduce predict` does, whatever the load, without errors and without growing?

    python benchmarks/serve_load.py MODEL SOURCE [--clients 64] [--minutes 10] [--answers 2000] [--malformed 10000]
                                    [--described 200] [--threads 1]

Starts `transduce serve MODEL`, then: as many concurrent requests as --answers, compared with offline predictions; one
client that asks one text at a time, for a tenth of the time; --clients clients for --minutes, each with its own
pauses after a 429; malformed bodies; schemathesis with --described examples for each path (0: not).
Prints JSON. Memory is the server process's resident set: after warm-up (the first tenth) against the last tenth.
"""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
import psutil

import transduce
from transduce.data.files import read_lines
from transduce.runtime.environment import library_versions, machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "serve"))
from hostile import check_description, send_malformed


def main() -> None:
    """All parts, then one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--malformed", type=int, default=10_000)
    parser.add_argument("--described", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    texts = [line for line in dict.fromkeys(read_lines(asked.source)) if line.strip()]
    expected = [each.text for each in transduce.load(asked.model).predict(texts[: asked.answers])]
    seconds = asked.minutes * 60
    with started(asked.model, "--threads", asked.threads, "--queue", max(2048, asked.answers)) as (process, address):
        found = {
            "model": asked.model.name,
            "machine": machine(),
            "versions": library_versions(),
            "equal": asyncio.run(compared(address, texts, expected, asked.answers)),
            "one_at_a_time": asyncio.run(load(address, texts, 1, seconds / 10)),
            "load": asyncio.run(load(address, texts, asked.clients, seconds, process)),
        }
        with httpx.Client(base_url=address, timeout=120) as client:
            found["malformed"] = send_malformed(client, asked.malformed)
        found["described"] = check_description(address, asked.described) if asked.described else 0
    one, many = (found[part]["answers_per_second"] for part in ("one_at_a_time", "load"))
    found["speed_up"] = round(many / one, 2)
    print(json.dumps(found, indent=2))


@contextmanager
def started(model: Path, *options: object) -> Iterator[tuple[psutil.Process, str]]:
    """The process and the address of a server with further options of transduce serve."""
    command = [sys.executable, "-m", "transduce", "serve", str(model), "--port", "0", *map(str, options)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        address = next(found[1] for line in server.stderr if (found := re.search(r"Serving on (http://[^,]+)", line)))
        threading.Thread(target=server.stderr.read, daemon=True).start()  # a full pipe would stop the server
        try:
            wait_for(address)
            yield psutil.Process(server.pid), address
        finally:
            server.terminate()


def wait_for(address: str) -> None:
    """Until it answers."""
    while True:
        try:
            httpx.get(f"{address}/ready")
            return
        except httpx.ConnectError:
            time.sleep(0.05)


def client_of(address: str) -> httpx.AsyncClient:
    """As many connections as there are requests, as far as a process may usually open."""
    return httpx.AsyncClient(base_url=address, timeout=600, limits=httpx.Limits(max_connections=900))


async def compared(address: str, texts: list[str], expected: list[str], answers: int) -> dict[str, int]:
    """All at once, in random order, each compared with the offline prediction of its text."""
    order = random.Random(1).choices(range(len(expected)), k=answers)
    async with client_of(address) as client:

        async def ask(place: int) -> bool:
            answer = await client.post("/v1/predict", json={"texts": [texts[place]]})
            return bool(answer.json()["predictions"][0]["text"] == expected[place])

        same = await asyncio.gather(*map(ask, order))
    return {"asked": answers, "equal": sum(same)}


async def load(
    address: str, texts: list[str], clients: int, seconds: float, process: psutil.Process | None = None
) -> dict[str, Any]:
    """Clients that ask again as soon as they are answered."""
    end = time.monotonic() + seconds
    latencies: list[float] = []
    statuses: Counter[str] = Counter()
    memory: list[int] = []

    async def ask(number: int) -> None:
        drawn = random.Random(number)
        while time.monotonic() < end:
            begun = time.monotonic()
            try:
                asked = {"q": drawn.choice(texts), "source": "auto", "target": to}
                answer = await client.post("/translate", json=asked)
            except httpx.HTTPError as error:
                statuses[type(error).__name__] += 1
                continue
            statuses[str(answer.status_code)] += 1
            if answer.status_code == 200:
                latencies.append(time.monotonic() - begun)
            elif answer.status_code == 429:
                await asyncio.sleep(float(answer.headers["retry-after"]))

    async def watch() -> None:
        while process and time.monotonic() < end:
            memory.append(process.memory_info().rss)
            await asyncio.sleep(0.2)

    async with client_of(address) as client:
        to = (await client.get("/v1/models")).json()["data"][0]["target"]
        begun = time.monotonic()
        await asyncio.gather(watch(), *map(ask, range(clients)))
        passed = time.monotonic() - begun
    cuts = quantiles(latencies, n=100)
    found = {
        "clients": clients,
        "seconds": round(passed, 1),
        "statuses": dict(statuses),
        "errors_besides_429": sum(count for status, count in statuses.items() if status not in ("200", "429")),
        "answers_per_second": round(len(latencies) / passed, 2),
        "p50_seconds": round(cuts[49], 3),
        "p95_seconds": round(cuts[94], 3),
    }
    if memory:
        tenth = max(1, len(memory) // 10)
        warm, last = median(memory[tenth : 2 * tenth]), median(memory[-tenth:])
        found |= {"memory_mb": round(last / 1e6, 1), "memory_growth_percent": round(100 * (last / warm - 1), 2)}
    return found


if __name__ == "__main__":
    main()
