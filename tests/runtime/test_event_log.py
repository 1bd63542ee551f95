"""log.jsonl after kills, resumes and full disks."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.core.errors import InputError, TransduceError
from transduce.runtime.event_log import Log, read_from, read_log, trained


def logged(run: Path, *updates: int, after: int = 0) -> None:
    log = Log(run, after, tensorboard=False)
    for update in updates:
        log.write("train", update, loss=1.0 / update)
    log.close()


def test_events_are_there_when_written(tmp_path: Path) -> None:
    log = Log(tmp_path, 0, tensorboard=False)
    log.write("train", 5, loss=0.5, text="Übung")
    assert read_log(tmp_path / "log.jsonl") == [{"event": "train", "update": 5, "loss": 0.5, "text": "Übung"}]
    log.close()


def test_what_came_after_the_checkpoint_is_taken_back(tmp_path: Path) -> None:
    logged(tmp_path, 1, 2, 3, 4)
    logged(tmp_path, 3, 4, after=2)
    assert [event["update"] for event in read_log(tmp_path / "log.jsonl")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "rest", ['{"event": "train", "upd', '{"event": "train", "update": 3, "loss": 0.1', "\x00\x00", "7"]
)
def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path, rest: str) -> None:
    logged(tmp_path, 1, 2)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(rest)
    assert [event["update"] for event in read_log(tmp_path / "log.jsonl")] == [1, 2]
    logged(tmp_path, 3, after=2)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [1, 2, 3]


def test_no_log_no_events(tmp_path: Path) -> None:
    assert read_log(tmp_path / "log.jsonl") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    log = Log(tmp_path, 0, tensorboard=False)
    log._file = open("/dev/full", "ab", buffering=0)  # noqa: PTH123, SIM115
    with pytest.raises(TransduceError, match=r"No space left on device\. The last checkpoint is intact"):
        log.write("train", 1, loss=1.0)
    log.close()


def test_tensorboard_gets_the_same_numbers_or_says_what_to_install(tmp_path: Path) -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match=r"transduce\[tensorboard\]"):
            Log(tmp_path, 0, tensorboard=True)
        return
    log = Log(tmp_path, 0, tensorboard=True)
    log.write("train", 1, loss=1.0, text="no number")
    log.close()
    assert list((tmp_path / "tensorboard").iterdir())


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = Log(tmp_path, 0, tensorboard=True)
    log.write("train", 50, loss=2.5, seconds=3.0)
    log.write("validation", 50, loss=2.25, bleu=12.0)
    log.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    read = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert read["train/loss"] == [(50, 2.5)]
    assert read["validation/loss"] == [(50, 2.25)]
    assert read["validation/bleu"] == [(50, 12.0)]


def test_reading_goes_on_where_it_stopped_and_leaves_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [f'{{"event": "train", "update": {n}, "text": "Übung"}}\n'.encode() for n in range(4)]
    whole, seen, offset = b"".join(lines), [], 0
    for size in range(0, len(whole) + 1, 7):  # as it is being written
        path.write_bytes(whole[:size])
        events, offset = read_from(path, offset)
        seen += events
        assert offset == len(b"".join(lines[: len(seen)]))
    path.write_bytes(whole)
    events, offset = read_from(path, offset)
    assert [each["update"] for each in seen + events] == [0, 1, 2, 3]
    assert (read_from(path, offset), offset) == (([], offset), len(whole))


def test_a_log_that_was_cut_by_a_resumption_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = '{"event": "train", "update": 1}\n'
    path.write_text(line)
    for offset in (10_000, len(line) + 1):
        assert read_from(path, offset) == ([{"event": "train", "update": 1}], len(line))
    assert read_from(tmp_path / "none.jsonl", 5) == ([], 0)


def test_what_is_watched_of_a_training(tiny_run: Path) -> None:
    found = trained(tiny_run)
    assert found["finished"]
    kinds = [each["event"] for each in found["events"]]
    assert (kinds.count("train"), kinds.count("validation"), kinds.count("samples")) == (8, 4, 4)
    [shown, *_] = [each["samples"] for each in found["events"] if each["event"] == "samples"]
    assert len(shown) == 2
    assert set(shown[0]) == {"source", "output", "reference"}
    assert trained(tiny_run, found["size"])["events"] == []
    assert trained(tiny_run.parent) == {"events": [], "finished": False, "stopped": False, "size": 0}


def test_a_line_that_no_training_wrote_is_left_out(tmp_path: Path) -> None:
    lines = ['{"update": 3}', '{"event": 7, "update": 3}', "[]", "[" * 100_000, '{"event": "train", "update": true}']
    (tmp_path / "log.jsonl").write_text("\n".join([*lines, '{"event": "train", "update": 4}\n']), encoding="utf-8")
    assert read_log(tmp_path / "log.jsonl") == [{"event": "train", "update": 4}]


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    log = Log(tmp_path, 0, tensorboard=False)
    log.write("validation", 1, loss=800.0, perplexity=float("inf"))
    log.close()
    assert '"perplexity": null' in (tmp_path / "log.jsonl").read_text()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.writelines(
            f'{{"event": "train", "update": 2, "loss": {loss}}}\n' for loss in ("NaN", "-Infinity", "1e999")
        )
    found = trained(tmp_path)["events"]
    assert [each["loss"] for each in found] == [800.0, None, None, None]


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF", b"\xed\xa0\x80"])
def test_a_line_with_half_a_character_is_left_out(tmp_path: Path, half: bytes) -> None:
    line = b'{"event": "train", "update": 1, "text": "%s"}\n'
    (tmp_path / "log.jsonl").write_bytes(line % half + line % b"\\u00e9")
    assert [each["text"] for each in read_log(tmp_path / "log.jsonl")] == ["\u00e9"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_log_that_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "log.jsonl")
    for read in (lambda path: read_from(path, 0), read_log):
        with pytest.raises(InputError, match=r"log\.jsonl: cannot be read: "):
            read(tmp_path / "log.jsonl")
