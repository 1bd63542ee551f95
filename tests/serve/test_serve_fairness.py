"""Clients take turns, models work beside each other, and work that nobody waits for stops."""

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from served import serving, write_model
from transduce.inference.prediction import Prediction
from transduce.pipeline.pipeline import Pipeline
from transduce.serve.batches import BatchQueue, Busy
from transduce.serve.measures import ServerMetrics
from transduce.serve.models import Loaded, Model
from transduce.serve.settings import ServeSettings
from transduce.serve.turns import BatchCost, FairThreads, RoundRobin, address_of, current_client
from transduce.serve.work import Answer, ClientDisconnected, SearchOptions, WorkItem, answer


@pytest.fixture(scope="module")
def loaded(served_file: Path) -> Loaded:
    return Model("tiny", served_file).current


def echo(works: Sequence[WorkItem]) -> list[list[Answer]]:
    return [[Answer(Prediction(text, text, 0.0, 0.0, (), ())) for text in work.texts] for work in works]


def queue(run: Any, **settings: Any) -> BatchQueue:
    made = BatchQueue(ServeSettings(**{"wait_ms": 0, **settings}), ServerMetrics(), run)
    made.start()
    return made


async def ask(made: BatchQueue, client: str, model: Loaded, texts: Sequence[str]) -> list[str]:
    current_client.set(client)
    works = [WorkItem(model, (text,), SearchOptions()) for text in texts]
    return [each.prediction.text for each in await made.answers(works)]


def asking(made: BatchQueue, client: str, model: Loaded, texts: Sequence[str]) -> "asyncio.Task[list[str]]":
    return asyncio.get_running_loop().create_task(ask(made, client, model, texts))


def test_turns_are_round_robin_as_in_a_slow_loop() -> None:
    drawn, turns, expected = random.Random(1), RoundRobin[tuple[str, int]](), []
    waiting: list[tuple[str, list[int]]] = []  # clients in their order
    took = []
    for step in range(2000):
        client = drawn.choice("abcd")
        if drawn.random() < 0.5:
            turns.put(client, [(client, step)])
            own = next((listed for name, listed in waiting if name == client), None)
            if own is None:
                waiting.append((client, [step]))
            else:
                own.append(step)
        elif waiting:
            [first, *_] = turns
            turns.take([first])
            took.append(first)
            name, listed = waiting.pop(0)
            expected.append((name, listed.pop(0)))
            if listed:
                waiting.append((name, listed))
        assert len(turns) == sum(len(listed) for _, listed in waiting)
    assert took == expected and len(took) > 500


