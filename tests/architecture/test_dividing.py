"""Tests are divided so that what is shared is started once and what is long begins first."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from tests.dividing import LONG, ROOT, TOGETHER, Division, longest_first
from tests.journeys import forms


def test_folders_that_are_named_are_there():
    assert [name for name in {*LONG, *TOGETHER} if not (ROOT / "tests" / name).is_dir()] == []


def test_files_of_a_folder_with_servers_stay_together_and_others_do_not():
    def place(nodeid: str) -> str:
        return Division._split_scope(Division.__new__(Division), nodeid)

    one, other = "tests/contract/test_agents.py::test_a", "tests/contract/test_skills.py::test_b"
    assert place(one) == place(other)
    one, other = "tests/chat/test_a.py::test_a", "tests/chat/test_b.py::test_a[tests/contract/x]"
    assert place(one) != place(other)


def test_long_ones_begin_first_and_others_stay_in_their_order():
    names = ["wire/test_b.py", "chat/test_a.py", f"{LONG[1]}/test_a.py", f"{LONG[0]}/test_a.py"]
    items: Any = [SimpleNamespace(path=ROOT / "tests" / name) for name in names]
    longest_first(items)
    assert [item.path for item in items] == [
        ROOT / "tests" / names[place] for place in (3, 2, 0, 1)
    ]


def test_in_some_part_each_journey_is_made_and_each_place_of_it_looked_at(monkeypatch):
    files = [path.stem for path in (ROOT / "tests" / "journeys").glob("test_*.py")]
    assert set(forms.DAILY) < set(files)
    monkeypatch.setattr(forms, "IN_ALL", False)
    seen: Counter[tuple[str, int]] = Counter()
    for chosen in range(forms.COMBINED):
        monkeypatch.setattr(forms, "PART", chosen % forms.PARTS)
        monkeypatch.setattr(forms, "THIRD", chosen // forms.PARTS)
        made = [file for file in files if forms.is_made(file, ())]
        seen.update(
            (file, place) for file in made for place in range(forms.PARTS) if forms.in_part(place)
        )
    assert set(seen) == {(file, place) for file in files for place in range(forms.PARTS)}
    assert max(seen[file, 0] for file in files if file not in forms.DAILY) == 1
