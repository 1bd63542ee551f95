"""Writes docs/scale.md from benchmarks/results/distributed/.

`tests/test_docs.py` fails when the page is out of date.
"""

import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from markdown_table import markdown_table
from records import read_record

Record = dict[str, Any]
ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("scale.md")
RECORDS = ROOT / "benchmarks" / "results" / "distributed"
BYTES = 4  # of a number of a gradient
HOUR, GIB = 3600, 2**30

# Assumptions, which the page states as such.
CORES = 64  # of a machine
NETWORK = 25e9 / 8  # bytes a second and direction, between machines
LATENCY = 50e-6  # seconds of a collective, for each doubling of the processes
DISK = 1e9  # bytes a second, of the first process' disk
TOKENS = 25  # of a side of a pair


class Job(NamedTuple):
    """Parameters of the model; pairs of the corpus; target tokens of an update; updates; the model's measured kind."""

    title: str
    parameters: float
    pairs: float
    tokens: float
    updates: float
    measured: str


JOBS = (
    Job("WMT14 En-De, base, 100,000 updates", 60.5e6, 4.5e6, 25_000, 100_000, "base"),
    Job("a billion pairs once, base", 60.5e6, 1e9, 400_000, 1e9 * TOKENS / 400_000, "base"),
)
CASES = {"kills": 50, "faults": 20}
COUNTS = (1, 4, 16, 64)
HEAD = """# Beyond one machine

What distributed training was proved to do, what it was measured to cost, and what follows for corpora that none of
these machines would train on. Every figure under *Proved* and *Measured* was measured; everything under *Plan* is
computed from those by the formula that stands there. **Nothing on this page was run on a GPU.**

`python docs/make_scale.py` makes this page from the records that `benchmarks/distributed_*.py` write.
[Several processes](distributed.md) says how such trainings are started.
"""


def page() -> str:
    """The whole page."""
    return HEAD + proved() + measured() + corpus() + plan() + breaks()


def record(name: str) -> Record | None:
    """See `read_record`."""
    return read_record(RECORDS / f"{name}.json")


def proved() -> str:
    """What the proofs found, a line each."""
    rows = [*_equal(), *_noisy(), *_counted("kills", "same"), *_counted("faults", "right"), *_hosts(), *_ranks()]
    return "\n## Proved\n\n" + markdown_table(["what", "how", "found"], rows)


def _equal() -> list[list[str]]:
    found = record("equality")
    if not found:
        return []
    worst = max(row["difference"] for row in found["rows"])
    scores = all(row["scores_the_same"] for row in found["rows"])
    told = f"weights differ by {worst:.1e} at most, scores {'are the same' if scores else 'DIFFER'}"
    how = f"50 updates in fp32 with GELU, ddp and fsdp, {len(found['rows'])} runs: `distributed_equality.py`"
    return [["2 and 4 processes beside one", how, told]]


def _noisy() -> list[list[str]]:
    found = record("dropout")
    if not found:
        return []
    last = max(row["update"] for row in found["rows"])
    ends = {row["processes"]: row for row in found["rows"] if row["update"] == last}
    told = "; ".join(
        f"{row['mean']:.3f} ± {row['deviation']:.3f} by {number}" + (f" (p = {row['p']:.2f})" if number > 1 else "")
        for number, row in ends.items()
    )
    how = (
        f"validation loss after {last} updates with dropout, {found['seeds']} seeds, permutation test against one "
        "process: `distributed_dropout.py`"
    )
    return [["dropout, whose noise is each process' own", how, told]]


def _counted(name: str, good: str) -> list[list[str]]:
    found = record(name)
    if not found:
        return []
    told = f"{found[good]} of {found['cases']}"
    if found["cases"] < CASES[name]:
        told += f", of the {CASES[name]} that the script makes; the others are not measured yet"
    if name == "kills":
        how = "one process or all, at random moments, 2 and 4 processes, ddp and fsdp: `distributed_kills.py`"
        return [["`kill -9`, started again: the same SHA-256", how, told]]
    slowest = max(row["named_after"] for row in found["rows"])
    how = "killed, stopped, asleep, out of memory, bad data; 2 and 4 processes, ddp and fsdp: `distributed_faults.py`"
    return [["a process that fails is named, and nothing is lost", how, f"{told}; named after {slowest:.0f} s at most"]]


def _hosts() -> list[list[str]]:
    found = record("hosts")
    if not found:
        return []
    named = [row["named_after"] for row in found["rows"] if row["named_after"] is not None]
    passed = sum(row["passed"] for row in found["rows"])
    how = "links cut, slowed, losing packets, hosts gone; three network namespaces, torchrun and Ray: `hosts.py`"
    told = (
        f"{found['right']} of {found['cases']}; {len(named)} named after {max(named):.0f} s at most, {passed} went on"
    )
    return [["a host that is cut off is named, the same command goes on to the same bytes", how, told]]


