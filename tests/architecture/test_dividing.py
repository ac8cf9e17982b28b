"""Tests are divided so that what is shared is started once and what is long begins first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.dividing import LONG, ROOT, TOGETHER, Division, longest_first


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
