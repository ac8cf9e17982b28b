"""Real processes on PostgreSQL and Redis: who runs, who may write, who hears a stop, how one drains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentsite.environment import BASE_DIR
from agentsite.local_services import LocalRedis, free_port
from harness.content import Text
from harness.errors import ProviderTimedOut
from harness.messages import ModelRequest
from providers.scripted import Hold, call, reply, say
from tests.patience import PATIENCE
from tests.scale.deployment import Deployment, Member, Page, until
from tests.standins.collector import Collector
from tests.standins.mcp_server import Remote, door_of, served

SLOWLY = "word " * 4_000
MCP_PORT = free_port()
"""At which a test may have an MCP server."""


class Script:
    """What the model answers, by the last word of what a person asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def __call__(self, request: ModelRequest) -> Any:
        said = [
            part.text
            for message in request.messages
            if message.role == "user"
            for part in message.parts
            if isinstance(part, Text)
        ]
        words = reversed(" ".join(said).split())
        word = next((word for word in words if word in self.answers), "")
        self.asked.append(word)
        answer = self.answers.get(word, "Yes.")
        return answer(request) if callable(answer) else answer


class Site:
    def __init__(
        self,
        deployment: Deployment,
        script: Script,
        web: list[Member],
        worker: Member,
        collector: Collector,
    ):
        self.deployment = deployment
        self.script = script
        self.web = web
        self.worker = worker
        self.collector = collector

    def conversation(self) -> tuple[str, str]:
        made = self.deployment.call("world", 1)
        return made["conversations"][0], made["cookie"]

    def page(self, cookie: str, uid: str, web: int = 0) -> Page:
        return Page([self.web[web]], cookie, uid)


@pytest.fixture(scope="module")
def site(
    tmp_path_factory, new_database: Callable[[str], str], _redis: LocalRedis
) -> Iterator[Site]:
    script = Script()
    directory = tmp_path_factory.mktemp("site")
    database = new_database("site")
    collector = Collector()
    more = {
        "AGENTSITE_OTLP_ENDPOINT": collector.address,
        "AGENTSITE_MCP_PRIVATE_HOSTS": f"127.0.0.1:{MCP_PORT}",
    }
    with Deployment(directory, database, _redis.url, script, **more) as deployment:
        members = deployment.web(), deployment.web(), deployment.worker()
        deployment.beat()
        for member in members:
            member.ready()
        yield Site(deployment, script, list(members[:2]), members[2], collector)
    collector.stop()


def seconds_to_rest(facts: dict[str, Any]) -> float:
    """From the interrupt to the rest, by the log's own times."""
    at = dict(zip(facts["types"], facts["times"], strict=True))
    return float(at["session.status_idle"] - at["user.interrupt"])


# --- one conversation, one run --------------------------------------------------------------------


def test_a_hundred_wakes_at_once_give_one_run(site: Site):
    hold = Hold()
    site.script.answers["once"] = reply(say("Only ", hold, "once."))
    uid, _cookie = site.conversation()
    site.deployment.call("post", uid, "Answer once")
    site.deployment.call("wake_often", uid, 100)
    until(hold.reached.is_set, PATIENCE, site.deployment.said)
    site.deployment.call("wake_often", uid, 100)
    until(lambda: site.deployment.call("facts", uid)["runs"], PATIENCE)
    assert [run["state"] for run in site.deployment.facts(uid)["runs"]] == ["running"]
    hold.release.set()
    facts = site.deployment.rested(uid)
    assert facts["texts"] == ["Only once."]
    assert facts["types"].count("x.input_taken") == 1
    assert site.script.asked.count("once") == 1


def test_a_worker_that_slept_past_its_lease_can_write_nothing(site: Site):
    """SIGSTOP is what a frozen machine looks like from outside."""
    first, second = Hold(), Hold()
    holds = [first, second]
    site.script.answers["asleep"] = lambda _request: reply(say("So far ", holds.pop(0), "and on."))
    uid, _cookie = site.conversation()
    site.deployment.call("post", uid, "Fall asleep")
    until(first.reached.is_set, PATIENCE, site.deployment.said)
    site.worker.process.send_signal(signal.SIGSTOP)
    other = site.deployment.worker()
    try:
        other.ready()
        until(second.reached.is_set, PATIENCE, site.deployment.said)
        second.release.set()
        taken_over = site.deployment.rested(uid)
        site.worker.process.send_signal(signal.SIGCONT)
        first.release.set()
        until(lambda: "lost conversation" in site.worker.said(), PATIENCE, site.worker.said)
        facts = site.deployment.facts(uid)
    finally:
        site.worker.process.send_signal(signal.SIGCONT)
        assert other.terminate() == 0
    assert facts["seqs"] == taken_over["seqs"] == list(range(1, len(facts["seqs"]) + 1))
    assert facts["types"] == taken_over["types"]
    assert [run["state"] for run in facts["runs"]] == ["lost", "rested"]
    assert facts["texts"][-1] == "So far and on."
    assert facts["types"].count("session.status_idle") == 1


