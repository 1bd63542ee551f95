"""The faults that `make mutants` puts into the code: where they are, how they are drawn, and what is remembered."""

import ast
from pathlib import Path

import pytest

from faults import Fault, faults, plant
from mutants import FAILS_ANYWAY, NOTICED, Finding, Mutant, draw, line, lines_of_rooms, read

SOURCE = '''"""One + two, not True."""

__all__ = ["a" + "b"]


@decorated(x=1)
class Thing(Base[1]):
    size: Optional[1] = Field(default=2, encoding="utf-8")

    def grow(self, by: int = 3) -> int | None:
        """Not 4."""
        assert by > 5
        self.size += by
        log(by)
        if not (by < 6 and self.size in (f"{by + 7}", "é" * by)):
            raise ValueError("expected", by + 8)
        return -(by - self.size)


if TYPE_CHECKING:
    WHO = 9
'''
FOUND = {
    'size: Optional[1] = Field(default=3, encoding="utf-8")',
    "size: Optional[1] = Field(encoding='utf-8')",
    "def grow(self, by: int = 4) -> int | None:",
    "self.size -= by",
    "pass",
    "if (by < 6 and self.size in (f'{by + 7}', 'é' * by)):",
    "if not (by < 6 or self.size in (f'{by + 7}', 'é' * by)):",
    'if not (by <= 6 and self.size in (f"{by + 7}", "é" * by)):',
    'if not (by >= 6 and self.size in (f"{by + 7}", "é" * by)):',
    'if not (by < 7 and self.size in (f"{by + 7}", "é" * by)):',
    "if not (by < 6 and self.size not in (f'{by + 7}', 'é' * by)):",
    "if not (by < 6 and self.size in (f\"{by + 7}\", 'é' / by)):",
    "return None",
    "return (by - self.size)",
    "return -(by + self.size)",
}


def test_faults_are_of_code_alone_and_of_one_line() -> None:
    found = list(faults(SOURCE))
    assert {fault.faulty for _, fault in found} == FOUND
    assert [fault.function for _, fault in found].count("Thing") == 2
    for number, fault in found:
        faulty = plant(SOURCE, fault)
        assert faulty is not None
        ast.parse(faulty)
        lines = list(zip(SOURCE.splitlines(), faulty.splitlines(), strict=True))
        assert [place for place, (one, other) in enumerate(lines) if one != other] == [number]


def test_a_fault_is_found_again_in_a_file_that_was_edited() -> None:
    fault = Fault("Thing.grow", "self.size += by", "self.size -= by")
    assert "self.size -= by\n" in (plant("import os\n\n" + SOURCE, fault) or "")
    assert plant(SOURCE.replace("size += by", "size += 2 * by"), fault) is None


def test_each_room_has_a_fault_and_a_seed_draws_the_same(tmp_path: Path) -> None:
    for room, size in (("small", 1), ("large", 200)):
        (tmp_path / room).mkdir()
        (tmp_path / room / "module.py").write_text("".join(f"x{place} = a + b\n" for place in range(size)))
    rooms = lines_of_rooms(tmp_path, "")
    drawn = draw(rooms, 20, seed=1)
    assert [mutant.file for mutant in drawn].count("small/module.py") == 1
    assert len(set(drawn)) == 20
    assert draw(rooms, 20, seed=1) == drawn != draw(rooms, 20, seed=2)
    assert {mutant.file for mutant in draw(lines_of_rooms(tmp_path, "small/mod"), 20, seed=1)} == {"small/module.py"}


@pytest.mark.parametrize("verdict", [NOTICED, FAILS_ANYWAY])
def test_findings_are_read_as_they_were_written(verdict: str, tmp_path: Path) -> None:
    mutant = Mutant("core/a.py", Fault("f", "x = 'é'", "x = 1"))
    finding = Finding(mutant, verdict, "tests/core/test_a.py::test_b", 1.5)
    (tmp_path / "found.jsonl").write_text(line(finding), encoding="utf-8")
    assert read(tmp_path / "found.jsonl") == {mutant: finding}
    assert read(tmp_path / "none.jsonl") == {}