def test_a_newcomer_is_in_the_next_batch(loaded: Loaded) -> None:
    async def main() -> None:
        gate, batches = threading.Event(), []

        def run(works: Sequence[WorkItem]) -> list[list[Answer]]:
            batches.append([work.texts[0] for work in works])
            assert gate.wait(60)
            return echo(works)

        made = queue(run, batch_size=4)
        heavy = asking(made, "a", loaded, [f"a{each}" for each in range(60)])
        while not batches:
            await asyncio.sleep(0.001)
        light = [asking(made, client, loaded, [client]) for client in "bc"]
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*light) == [["b"], ["c"]]
        assert len(await heavy) == 60
        assert set(batches[1]) >= {"b", "c"}
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_others_have_their_turn_between_the_pieces_of_a_long_text(loaded: Loaded, offline: Pipeline) -> None:
    """With the real search, of a text of a hundred sentences; what it gives is not changed by what came between."""
    long = " ".join(["ba de fi go."] * 100)
    expected = offline.predict(long, split="sentences").text

    async def main() -> None:
        ended, pieces = [], threading.Event()

        def run(works: Sequence[WorkItem]) -> list[list[Any]]:
            between = works[0].between
            assert between is not None

            def noted() -> None:
                pieces.set()
                time.sleep(0.01)
                between()

            if works[0].texts[0] == long:
                works[0].between = noted
            found = answer(works)
            ended.append(works[0].texts[0])
            return found

        made = queue(run)
        current_client.set("heavy")
        work = WorkItem(loaded, (long,), SearchOptions(split="sentences"))
        heavy = asyncio.get_running_loop().create_task(made.answers([work]))
        await asyncio.to_thread(pieces.wait, 60)
        own = asking(made, "heavy", loaded, ["ku"])  # waits for its own
        assert await ask(made, "light", loaded, ["la"]) == [offline.predict("la").text]
        assert not heavy.done()
        assert (await heavy)[0].prediction.text == expected
        await own
        assert ended == ["la", long, "ku"]
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_work_that_nobody_waits_for_stops(loaded: Loaded) -> None:
    async def main() -> None:
        stopped, begun = threading.Event(), threading.Event()

        def run(works: Sequence[WorkItem]) -> list[list[Any]]:
            begun.set()
            try:
                for _ in range(6000):
                    assert works[0].between is not None
                    works[0].between()
                    time.sleep(0.01)
            except ClientDisconnected:
                stopped.set()
                raise
            return echo(works)

        made = queue(run)
        task = asking(made, "a", loaded, ["x"])
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        assert await asyncio.to_thread(stopped.wait, 10)
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_one_models_long_work_does_not_hold_another(loaded: Loaded) -> None:
    async def main() -> None:
        gate = threading.Event()

        def run(works: Sequence[WorkItem]) -> list[list[Any]]:
            assert works[0].model.name == "quick" or gate.wait(60)
            return echo(works)

        made = queue(run)
        slow = asking(made, "a", replace_name(loaded, "slow"), ["x"])
        assert await ask(made, "a", replace_name(loaded, "quick"), ["y"]) == ["y"]
        assert not slow.done() and made.alive
        gate.set()
        assert await slow == ["x"]
        await asyncio.to_thread(made.stop)
        assert not made.alive

    asyncio.run(main())


def replace_name(loaded: Loaded, name: str) -> Loaded:
    return loaded._replace(name=name)


def test_who_has_nothing_waiting_finds_room_in_a_full_queue(loaded: Loaded) -> None:
    async def main() -> None:
        gate, reached = threading.Event(), threading.Event()

        def run(works: Sequence[WorkItem]) -> list[list[Any]]:
            reached.set()
            assert gate.wait(60)
            return echo(works)

        made = queue(run, queue=16, batch_size=1)
        tasks = [asking(made, "a", loaded, ["first"])]
        await asyncio.to_thread(reached.wait, 60)
        tasks.append(asking(made, "a", loaded, ["x"] * 16))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await ask(made, "a", loaded, ["y"])
        tasks.append(asking(made, "b", loaded, ["z", "z"]))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await ask(made, "b", loaded, ["z"])
        gate.set()
        assert list(map(len, await asyncio.gather(*tasks))) == [1, 16, 2]
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_the_cost_of_batches_is_a_weighted_least_squares_line() -> None:
    drawn, cost = np.random.default_rng(1), BatchCost()
    assert cost.most(0.5) == BatchCost.UNKNOWN
    sizes = drawn.integers(10, 3000, 40)
    seconds = 0.1 + 0.0004 * sizes + drawn.normal(0, 0.01, 40)
    for size, each in zip(sizes, seconds, strict=True):
        cost.saw(int(size), float(each))
    weights = BatchCost.DECAY ** np.arange(39, -1, -1)
    slope, fixed = np.polyfit(sizes, seconds, 1, w=np.sqrt(weights))
    assert cost.line == pytest.approx((fixed, slope), rel=1e-6)
    assert cost.most(0.5) == pytest.approx((0.5 - fixed) / slope, rel=1e-6)
    assert cost.most(0.01) == pytest.approx(fixed / slope, rel=1e-6)  # smaller ones would waste more than half


def test_a_cost_of_equal_batches_is_their_mean() -> None:
    cost = BatchCost()
    for _ in range(5):
        cost.saw(100, 0.2)
    assert cost.most(0.5) == pytest.approx(250)