# --- stopping from elsewhere ----------------------------------------------------------------------


async def test_stop_in_a_page_ends_a_streaming_answer_in_a_worker(site: Site):
    """The request comes to a web process, the run is in another one."""
    site.script.answers["long"] = reply(say(SLOWLY), chunk=10, delay=0.02)
    uid, cookie = site.conversation()
    async with site.page(cookie, uid) as page:
        await page.post("Something long")
        await page.until(lambda: len(page.view.text) > 100)
        await page.stop()
        await page.until(lambda: "session.status_idle" in site.deployment.facts(uid)["types"])
    facts = site.deployment.rested(uid)
    assert seconds_to_rest(facts) < 2
    assert facts["texts"][0].startswith("word word")
    assert len(facts["texts"][0]) < len(SLOWLY)


async def test_stop_ends_the_wait_for_a_silent_provider(site: Site):
    site.script.answers["silent"] = ProviderTimedOut("not a word")
    uid, cookie = site.conversation()
    async with site.page(cookie, uid, web=1) as page:
        await page.post("Be silent")
        await page.until(lambda: "span.model_request_start" in site.deployment.facts(uid)["types"])
        await page.stop()
        await page.until(lambda: "session.status_idle" in site.deployment.facts(uid)["types"])
    assert seconds_to_rest(site.deployment.rested(uid)) < 2


def sleeping(seconds: str) -> int:
    """Processes of this machine, in whatever sandbox, that sleep for just so long."""
    wanted = f"sleep\0{seconds}\0".encode()
    return sum(_command_line(process) == wanted for process in Path("/proc").glob("[0-9]*"))


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def test_stop_ends_a_command_and_everything_that_it_started(site: Site):
    """What it left in its own background as well, in a sandbox of another process."""
    seconds = "600.0625"
    command = f"sleep {seconds} & sleep {seconds}"
    site.script.answers["sleepily"] = reply(call("bash", command=command))
    uid, cookie = site.conversation()
    async with site.page(cookie, uid) as page:
        await page.post("Work sleepily")
        await page.until(lambda: sleeping(seconds) == 2)
        await page.stop()
        await page.until(lambda: "session.status_idle" in site.deployment.facts(uid)["types"])
    assert sleeping(seconds) == 0
    facts = site.deployment.rested(uid)
    assert seconds_to_rest(facts) < 2
    assert facts["types"].count("agent.tool_result") == 1
    assert site.script.asked.count("sleepily") == 1


def test_a_stop_whose_hint_is_lost_is_found_all_the_same(site: Site):
    """The process that stores the interrupt cannot reach Redis; the run looks into the table."""
    hold = Hold()
    site.script.answers["unheard"] = reply(say("And ", hold, "on."))
    uid, _cookie = site.conversation()
    site.deployment.call("post", uid, "Go on unheard")
    until(hold.reached.is_set, PATIENCE, site.deployment.said)
    nowhere = "redis://127.0.0.1:1"
    mute = site.deployment.new_helper(AGENTSITE_REDIS_URL=nowhere, AGENTSITE_BROKER_URL=nowhere)
    try:
        assert site.deployment.call("stop", uid, by=mute)
        facts = site.deployment.rested(uid)
    finally:
        mute.kill()
    assert seconds_to_rest(facts) < 2
    assert facts["texts"] == ["And "]


# --- what a page sees -----------------------------------------------------------------------------


