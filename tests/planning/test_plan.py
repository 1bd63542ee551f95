"""Planning: what it takes itself counts in the time that is given."""

from pathlib import Path

import pytest
from rich.console import Console

from transduce.planning import plan
from transduce.planning.inputs import Named
from transduce.planning.speed import Speed
from transduce.training.display import Display


@pytest.mark.parametrize(("minutes", "updates", "left"), [(2.0, 690, 1.37), (None, None, None)])
def test_looking_and_measuring_count_in_the_time_given(
    minutes: float | None, updates: int | None, left: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 120 seconds, 95 % are planned for: 114, of which 30 are over; 2 are for tests and 13 for validations."""
    (tmp_path / "a.tsv").write_text("".join(f"ein {n} haus\tthe {n} house\n" for n in range(600)), encoding="utf-8")
    now = [100.0]

    def measure(*_: object) -> Speed:
        now[0] += 30
        return Speed(0.1, 1.0, 2.0, 0.0)

    monkeypatch.setattr(plan.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(plan, "measure", measure)
    made = plan.make_plan(Named(source=tmp_path / "a.tsv"), {}, minutes, Display(Console(quiet=True)))
    training = made.table["training"]
    assert training.get("minutes") == left
    assert training["updates"] == updates or minutes is None
