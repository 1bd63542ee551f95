"""Which faults the tests notice: faults of one line, drawn over all rooms of the package, each tried with its tests.

    make mutants
    python tests/mutants.py RESULTS.jsonl                               # goes on where it was stopped
    python tests/mutants.py AFTER.jsonl --against BEFORE.jsonl          # the same faults; 1 if one is lost
    python tests/mutants.py RESULTS.jsonl --only models/qanet.py        # faults of one file or folder

The faults are put into a copy of the checkout. Each gets a minute of processor time for the tests of its room, without
those marked slow and first those that import the faulty module, until one fails or hangs. In the end the tests that
failed are run without any fault, and must pass.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
import pytest

from faults import Fault, faults, plant

PACKAGE = "src/transduce"
NOTICED, NOT_NOTICED, OUT_OF_TIME, FAILS_ANYWAY = "noticed", "not noticed", "out of time", "fails without the fault"
GONE = "no such line any more"
PASSED, FAILED = "passed", "failed"
OPTIONS = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
NO_TESTS = 5
"""How pytest ends when all tests of the files are slow."""

MEMORY = 8 << 30
"""Bytes of a run of tests: a loop that a fault keeps from ending may also fill a list."""

STARTED_ONCE = multiprocessing.get_context("forkserver")
"""Each run of tests is a fork of a process that has imported the libraries, which takes longer than most tests."""
STARTED_ONCE.set_forkserver_preload(["torch", "sacremoses", "pyarrow", "hypothesis", "schemathesis.pytest.plugin"])


@dataclass(frozen=True)
class Mutant:
    """A fault and the file that has it, below the package's folder."""

    file: str
    fault: Fault


@dataclass(frozen=True)
class Finding:
    """What became of it: a verdict, the test that failed or hung, and seconds of processor time."""

    mutant: Mutant
    verdict: str
    test: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """How a run of tests ended, the tests that failed or the one that took too long, and seconds of processor time."""

    outcome: str
    tests: list[str]
    seconds: float


def lines_of_rooms(package: Path, only: str) -> dict[str, list[list[Mutant]]]:
    """By room its lines that can have a fault, and for each line its faults."""
    rooms: dict[str, list[list[Mutant]]] = defaultdict(list)
    for path in sorted(path for path in package.rglob("*.py") if path.parent != package):
        file = path.relative_to(package).as_posix()
        if file.startswith(only):
            by_line: dict[int, list[Mutant]] = defaultdict(list)
            for number, fault in faults(path.read_text(encoding="utf-8")):
                by_line[number].append(Mutant(file, fault))
            rooms[file.partition("/")[0]] += by_line.values()
    return {room: lines for room, lines in rooms.items() if lines}


def draw(rooms: dict[str, list[list[Mutant]]], count: int, seed: int) -> list[Mutant]:
    """As many from each room as its size says, at least one, in any order."""
    drawn = random.Random(seed)
    others = drawn.choices([*rooms], [len(lines) for lines in rooms.values()], k=max(0, count - len(rooms)))
    wanted = Counter([*rooms, *others])
    lines = [line for room, lines in rooms.items() for line in drawn.sample(lines, min(wanted[room], len(lines)))]
    mutants = [drawn.choice(line) for line in lines]
    drawn.shuffle(mutants)
    return mutants


