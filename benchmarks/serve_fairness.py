"""How long does one client wait for a line while another sends heavy requests?

    python benchmarks/serve_fairness.py MODEL SOURCE [--requests 60] [--seconds 30] [--route ROUTE] [--serve OPTION..]

Starts `transduce serve MODEL`. One client, at 127.0.0.2, keeps --requests requests open, each of as many lines of
SOURCE as a request may have. Another, at 127.0.0.1, asks for one line, again and again, first while the server is idle.
Prints JSON: the waits of the other client in seconds, how often each was answered, and the resident memory of the
server in MB.

Linux answers at every address of 127.0.0.0/8; elsewhere the second address has to be made first.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil
from serve_load import started

HEAVY, LIGHT = "127.0.0.2", "127.0.0.1"
CHARACTERS = 19_000
LINE = "Two dogs run."


def main() -> None:
    """Both clients, then one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--route", choices=("/translate", "/v1/predict"), default="/translate")
    parser.add_argument("--serve", nargs="*", default=[], help="further options of transduce serve, without --")
    asked = parser.parse_args()
    text = heavy_text(asked.source)
    options = [f"--{each}" if not each[0].isdigit() else each for each in asked.serve]
    with started(asked.model, *options) as (process, address):
        print(json.dumps(asyncio.run(measured(address, process, text, asked)), indent=2))


def heavy_text(source: Path) -> str:
    """Lines of a file, over and over, as many as a request may have."""
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    text = "\n".join(lines)
    return (text * (CHARACTERS // max(1, len(text)) + 1))[:CHARACTERS]


def client_at(address: str, at: str) -> httpx.AsyncClient:
    """A client whose requests come from an address of this machine."""
    limits = httpx.Limits(max_connections=900)
    transport = httpx.AsyncHTTPTransport(local_address=at, limits=limits)
    return httpx.AsyncClient(base_url=address, timeout=600, transport=transport)


async def measured(address: str, process: psutil.Process, text: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Waits of the light client without and with the heavy one."""
    async with client_at(address, LIGHT) as light, client_at(address, HEAVY) as heavy:
        target = (await light.get("/v1/models")).json()["data"][0]["target"]

        def body(q: str) -> dict[str, Any]:
            return {"texts": [q]} if asked.route == "/v1/predict" else {"q": q, "source": "auto", "target": target}

        async def wait() -> float:
            begun = time.monotonic()
            answer = await light.post(asked.route, json=body(LINE))
            answer.raise_for_status()
            return time.monotonic() - begun

        for _ in range(3):
            await wait()
        idle = [await wait() for _ in range(10)]
        statuses: Counter[int] = Counter()
        end = time.monotonic() + asked.seconds

        async def ask() -> None:
            while time.monotonic() < end:
                answer = await heavy.post(asked.route, json=body(text))
                statuses[answer.status_code] += 1
                if answer.status_code == 429:
                    await asyncio.sleep(float(answer.headers["retry-after"]))

        asking = [asyncio.ensure_future(ask()) for _ in range(asked.requests)]
        await asyncio.sleep(1)
        waits = []
        while time.monotonic() < end:
            waits.append(await wait())
            await asyncio.sleep(0.2)
        for each in asking:
            each.cancel()
        failed = [each for each in await asyncio.gather(*asking, return_exceptions=True) if isinstance(each, Exception)]
    return {
        "model": asked.model.name,
        "route": asked.route,
        "heavy requests at once": asked.requests,
        "characters of each": len(text),
        "idle: seconds, median": round(median(idle), 3),
        "under load: seconds, median": round(median(waits), 3),
        "under load: seconds, most": round(max(waits), 3),
        "lines answered": len(waits),
        "heavy requests answered": dict(statuses),
        "heavy requests failed": len([each for each in failed if not isinstance(each, asyncio.CancelledError)]),
        "memory_mb": round(process.memory_info().rss / 1e6),
    }


if __name__ == "__main__":
    main()
