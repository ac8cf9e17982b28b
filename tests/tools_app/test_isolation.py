"""Work on foreign text in a process of its own ends, whatever the text."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import pytest

from tests.patience import PATIENCE, until
from tools_app import isolation
from tools_app.documents import EACH, opened_for, taken_apart
from tools_app.isolation import REPLY_LIMIT, IsolatedProcess, IsolationFailed, IsolationTimedOut
from tools_app.warmprocesses import WAITING, WarmProcesses


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(body: str) -> str:
        (tmp_path / "given.py").write_text("import json, os, sys\n" + body)
        return "given"

    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    return write


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_process_sees_no_environment_of_the_server(script, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    name = script(
        "for line in sys.stdin: print(json.dumps([dict(os.environ), sys.path]), flush=True)"
    )
    with IsolatedProcess(name, seconds=PATIENCE) as process:
        environment, path = process.ask({})
    assert "sk-secret" not in str(environment)
    assert not any("site-packages" in place for place in path)


def test_what_it_answers_can_be_kept(script):
    name = script(
        "for line in sys.stdin: print(json.dumps(['a\\ud800\\0', float('nan')]), flush=True)"
    )
    with IsolatedProcess(name, seconds=PATIENCE) as process:
        assert process.ask({}) == ["a\ufffd\ufffd", None]


def test_a_process_that_does_not_answer_is_killed(script):
    name = script("sys.stdin.readline()\nwhile True: pass")
    with IsolatedProcess(name, seconds=0.5) as process:
        pid = process._process.pid
        with pytest.raises(IsolationTimedOut):
            process.ask({})
    assert gone(pid)


def test_a_process_that_does_not_even_read_is_killed(script):
    name = script("while True: pass")
    with IsolatedProcess(name, seconds=0.5) as process, pytest.raises(IsolationTimedOut):
        process.ask({"text": "x" * 10_000_000})


def test_a_process_that_dies_is_told_apart_from_one_that_is_late(script):
    for body in ("sys.exit(3)", "sys.stdin.readline(); bytearray(4 * 1024**3)"):
        with (
            IsolatedProcess(script(body), seconds=PATIENCE) as process,
            pytest.raises(IsolationFailed),
        ):
            process.ask({})


def test_leaving_early_ends_the_process(script):
    name = script("print(os.getpid(), flush=True)\nwhile True: pass")
    with IsolatedProcess(name, seconds=PATIENCE) as process:
        pid = process.ask({})
    assert gone(pid)


ECHO = """
import signal, time
for line in sys.stdin:
    request = json.loads(line)
    if "sleep" in request: time.sleep(request["sleep"])
    if "work" in request:
        signal.setitimer(signal.ITIMER_PROF, request["work"])
        while True: pass
    if "die" in request: sys.exit(1)
    print(json.dumps(os.getpid()), flush=True)
"""


def test_a_warm_process_stays_and_is_replaced_when_it_was_late_or_died(script, monkeypatch):
    warm = WarmProcesses(script(ECHO), most=1, seconds=PATIENCE)
    first = warm.ask({})
    assert warm.ask({}) == first
    for request, fault in (
        ({"sleep": 600}, IsolationTimedOut),
        ({"work": 0.05}, IsolationTimedOut),
        ({"die": True}, IsolationFailed),
    ):
        before = warm.ask({})
        with monkeypatch.context() as hurried, pytest.raises(fault):
            if "sleep" in request:
                hurried.setattr(warm, "_seconds", 0.2)
            warm.ask(request)
        assert gone(before)
        assert warm.ask({}) != before
    last = warm.ask({})
    warm.close()
    assert gone(last)


def test_the_operator_reads_which_warm_process_died(script, caplog):
    name = script(ECHO)
    warm = WarmProcesses(name, most=1, seconds=PATIENCE)
    with pytest.raises(IsolationFailed):
        warm.ask({"die": True})
    warm.close()
    (line,) = caplog.messages
    assert str(name) in line


def test_no_more_warm_processes_run_than_were_said_and_each_request_has_its_turn(script):
    warm = WarmProcesses(script(ECHO), most=2, seconds=PATIENCE)
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _n: warm.ask({"sleep": 0.02}), range(16)))
    assert 1 <= len(found) <= 2
    warm.close()


HOLD = """
import time
for line in sys.stdin:
    request = json.loads(line)
    while "until" in request and not os.path.exists(request["until"]): time.sleep(0.005)
    print(json.dumps(os.getpid()), flush=True)
"""


def test_one_persons_requests_leave_a_process_to_others_and_threads_too(script, tmp_path):
    warm = WarmProcesses(script(HOLD), most=2, seconds=PATIENCE)
    over = tmp_path / "over"
    with ThreadPoolExecutor(8) as threads:
        hers = [
            threads.submit(warm.ask, {"until": str(over)}, who="mallory")
            for _n in range(WAITING + 3)
        ]
        turned_away = list(islice(as_completed(hers, PATIENCE), 2))
        assert all(isinstance(one.exception(), IsolationFailed) for one in turned_away)
        assert warm.ask({}, who="bob")
        assert not any(one.done() for one in hers if one not in turned_away)
        over.touch()
    assert len({one.result() for one in hers if one not in turned_away}) == 1
    warm.close()


def test_an_answer_that_is_too_long_ends_the_process_at_once(script):
    name = script(f"sys.stdin.readline(); print('x' * {REPLY_LIMIT + 1_000_000}, flush=True)")
    with IsolatedProcess(name, seconds=PATIENCE) as process, pytest.raises(IsolationFailed):
        process.ask({})


@pytest.mark.skipif(sys.platform != "linux", reason="other systems choose by themselves")
def test_a_process_that_takes_all_memory_goes_before_the_server(script):
    name = script("""
sys.stdin.readline()
print(open("/proc/self/oom_score_adj").read(), flush=True)
""")
    with IsolatedProcess(name, seconds=PATIENCE) as process:
        assert process.ask({}) == 1000


def test_one_persons_documents_are_taken_apart_a_few_at_a_time(script, tmp_path):
    over = tmp_path / "over"
    name = script("""
import time
request = json.loads(sys.stdin.readline())
open(f"{request['begun']}.{os.getpid()}", "w").close()
while not os.path.exists(request["until"]): time.sleep(0.005)
print("{}", flush=True)
""")

    def take_apart(who: str) -> object:
        asked = {"begun": str(tmp_path / who), "until": str(over)}
        with opened_for(who):
            return taken_apart(name, asked, PATIENCE, "PDF")

    def begun(who: str) -> int:
        return len(list(tmp_path.glob(f"{who}.*")))

    with ThreadPoolExecutor(EACH + 2) as threads:
        hers = [threads.submit(take_apart, "mallory") for _n in range(EACH + 1)]
        his = threads.submit(take_apart, "bob")
        try:
            until(lambda: begun("mallory") >= EACH and begun("bob"))
            assert begun("mallory") == EACH
        finally:
            over.touch()
        assert [one.result() for one in (*hers, his)] == [{}] * (EACH + 2)