class Copy:
    """A copy of a checkout, into which faults are put and in which tests are run."""

    def __init__(self, checkout: Path, folder: Path, limit: float) -> None:
        self.folder, self.limit, self.number = folder / "checkout", limit, 0
        self.log = folder / "log"
        self.folder.mkdir()
        for path in checkout.iterdir():
            if path.name in ("src", "tests"):
                shutil.copytree(path, self.folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif not path.name.startswith("."):
                (self.folder / path.name).symlink_to(path)
        self.paths = [str(self.folder / "src"), str(self.folder / "tests")]
        os.environ.setdefault("TRANSDUCE_DATA", str(checkout.parent / "shared" / "data"))
        os.environ |= {"PYTHONPATH": os.pathsep.join(self.paths), "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[bool]:
        """Whether the fault could be put in, which it is until the end."""
        path = self.folder / PACKAGE / mutant.file
        sound = path.read_bytes()
        faulty = plant(sound.decode(), mutant.fault)
        if faulty is not None:
            self._write(path, faulty.encode())
        yield faulty is not None
        self._write(path, sound)

    def _write(self, path: Path, content: bytes) -> None:
        """With a time of its own, by which Python sees that its compiled file is of another one."""
        self.number += 1
        path.write_bytes(content)
        os.utime(path, (self.number, self.number))

    def tests(self, mutant: Mutant) -> list[list[str]]:
        """Files of any room that import the faulty module; then the others of its room, first those that name it."""
        room, module = mutant.file.partition("/")[0], re.sub(r"(/__init__)?\.py$", "", mutant.file).replace("/", ".")
        package, _, name = f"transduce.{module}".rpartition(".")
        imports = re.compile(rf"\b{package}\.{name}\b|from {package} import .*\b{name}\b")
        importing, others = [], []
        for path in (self.folder / "tests").rglob("test_*.py"):
            file, text = path.relative_to(self.folder).as_posix(), path.read_text(encoding="utf-8")
            in_room, named = file.startswith(f"tests/{room}/"), re.search(rf"\b{name}\b", text) is not None
            if imports.search(text):
                importing.append((not in_room, name not in path.name, len(text), file))
            elif in_room:
                others.append((not named, name not in path.name, len(text), file))
        return [[file for *_, file in sorted(some)] for some in (importing, others) if some]

    def run(self, options: list[str], limit: float) -> Run:
        """Tests, ended when they take longer than the limit, or sleep as long."""
        self.log.write_text("", encoding="utf-8")
        options = [*OPTIONS, f"--basetemp={self.folder.parent / 'tmp'}", *options]
        process = STARTED_ONCE.Process(target=run_pytest, args=(self.folder, self.paths, self.log, options))
        process.start()
        seconds, awake = 0.0, time.monotonic()
        while process.is_alive() and seconds <= limit and time.monotonic() - awake <= limit:
            process.join(0.5)
            if (used := processor_time(process.pid)) > seconds + 0.1:
                seconds, awake = used, time.monotonic()
        if process.is_alive():
            end(process.pid)
            process.join()
            return Run(OUT_OF_TIME, self._tests("began")[-1:], seconds)
        return Run(PASSED if process.exitcode in (0, NO_TESTS) else FAILED, self._tests("failed"), seconds)

    def _tests(self, word: str) -> list[str]:
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]

    def judge(self, mutant: Mutant) -> Finding:
        """Tries a fault."""
        left = self.limit
        with self.planted(mutant) as there:
            for tests in self.tests(mutant) if there else []:
                found = self.run(["-x", *tests], left)
                left -= found.seconds
                test = found.tests[0] if found.tests else ""
                if found.outcome == FAILED or (found.outcome == OUT_OF_TIME and self._hangs(test)):
                    return Finding(mutant, NOTICED, test, self.limit - left)
                if found.outcome == OUT_OF_TIME:
                    return Finding(mutant, OUT_OF_TIME, "", self.limit - left)
        return Finding(mutant, NOT_NOTICED if there else GONE, "", self.limit - left)

    def _hangs(self, test: str) -> bool:
        return not test or self.run([test], self.limit).outcome != PASSED

    def failing(self, tests: list[str]) -> list[str]:
        """Those that fail without any fault."""
        return self.run(tests, self.limit * len(tests)).tests if tests else []


def run_pytest(folder: Path, paths: list[str], log: Path, options: list[str]) -> None:
    """In a process of its own, which has the libraries already."""
    os.chdir(folder)
    sys.path[:0] = paths
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.exit(pytest.main(options, [Log(log)]))


class Log:
    """What pytest tells while it runs: which tests began, and which failed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _write(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A hook of pytest."""
        self._write(f"began {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A hook of pytest."""
        if report.failed:
            self._write(f"failed {report.nodeid}")


def family(pid: int | None) -> list[psutil.Process]:
    """A process and those that it started."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def processor_time(pid: int | None) -> float:
    """Of a process and those that it started."""
    total = 0.0
    for each in family(pid):
        with suppress(psutil.NoSuchProcess):
            total += sum(each.cpu_times()[:4])
    return total


def end(pid: int | None) -> None:
    """Ends a process and those that it started."""
    for each in family(pid):
        with suppress(psutil.NoSuchProcess):
            each.kill()


def line(finding: Finding) -> str:
    """Of the file of results."""
    row = {"file": finding.mutant.file, **asdict(finding.mutant.fault)}
    row |= {"verdict": finding.verdict, "test": finding.test, "seconds": round(finding.seconds, 1)}
    return json.dumps(row, ensure_ascii=False) + "\n"


def read(path: Path) -> dict[Mutant, Finding]:
    """What was found before; nothing where there is no file yet."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(line)
        mutant = Mutant(row["file"], Fault(row["function"], row["line"], row["faulty"]))
        found[mutant] = Finding(mutant, row["verdict"], row["test"], row["seconds"])
    return found


def show(finding: Finding) -> None:
    """A line, and the fault under it where no test noticed."""
    fault = finding.mutant.fault
    print(f"{finding.verdict}: {finding.mutant.file} {fault.function} {finding.test}", flush=True)
    if finding.verdict != NOTICED:
        print(f"  - {fault.line}\n  + {fault.faulty}", flush=True)


def main() -> None:
    """Tries each fault that has no line in the file of results; exit code 1 if one is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--against", type=Path, help="earlier results, whose faults are tried again")
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parents[1], help="whose code and tests")
    parser.add_argument("--only", default="", help="a file or folder of the package: models/qanet.py")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="processor time for each fault")
    asked = parser.parse_args()
    before = read(asked.against) if asked.against else {}
    checkout = asked.checkout.resolve()
    mutants = [*before] or draw(lines_of_rooms(checkout / PACKAGE, asked.only), asked.count, asked.seed)
    found = read(asked.results)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, asked.results.open("a", encoding="utf-8") as results:
        copy = Copy(checkout, Path(folder), asked.seconds)
        for mutant in mutants:
            if mutant not in found:
                found[mutant] = copy.judge(mutant)
                print(line(found[mutant]), end="", file=results, flush=True)
                show(found[mutant])
        failing = copy.failing(sorted({each.test for each in found.values() if each.test}))
    found |= {each.mutant: replace(each, verdict=FAILS_ANYWAY) for each in found.values() if each.test in failing}
    asked.results.write_text("".join(map(line, found.values())), encoding="utf-8")
    print(
        ", ".join(f"{count} {verdict}" for verdict, count in Counter(each.verdict for each in found.values()).items())
    )
    lost = [each for each in mutants if each in before and before[each].verdict == NOTICED != found[each].verdict]
    for mutant in lost:
        print(f"lost: {before[mutant].test}")
        show(found[mutant])
    sys.exit(any(found[each].verdict != GONE for each in lost))


if __name__ == "__main__":
    main()