async def test_two_pages_on_two_servers_see_the_same_text_while_it_streams(site: Site):
    """The run is in a third process; the second page comes in mid-answer."""
    hold = Hold()
    site.script.answers["both"] = reply(
        say("Once upon a time ", hold, "there was an end."), chunk=4
    )
    uid, cookie = site.conversation()
    async with site.page(cookie, uid, web=0) as first:
        await first.post("Tell both")
        await first.until(lambda: first.view.text == "Once upon a time ")
        async with site.page(cookie, uid, web=1) as second:
            await second.until(lambda: second.view.text == "Once upon a time ")
            hold.release.set()
            for page in (first, second):
                await page.until(partial(page.shows, "there was an end."))
                assert page.view.gaps == 0
            assert first.view.log == second.view.log


# --- one trace ------------------------------------------------------------------------------------


def test_a_turn_with_a_subagent_an_mcp_call_and_a_worker_elsewhere_is_one_tree(site: Site):
    """Who else has spans of the turn stands below ours by the `traceparent` that it was told."""
    ask = {"description": "Look", "prompt": "Look thoroughly"}
    steps: list[Any] = [
        reply(call("mcp__stand-in__echo", text="ahoy"), call("subagent", **ask)),
        "All is told.",
    ]
    child: list[Any] = [reply(call("write_file", path="a.txt", content="x")), "It is written."]
    site.script.answers["traced"] = lambda _request: steps.pop(0)
    site.script.answers["thoroughly"] = lambda _request: child.pop(0)
    remote, gathered = Remote(), site.collector
    remote.offer("echo")
    with served(door_of(remote), MCP_PORT):
        made = site.deployment.call("traced_world", f"http://127.0.0.1:{MCP_PORT}/mcp")
        site.deployment.call("post", made["uid"], "Be traced")
        server = f"http://127.0.0.1:{site.web[0].port}"
        arguments = (server, made["environment"], gathered.address, "write")
        worker = subprocess.run(
            [sys.executable, "-m", "tests.scale.inside.tracing_worker", *arguments],
            cwd=BASE_DIR,
            env={**os.environ, "WORKER_KEY": made["key"]},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert worker.returncode == 0, worker.stderr + site.deployment.said()
        until(lambda: "All is told." in site.deployment.facts(made["uid"])["texts"], PATIENCE)
    [told] = remote.told
    _version, trace, parent, _flags = told["traceparent"].split("-")

    def ours() -> list[dict[str, Any]]:
        return [span for span in gathered.spans if span["traceId"] == trace]

    # The lead's turn and the subagent's, each as it ended.
    until(lambda: [span["name"] for span in ours()].count("chat m") == 4, PATIENCE)
    spans = {span["spanId"]: span for span in ours()}
    spans["mcp"] = {"spanId": "mcp", "name": "at the MCP server", "parentSpanId": parent}

    def way(span: dict[str, Any]) -> list[str]:
        above = span.get("parentSpanId")
        return [*(way(spans[above]) if above else ()), span["name"]]

    ways = sorted(map(way, spans.values()))
    turn = ["invoke_agent Traced"]
    within = [*turn, "invoke_agent general", "invoke_agent Traced"]
    by_mcp = [*turn, "execute_tool mcp__stand-in__echo"]
    by_worker = [*within, "execute_tool write_file"]
    model = "chat m"
    assert ways == sorted(
        [
            turn,
            [*turn, model],
            [*turn, model],
            [*turn, "execute_tool subagent"],
            [*turn, "rest"],
            by_mcp,
            [*by_mcp, "at the MCP server"],
            within[:2],
            within,
            [*within, model],
            [*within, model],
            [*within, "rest"],
            by_worker,
            [*by_worker, "at the worker"],
        ]
    )


# --- probes ---------------------------------------------------------------------------------------


TOKEN = {"Authorization": "Bearer metrics-token"}


def says(member: Member, line: str) -> bool:
    return line in member.get("/metrics", **TOKEN)[1].splitlines()


def test_web_and_worker_say_that_they_are_ready_and_what_they_count(site: Site):
    for member in (*site.web, site.worker):
        assert member.get("/healthz") == (200, "ok\n")
        assert member.get("/readyz")[0] == 200
        status, body = member.get("/readyz", **TOKEN)
        assert status == 200, body
        for name in ("database", "migrations", "redis", "broker"):
            assert f'"{name}": "ok"' in body
        assert member.get("/metrics")[0] == 404
        assert member.get("/metrics", Authorization="Bearer wrong")[0] == 404
        until(partial(says, member, "agentsite_runs_claimed 0.0"), PATIENCE)
    body = site.worker.get("/metrics", **TOKEN)[1]
    calls = [line for line in body.splitlines() if line.startswith("agentsite_model_calls_total")]
    assert any('end="end_turn"' in line for line in calls)
    assert "agentsite_event_append_seconds_bucket" in body
    assert "agentsite_sockets_open 0.0" in site.web[0].get("/metrics", **TOKEN)[1]


# --- coming to an end -----------------------------------------------------------------------------


def test_a_worker_that_is_told_to_stop_leaves_its_runs_to_another(site: Site):
    """A step that ends in time is stored by the old worker, the next one is made by the new."""
    hold = Hold()

    steps: list[Any] = [
        reply(say("First, ", hold, "I count."), call("count")),
        "Both steps are made.",
    ]
    site.script.answers["drain"] = lambda _request: steps.pop(0)
    uid, _cookie = site.conversation()
    before = len(site.deployment.counted)
    site.deployment.call("post", uid, "Count and drain")
    until(hold.reached.is_set, PATIENCE, site.deployment.said)
    successor = site.deployment.worker().ready()
    old, site.worker = site.worker, successor
    old.process.terminate()
    until(lambda: "waiting up to" in old.said(), PATIENCE, old.said)
    hold.release.set()
    assert old.process.wait(PATIENCE) == 0
    facts = site.deployment.rested(uid)
    assert facts["texts"] == ["First, I count.", "Both steps are made."]
    assert [run["state"] for run in facts["runs"]] == ["rested", "rested"]
    assert old.name in facts["runs"][0]["worker"]
    assert successor.name in facts["runs"][1]["worker"]
    assert len(site.deployment.counted) == before + 1
    assert facts["seqs"] == list(range(1, len(facts["seqs"]) + 1))


def test_a_step_that_takes_too_long_is_cut_off_with_its_text_kept(site: Site):
    hold = Hold()
    answers = [reply(say("Half of it. ", hold)), "The rest."]
    site.script.answers["stubborn"] = lambda _request: answers.pop(0)
    impatient = site.deployment.worker(AGENTSITE_DRAIN_SECONDS="1").ready()
    site.worker.process.send_signal(signal.SIGSTOP)
    try:
        uid, _cookie = site.conversation()
        site.deployment.call("post", uid, "Be stubborn")
        until(hold.reached.is_set, PATIENCE, site.deployment.said)
        impatient.process.terminate()
        assert impatient.process.wait(PATIENCE) == 0
    finally:
        site.worker.process.send_signal(signal.SIGCONT)
    facts = site.deployment.rested(uid)
    assert facts["texts"] == ["Half of it. ", "The rest."]
    assert site.worker.name in facts["runs"][-1]["worker"]


def test_a_web_process_that_runs_conversations_itself_drains_as_well(
    tmp_path, new_database: Callable[[str], str], redis: LocalRedis
):
    """No broker: runs live in the server. Its successor goes on at its start."""
    hold = Hold()
    answers: list[Any] = [reply(say("One, ", hold, "two."), call("count")), "Three."]
    with Deployment(
        tmp_path,
        new_database("web_alone"),
        redis.url,
        lambda _request: answers.pop(0),
        AGENTSITE_BROKER_URL="",
    ) as deployment:
        first = deployment.web().ready()
        made = deployment.call("world", 1)
        uid = made["conversations"][0]
        # Through the database alone, as if the hint had been lost: the ticker of the server finds it.
        mute = deployment.new_helper(AGENTSITE_BROKER_URL="redis://127.0.0.1:1")
        deployment.call("post", uid, "Count", by=mute)
        mute.kill()
        until(hold.reached.is_set, PATIENCE, deployment.said)
        first.process.terminate()
        until(lambda: "waiting up to" in first.said(), PATIENCE, first.said)
        hold.release.set()
        assert first.process.wait(PATIENCE) in (0, -signal.SIGTERM)
        at_rest = deployment.facts(uid)
        assert at_rest["texts"] == ["One, two."]
        assert at_rest["runs"][-1]["state"] == "rested"
        assert at_rest["status"] == "running"
        second = deployment.web().ready()
        facts = deployment.rested(uid)
        assert facts["texts"] == ["One, two.", "Three."]
        assert second.name in facts["runs"][-1]["worker"]
        assert len(deployment.counted) == 1