def test_clients_take_turns_in_threads() -> None:
    async def main() -> list[str]:
        threads, done, gate = FairThreads(1, "test"), list[str](), threading.Event()

        async def run(client: str, wait: bool = False) -> None:
            current_client.set(client)
            await threads.run(lambda: (gate.wait(60) if wait else None, done.append(client)))

        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(run("a", wait=True))]
        await asyncio.sleep(0)
        tasks += [loop.create_task(run("a")) for _ in range(5)]
        await asyncio.sleep(0)
        left = loop.create_task(run("left"))
        tasks += [loop.create_task(run("b"))]
        await asyncio.sleep(0)
        left.cancel()
        gate.set()
        await asyncio.gather(*tasks)
        threads.stop()
        return done

    assert asyncio.run(main()) == ["a", "a", "b", "a", "a", "a", "a"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("10.0.0.1", "6.6.6.6", "10.0.0.1"),  # nobody says that this one is a proxy
        ("9.9.9.9", "6.6.6.6, 7.7.7.7", "7.7.7.7"),  # what stands before may be made up
        ("9.9.9.9", "7.7.7.7, 9.9.9.8", "7.7.7.7"),
        ("9.9.9.9", "", "9.9.9.9"),
        ("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::"),
    ],
)
def test_where_a_request_comes_from(peer: str, forwarded: str, expected: str) -> None:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    assert address_of({"client": (peer, 1), "headers": headers}, ("9.9.9.9", "9.9.9.8")) == expected


def test_sixty_heavy_requests_of_one_client_hold_no_other(tmp_path: Path) -> None:
    """Over sockets, with the real search; the heavy client's would take minutes, so it leaves, and its work stops."""
    path = write_model(tmp_path / "slow.safetensors", search={"method": "beam", "beam": 12})
    heavy = {"q": "\n".join(["ba de fi go ku la me ni po ra"] * 300), "source": "de", "target": "en"}
    light = {"q": "ba de", "source": "de", "target": "en"}

    async def main(address: str) -> list[float]:
        elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2", limits=httpx.Limits(max_connections=100))
        async with (
            httpx.AsyncClient(base_url=address, timeout=60, transport=elsewhere) as many,
            httpx.AsyncClient(base_url=address, timeout=60) as one,
        ):
            (await one.post("/translate", json=light)).raise_for_status()
            tasks = [asyncio.get_running_loop().create_task(many.post("/translate", json=heavy)) for _ in range(60)]
            waits = []
            for _ in range(4):
                await asyncio.sleep(0.3)
                begun = time.process_time()  # of all threads here, whatever else the machine does
                answered = await one.post("/translate", json=light)
                assert answered.status_code == 200
                waits.append(time.process_time() - begun)
            assert not all(each.done() for each in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return waits

    with serving([path], queue=100_000) as running:
        waits = asyncio.run(main(running.address))
        end = time.monotonic() + 20
        while running.metric("transduce_queue_texts") and time.monotonic() < end:
            time.sleep(0.05)
        assert running.metric("transduce_queue_texts") == 0
        assert running.metric("transduce_dropped_texts_total") > 0
    assert max(waits) <= 2, waits


def test_at_its_timeout_a_requests_work_stops_too(tmp_path: Path) -> None:
    """A text whose pieces take far longer than the time that the request has."""
    path = write_model(
        tmp_path / "slow.safetensors",
        search={"method": "beam", "beam": 12, "min_length": 100, "max_length_offset": 110},
    )
    with serving([path], timeout=2.0, characters=1_000_000) as running:
        answered = running.post("/v1/predict", texts=["ba de fi go ku la. " * 10_000], split="sentences")
        assert answered.status_code == 503 and "no answer within 2 s" in answered.json()["error"]
        lanes = list(running.service.batches._lanes.values())
        assert len(lanes) == 1
        begun, used = time.monotonic(), time.process_time()
        while lanes[0].inside and time.monotonic() - begun < 120:
            time.sleep(0.01)
        assert not lanes[0].inside
        assert time.process_time() - used < 5  # of the processor; all of the text takes some 18
        again = (running.post("/v1/predict", texts=["ba"], method="greedy").status_code for _ in range(60))
        assert 200 in again  # a busy machine may need more than two seconds for the first ones
