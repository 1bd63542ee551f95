"""The queue: bounded, first come first served, each answer once, nobody's fault is a neighbour's."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from served import Gate
from transduce.inference.prediction import Prediction
from transduce.pipeline.pipeline import Pipeline
from transduce.serve.batches import BatchQueue, BrokeDown, Busy, Stopped
from transduce.serve.measures import ServerMetrics
from transduce.serve.models import Loaded, Model
from transduce.serve.settings import ServeSettings
from transduce.serve.work import Answer, SearchOptions, WorkItem

HOUR = 3_600_000  # milliseconds


@pytest.fixture(scope="module")
def loaded(served_file: Path) -> Loaded:
    return Model("tiny", served_file).current


def said(text: str) -> Answer:
    return Answer(Prediction(text, text, 0.0, 0.0, (), ()))


def echo(works: Sequence[WorkItem]) -> list[list[Answer]]:
    return [[said(text) for text in work.texts] for work in works]


def batches(run: Any, **settings: Any) -> BatchQueue:
    made = BatchQueue(ServeSettings(**settings), ServerMetrics(), run)
    made.start()
    return made


def works(loaded: Loaded, texts: Sequence[str], ask: SearchOptions = SearchOptions()) -> list[WorkItem]:  # noqa: B008
    return [WorkItem(loaded, (text,), ask) for text in texts]


def test_thousands_of_answers_each_to_its_own_request(loaded: Loaded) -> None:
    seen: Counter[str] = Counter()

    def run(given: Sequence[WorkItem]) -> list[list[Answer]]:
        seen.update(text for work in given for text in work.texts)
        assert len({work.batch_key for work in given}) == 1
        assert sum(len(work.texts) for work in given) <= 8
        return echo(given)

    async def main() -> None:
        made = batches(run, batch_size=8, queue=10_000, wait_ms=1)
        drawn = random.Random(1)
        asks = [SearchOptions(), SearchOptions((("beam", 2),)), SearchOptions(long="truncate")]
        asked = [[f"{number}.{each}" for each in range(drawn.randint(1, 5))] for number in range(800)]
        found = await asyncio.gather(*(made.answers(works(loaded, texts, drawn.choice(asks))) for texts in asked))
        assert [[each.prediction.text for each in answers] for answers in found] == asked
        assert set(seen.values()) == {1}
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_a_full_queue_refuses_whole_requests_and_takes_again_later(loaded: Loaded) -> None:
    async def main() -> None:
        gate = Gate(echo)
        made = batches(gate, batch_size=1, queue=3, wait_ms=0)
        first = asyncio.ensure_future(made.answers(works(loaded, ["0"])))
        await asyncio.to_thread(gate.reached.wait)
        waiting = asyncio.ensure_future(made.answers(works(loaded, ["1", "2"])))
        await asyncio.sleep(0)
        with pytest.raises(Busy) as caught:
            await made.answers(works(loaded, ["3", "4"]))
        assert 1 <= caught.value.seconds <= 60
        last = asyncio.ensure_future(made.answers(works(loaded, ["5"])))  # there is room for one
        await asyncio.sleep(0)
        gate.open()
        assert [len(each) for each in await asyncio.gather(first, waiting, last)] == [1, 2, 1]
        assert gate.batches == [["0"], ["1"], ["2"], ["5"]]
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_who_leaves_is_not_computed_for_and_makes_room(loaded: Loaded) -> None:
    async def main() -> None:
        gate = Gate(echo)
        made = batches(gate, batch_size=1, queue=2, wait_ms=0)
        running = asyncio.ensure_future(made.answers(works(loaded, ["running"])))
        await asyncio.to_thread(gate.reached.wait)
        leaving = asyncio.ensure_future(made.answers(works(loaded, ["a", "b"])))
        await asyncio.sleep(0)
        leaving.cancel()
        running.cancel()  # its batch goes on, for nobody
        await asyncio.gather(leaving, running, return_exceptions=True)
        staying = asyncio.ensure_future(made.answers(works(loaded, ["c", "d"])))
        await asyncio.sleep(0)
        gate.open()
        assert [each.prediction.text for each in await staying] == ["c", "d"]
        assert gate.batches == [["running"], ["c"], ["d"]]
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_one_texts_fault_is_its_own(loaded: Loaded) -> None:
    def run(given: Sequence[WorkItem]) -> list[list[Answer]]:
        if any("poison" in work.texts for work in given):
            raise ValueError("poison")
        return echo(given)

    async def main() -> None:
        made = batches(run, batch_size=8, wait_ms=50)
        asked = [made.answers(works(loaded, [text])) for text in ("a", "poison", "b")]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(found[1], ValueError)
        assert [each[0].prediction.text for each in (found[0], found[2])] == ["a", "b"]  # type: ignore[index]
        assert (await made.answers(works(loaded, ["c"])))[0].prediction.text == "c"
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


class Panic(BaseException):
    """What is no Exception, as what a Rust library raises when it breaks down."""


@pytest.mark.parametrize("fault", [Panic, SystemExit, KeyboardInterrupt, MemoryError, asyncio.CancelledError])
def test_the_thread_with_the_model_outlives_everything(loaded: Loaded, fault: type[BaseException]) -> None:
    def run(given: Sequence[WorkItem]) -> list[list[Answer]]:
        if any("poison" in work.texts for work in given):
            raise fault("poison")
        return echo(given)

    async def main() -> None:
        made = batches(run, batch_size=8, wait_ms=50)
        asked = [made.answers(works(loaded, [text])) for text in ("a", "poison", "b")]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(found[1], MemoryError if fault is MemoryError else BrokeDown)
        assert [each[0].prediction.text for each in (found[0], found[2])] == ["a", "b"]  # type: ignore[index]
        assert made.alive
        assert (await made.answers(works(loaded, ["c"])))[0].prediction.text == "c"
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_a_thread_that_ends_leaves_nobody_waiting(loaded: Loaded) -> None:
    class Unmeasurable(ServerMetrics):
        def batch(self, texts: int, seconds: float) -> None:
            raise RuntimeError("no disk, no memory, no luck")

    async def main() -> None:
        gate = Gate(echo)
        made = BatchQueue(ServeSettings(batch_size=1, wait_ms=0), Unmeasurable(), gate)
        made.start()
        asked = [asyncio.ensure_future(made.answers(works(loaded, [text]))) for text in "abc"]
        await asyncio.to_thread(gate.reached.wait)
        gate.open()
        first, *others = await asyncio.gather(*asked, return_exceptions=True)
        assert first[0].prediction.text == "a"  # type: ignore[index]
        assert [type(each) for each in others] == [Stopped, Stopped]
        with pytest.raises(Stopped):
            await made.answers(works(loaded, ["d"]))

    asyncio.run(main())


def test_texts_wait_for_company_but_not_long(loaded: Loaded) -> None:
    async def main() -> None:
        gate = Gate(echo)
        gate.open()
        patient = batches(gate, batch_size=3, wait_ms=HOUR)
        await asyncio.gather(*(patient.answers(works(loaded, [text])) for text in "abc"))  # a full batch waits not
        early = [asyncio.ensure_future(patient.answers(works(loaded, [text]))) for text in "de"]
        await asyncio.wait(early, timeout=0.05)
        assert gate.batches == [["a", "b", "c"]]
        await patient.answers(works(loaded, ["f"]))
        await asyncio.gather(*early)
        assert gate.batches == [["a", "b", "c"], ["d", "e", "f"]]
        await asyncio.to_thread(patient.stop)
        hasty = batches(gate, batch_size=3, wait_ms=30)
        await hasty.answers(works(loaded, ["g"]))  # whom nobody joins
        await asyncio.to_thread(hasty.stop)

    asyncio.run(main())


def test_long_texts_make_small_batches(loaded: Loaded) -> None:
    async def main() -> None:
        gate = Gate(echo)
        gate.open()
        made = batches(gate, batch_size=8, batch_characters=10, wait_ms=30)
        await made.answers(works(loaded, ["x" * 6, "y" * 4, "z" * 50, "w"]))
        assert [list(map(len, batch)) for batch in gate.batches] == [[6, 4], [50], [1]]
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_stopping_does_not_wait_for_a_batch_without_end(loaded: Loaded, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        gate = Gate(echo)
        made = batches(gate, batch_size=1, wait_ms=0)
        asked = asyncio.ensure_future(made.answers(works(loaded, ["a"])))
        await asyncio.to_thread(gate.reached.wait)
        stopping = threading.Thread(target=made.stop, args=[0.01], daemon=True)
        stopping.start()
        await asyncio.to_thread(stopping.join, 60)
        alive = stopping.is_alive()
        gate.open()
        assert not alive
        assert "still busy" in caplog.text
        await asked  # what is computed in the end is told all the same
        await asyncio.to_thread(made.stop)

    asyncio.run(main())


def test_stopping_answers_what_waits(loaded: Loaded) -> None:
    async def main() -> None:
        gate = Gate(echo)
        made = batches(gate, batch_size=1, wait_ms=0)
        asked = asyncio.ensure_future(made.answers(works(loaded, ["a", "b", "c"])))
        await asyncio.to_thread(gate.reached.wait)
        stopping = threading.Thread(target=made.stop)
        stopping.start()
        gate.open()
        assert len(await asked) == 3
        await asyncio.to_thread(stopping.join)
        assert not made.alive
        with pytest.raises(Stopped):
            await made.answers(works(loaded, ["d"]))

    asyncio.run(main())


def test_samples_are_the_offline_ones(loaded: Loaded, offline: Pipeline, served_file: Path) -> None:
    async def main() -> None:
        made = BatchQueue(ServeSettings(wait_ms=20), ServerMetrics())
        made.start()
        texts = ("ba de fi go",) * 6
        ask = SearchOptions((("method", "sample"), ("seed", 4)))
        found = await asyncio.gather(*(made.answers([WorkItem(loaded, texts, ask)]) for _ in range(3)))
        expected = [each.text for each in offline.predict(texts, method="sample", seed=4)]
        assert len(set(expected)) > 1
        assert [[each.prediction.text for each in answers] for answers in found] == [expected] * 3
        await asyncio.to_thread(made.stop)

    asyncio.run(main())