def _ranks() -> list[list[str]]:
    found = record("ranks")
    if not found:
        return []
    told = (
        f"{found['epochs_whole']} of {found['epochs']} epochs have each pair once; {found['batches_alike']} of "
        f"{found['batches']} batches are those of one process; weights differ by {found['difference']:.1e}"
    )
    return [[f"{found['processes']} processes", "a tiny model over gloo on one machine: `distributed_ranks.py`", told]]


def measured() -> str:
    """Speeds of the updates, the sums and the plan."""
    found = record("speed")
    if not found:
        return ""
    machine = found["machine"]
    rows = []
    for size in ("small", "base"):
        one = found[size]
        alone = one["rows"]["1 process, 1 thread"]["tokens_per_processor_second"]
        ratios = one["ratios"]
        beside = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})" if ratios else "not measured"
        rows.append(
            [
                f"{size}, {one['parameters'] / 1e6:.1f} million parameters",
                f"{alone:,.0f}",
                beside,
                f"{one['parameters'] * BYTES / 1e6:.0f} MB",
            ]
        )
    table = markdown_table(
        ["model", "target tokens a second of one core", "two processes beside two threads", "gradients of an update"],
        rows,
    )
    sums = markdown_table(
        ["numbers", "seconds"], [[f"{row['numbers']:,}", f"{row['seconds']:.4f}"] for row in found["sums"]["rows"]]
    )
    one = record("one_process")
    ratios = one["ratios"]
    alone = (
        f"One process alone is {one['median']:.3f} times as fast as before there were several (commit {one['before']}; "
        f"`python benchmarks/one_process.py`, {one['date']}; processor time of updates in turn, medians of "
        f"{len(ratios)} rounds from {ratios[0]:.3f} to {ratios[-1]:.3f}).\n\n"
    )
    return (
        f"\n## Measured\n\n`python benchmarks/distributed_speed.py`, {found['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, kernels for {machine['kernels']}, torch {found['versions']['torch']}. Other work "
        "ran on the machine, so speeds are per second of processor time, and ratios are of runs in turn: the tokens "
        "per second of two processes with one thread each, over those of one process with two threads.\n\n"
        f"{table}\n{alone}The sum of so many fp32 numbers over two processes on this machine (gloo, the fastest of "
        f"five):\n\n{sums}\nAn epoch's batches are planned, by every process, at "
        f"{found['plan']['pairs_per_processor_second'] / 1e6:.1f} million pairs a second.\n"
    )


def corpus() -> str:
    """A corpus of many files, beside a small one."""
    found = read_record(RECORDS.parent / "many_pairs.json")
    if not found:
        return ""
    machine, busy = found["machine"], found["opening_on_a_busy_machine"]
    columns = {
        "opening": "open_seconds",
        "of which the processor": "open_processor_seconds",
        "the first batch after that": "first_batch_seconds",
        "pairs shuffled and cut into batches a second": "shuffled_pairs_a_second",
        "open files": "open_files",
    }
    cases = {
        "the first opening, which takes fingerprints and compares checksums": found["first_opening"],
        "an opening once these are remembered": found["opening"],
        "once more": found["opening_again"],
        f"at a load of {busy['load_average']:.0f} on the {machine['cores']} cores": busy,
    }
    rows = [
        [name, *(f"{each[key]:,.2f} s" if key.endswith("seconds") else f"{each[key]:,}" for key in columns.values())]
        for name, each in cases.items()
    ]
    small, large = (each["anonymous_bytes"] / 2**20 for each in (found["memory"]["small"], found["memory"]["large"]))
    return (
        f"\n### A corpus of {found['pairs'] / 1e6:.0f} million pairs\n\n`python benchmarks/many_pairs.py` makes up "
        f"{found['files'] // 2:,} pairs of files, most of them sparse, whose stores are links to one. "
        f"{machine['processor']}, {machine['cores']} cores, torch {found['versions']['torch']}, one thread; other work "
        f"ran on the machine.\n\n{markdown_table(['', *columns], rows)}\nTraining for {found['updates']} updates "
        f"allocates {large:.0f} MiB at most; on 29,000 pairs it allocates {small:.0f} MiB, so the corpus takes "
        f"{found['anonymous_ratio']:.3f} times as much (RssAnon, without the pages of mapped stores).\n"
    )


