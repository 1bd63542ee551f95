"""Clients take turns: who has asked for much waits behind who has asked for little.

A client is whoever a request comes from: an API key, or else an address. `current_client` knows it for the request that
is being answered.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, Generic, TypeVar

current_client: ContextVar[str] = ContextVar("transduce_client", default="")
Item = TypeVar("Item")
Result = TypeVar("Result")


class RoundRobin(Generic[Item]):
    """Items that wait, in the order in which clients take turns: round robin, first in, first out for each of them."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Item]] = OrderedDict()  # the next one first

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def __iter__(self) -> Iterator[Item]:
        """All of them: the first of each client, then the second of each, and so on."""
        rows = [iter(waiting) for waiting in self._clients.values()]
        while rows:
            left = []
            for row in rows:
                for item in row:
                    yield item
                    left.append(row)
                    break
            rows = left

    def put(self, client: str, items: Iterable[Item]) -> None:
        """Behind what the client has waiting; a new client comes last."""
        self._clients.setdefault(client, deque()).extend(items)

    def of(self, client: str) -> list[Item]:
        """What a client has waiting."""
        return list(self._clients.get(client, ()))

    def take(self, items: Iterable[Item]) -> None:
        """Without these; the client whose item was next comes last from now on."""
        gone = {id(item) for item in items}
        first = next(iter(self._clients), "")
        had_turn = any(id(item) in gone for item in self._clients.get(first, ()))
        self.drop(gone)
        if had_turn and first in self._clients:
            self._clients.move_to_end(first)

    def drop(self, gone: set[int]) -> None:
        """Without the items of these ids; nobody's turn changes."""
        for client, waiting in list(self._clients.items()):
            kept = deque(item for item in waiting if id(item) not in gone)
            if kept:
                self._clients[client] = kept
            else:
                del self._clients[client]


class FairThreads:
    """A few threads for the work of requests, in which clients take turns. For one event loop.

    Args:
        count: of threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._busy = count, 0
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._waiting: RoundRobin[asyncio.Future[None]] = RoundRobin()

    async def run(self, do: Callable[[], Result]) -> Result:
        """What `do` gives, in a thread, once it is this client's turn.

        Raises:
            As `do`.
        """
        await self._turn()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, do)
        finally:
            self._next()

    def stop(self) -> None:
        """What has not begun is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _turn(self) -> None:
        if self._busy < self._count:
            self._busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(current_client.get(), [turn])
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given a thread, and will not use it
                self._next()
            else:
                self._waiting.drop({id(turn)})
            raise

    def _next(self) -> None:
        """A thread is free: for the next client, if there is one."""
        for turn in self._waiting:
            self._waiting.take([turn])
            if not turn.done():
                turn.set_result(None)
                return
        self._busy -= 1


class BatchCost:
    """How long batches take, learnt from those that were: seconds = fixed + slope x characters, late ones most.

    Least squares with weights that fall by `DECAY` a batch. With it a batch can be as large as it pays, and no larger
    than others can wait for.
    """

    DECAY = 0.9
    UNKNOWN = 1_000  # characters of the first batch, of whose model nothing is known

    def __init__(self) -> None:
        self._sums = [0.0] * 5  # of weights w, and of w x, w y, w x x, w x y

    def saw(self, characters: int, seconds: float) -> None:
        """One batch is done."""
        seen = (1.0, characters, seconds, characters * characters, characters * seconds)
        self._sums = [self.DECAY * total + each for total, each in zip(self._sums, seen, strict=True)]

    @property
    def line(self) -> tuple[float, float]:
        """fixed, slope: neither is below 0."""
        w, x, y, xx, xy = self._sums
        spread = w * xx - x * x
        slope = (w * xy - x * y) / spread if spread > 1e-6 * max(1.0, w * xx) else y / max(1.0, x)
        slope = min(max(slope, 0.0), y / max(1.0, x))
        return max(0.0, (y - slope * x) / max(1.0, w)), slope

    def most(self, seconds: float) -> float:
        """Characters of a batch that takes about so many seconds; more where half of that would be the fixed part."""
        if not self._sums[0]:
            return self.UNKNOWN
        fixed, slope = self.line
        return max(seconds - fixed, fixed) / max(slope, 1e-9)


def address_of(scope: Any, proxies: tuple[str, ...] = ()) -> str:
    """Where a request comes from: its peer, or what a trusted proxy says of it. Of IPv6 the network of 64 bits.

    Args:
        proxies: addresses whose X-Forwarded-For is believed: the last entry in it that is no such proxy.
    """
    peer = (scope.get("client") or ("",))[0]
    if peer in proxies:
        headers = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        listed = [each.strip() for value in headers for each in value.split(",") if each.strip()]
        peer = next((each for each in reversed(listed) if each not in proxies), peer)[:45]
    return _network_of(peer)


def _network_of(peer: str) -> str:
    """An address; of IPv6 its network of 64 bits, as one client may have all addresses in it."""
    bare = peer.strip("[]").partition("%")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        host, _, port = peer.rpartition(":")  # a proxy may add the port
        return _network_of(host) if host and port.isdigit() else peer
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False).network_address)
