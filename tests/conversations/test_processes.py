"""What is said of processes by their numbers: of one that runs, one that ended unasked, one that is gone."""

from __future__ import annotations

import os
import subprocess

import pytest

from conversations import processes


def test_a_process_runs_until_it_has_ended_whether_or_not_its_parent_has_asked_how():
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert processes.runs(process.pid)
    assert processes.began(process.pid) == processes.began(process.pid) != ""
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.runs(process.pid), "it has ended, and nobody has asked"
    assert processes.began(process.pid) == ""
    process.wait()
    assert not processes.runs(process.pid)
    assert processes.began(process.pid) == ""


def test_processes_of_one_start_of_the_machine_say_the_same_of_it():
    told = subprocess.run(
        ["cat", "/proc/sys/kernel/random/boot_id"], capture_output=True, text=True, check=True
    )
    assert processes.boot() == told.stdout.strip() != ""


@pytest.mark.skipif(
    os.geteuid() != 0, reason="everybody else's processes may be asked about anyhow"
)
def test_a_process_of_another_user_runs_also_for_those_who_may_not_signal_it():
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os._exit(0 if processes.runs(1) else 1)
    assert os.waitpid(child, 0)[1] == 0