def plan() -> str:
    """Machines and hours of each job."""
    found = record("speed")
    if not found:
        return ""
    text = f"""
## Plan

Assumptions, none of which was measured:

- A machine has {CORES} cores like the measured one, and runs one process whose threads compute as much as that many
  cores alone. Memory bandwidth, and batches that are small, may forbid that.
- Machines are connected by {NETWORK * 8 / 1e9:.0f} Gbit/s. A collective costs {LATENCY * 1e6:.0f} microseconds for each
  doubling of the number of processes.
- A side of a pair has {TOKENS} tokens. A disk takes {DISK / 1e9:.0f} GB/s.

With M machines, C cores each, T target tokens an update, v tokens a second and core, P parameters, B bytes a second:

    compute  = T / (v C M)
    exchange = 2 (M - 1) / M x 4 P / B + 9 collectives x latency x log2(M)
    hours    = updates x (compute + exchange) / 3600

The sum of gradients is not overlapped with the backward pass, so both times add up. What it costs is machine-hours
times the price of a machine-hour, which is yours to fill in.
"""
    for job in JOBS:
        text += f"\n### {job.title}\n\n{_about(job)}\n\n{_table(job, found)}"
    return text


def _about(job: Job) -> str:
    epochs = job.updates * job.tokens / (job.pairs * TOKENS)
    return (
        f"{job.parameters / 1e6:.1f} million parameters, {job.pairs / 1e6:,.1f} million pairs, {job.tokens:,} target "
        f"tokens an update, {job.updates:,.0f} updates: {epochs:.1f} times the corpus."
    )


def _table(job: Job, found: Record) -> str:
    speed = found[job.measured]["rows"]["1 process, 1 thread"]["tokens_per_processor_second"]
    rows = []
    for machines in COUNTS:
        compute, exchange = times(job, speed, machines)
        hours = job.updates * (compute + exchange) / HOUR
        share = compute / (compute + exchange)
        cells = [f"{machines}", f"{compute:.2f} s", f"{exchange:.2f} s", f"{share:.0%}", f"{hours:,.0f}"]
        rows.append([*cells, f"{hours * machines:,.0f}"])
    return markdown_table(["machines", "compute", "exchange", "of which compute", "hours", "machine-hours"], rows)


def times(job: Job, speed: float, machines: int) -> tuple[float, float]:
    """Seconds of an update: computing, and exchanging gradients. speed: target tokens a second and core."""
    from math import log2

    compute = job.tokens / (speed * CORES * machines)
    moved = 2 * (machines - 1) / machines * BYTES * job.parameters / NETWORK
    return compute, moved + 9 * LATENCY * log2(machines)


def breaks() -> str:
    """Where each part meets its end first."""
    found = record("speed")
    if not found:
        return ""
    planned = found["plan"]["pairs_per_processor_second"]
    sums = found["sums"]["rows"][-1]
    within = sums["seconds"] / sums["numbers"] * JOBS[0].parameters
    states = 4 * BYTES * JOBS[0].parameters  # weights, two moments, the average
    rows = [
        [
            "the sum of gradients",
            "more than a few machines at small batches: its time does not fall with the number of machines, that of "
            "computing does",
            "raise `batch.tokens`",
        ],
        [
            "several processes in one machine",
            f"gloo would take {within:.1f} s for the base model's gradients between two processes here, busy as the "
            "machine was, which the plan leaves out: it has one process a machine",
            "threads in the place of processes",
        ],
        [
            "rows of a batch",
            f"{JOBS[0].tokens:,} tokens are {JOBS[0].tokens // TOKENS:,} pairs: with more processes than that, some "
            "have no row. With few rows each, they wait for the one with the longest",
            "one process with several threads; larger batches",
        ],
        [
            "planning an epoch",
            f"every process plans for all: {1e9 / planned / 60:.0f} minutes of processor time for a billion pairs, "
            "spread over the epoch. A training that goes on in the middle of an epoch plans up to there before "
            "its first update",
            "several stores with weights below 1, so that an epoch is shorter",
        ],
        [
            "a checkpoint",
            f"the first process gathers and writes all: {states / GIB:.1f} GiB for the base model, "
            f"{states / DISK:.0f} s while the others wait. A model of 10 billion parameters needs "
            f"{4 * BYTES * 10e9 / GIB:.0f} GiB of its main memory",
            "`training.checkpoint_every`",
        ],
        [
            "the start, and validation",
            "`fsdp` splits a model that each process holds whole when training begins, and joins it to validate: it "
            "must fit on one device without its gradients and optimizer states",
            "a smaller model",
        ],
        [
            "gloo",
            "every process is connected to every other: 64 processes are 2,016 connections, 1,024 would be 523,776",
            "one process a machine with several threads; NCCL on GPUs",
        ],
        [
            "one bad machine",
            "the whole training goes at the pace of its slowest process, and begins again from the last checkpoint "
            "when one dies",
            "`torchrun --max-restarts`; checkpoints as often as their time allows",
        ],
    ]
    return "\n## Where each part breaks first\n\n" + markdown_table(["part", "where it ends", "what helps"], rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
