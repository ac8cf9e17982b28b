"""The quick form of the attack suite: what no release may lose, and proof that the attacks bite.

All attacks: `make attack`.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.sandbox.attack.suite import ALL, CASES, STAND_INS, attack, harmless
from tests.sandbox.conftest import made

QUICK = (
    *("read_outside", "read_other_conversation", "symlink_read", "symlink_write", "hard_link"),
    *("write_read_only_mount", "chmod_outside", "kernel_settings", "setuid_file"),
    *("own_environment", "victims_environment", "kill_victim", "slow_victim", "ptrace"),
    *("double_fork", "kill_supervisor", "forged_end", "nested_user_namespace", "kernel_doors"),
    *("tcp_loopback", "udp", "unix_socket", "abstract_socket", "machine_socket"),
    *("egress_direct", "egress_unlisted", "egress_name_of_loopback", "egress_rebinding"),
    *("egress_redirect", "egress_second_request", "fork_bomb", "memory_hog", "disk_filler"),
    *("fill_root", "endless_output", "neighbour_read", "outlive_conversation", "poisoned_shell"),
    *("program_reads_another", "commands_read_program"),
    *("packages_written", "packages_fetched"),
)


def test_there_are_at_least_sixty_attacks_each_with_a_name_of_its_own():
    names = [one.name for one in ALL]
    assert len(names) == len(set(names)) >= 60
    assert set(QUICK) <= set(names)


@pytest.mark.parametrize("name", ["bubblewrap", "process"])
async def test_nothing_escapes(name: str):
    await asyncio.to_thread(made, name)
    report = await attack(name, only=QUICK)
    assert report.escaped == []
    assert report.untried == {}
    if name == "bubblewrap" and os.geteuid() == 0:
        assert report.refused == {}


TOLD = (
    *("read_outside", "read_other_conversation", "symlink_write", "own_environment"),
    *("every_environment", "parents_environment", "kill_victim", "tcp_loopback", "udp"),
    *("unix_socket", "abstract_socket", "dns_lookup", "interfaces", "fork_bomb", "memory_hog"),
    *("large_file", "open_files", "endless_output", "fill_root", "return_links"),
    *("return_special_files", "return_modes", "return_many", "return_much", "return_holes"),
    "return_folder_for_file",
)


@pytest.mark.parametrize("name", STAND_INS)
async def test_nothing_escapes_an_engine_that_does_what_it_is_told(name: str):
    """Docker and OpenShell hold what they are told to hold: by a stand-in that holds no more than that."""
    await asyncio.to_thread(made, "bubblewrap")
    report = await attack(name, only=TOLD)
    assert report.escaped == []
    assert report.untried == {}
    assert len(report.held) >= 12


async def test_without_a_sandbox_the_attacks_succeed():
    """Otherwise an attack that finds nothing would look like a sandbox that holds."""
    report = await attack("none")
    expected = {case.name for case in CASES if harmless(case)}
    assert {text.partition(" ")[0] for text in report.escaped} == expected
    assert len(expected) >= 40
