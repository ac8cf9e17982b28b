"""Kills one conversation at every commit point in turn and demands that it finishes by itself.

    python -m tests.killing [--every N] [--first N] [--last N] [--database sqlite|postgresql]
        [--process web|worker] [--branches] [--composed] [--compaction] [--mcp] [--tree] [--analysis]

Each point is tried twice: right before the commit and right after it; what is killed is the process
that runs conversations. A person's part (posting, allowing; with `--branches` going back and on at the
end, files too, with `--compaction` asking for a summary) is played over HTTP and, as a person would, again
after a failure; nothing else helps the conversation along but the restart.
With `--composed` a skill's own tool does the work by nested calls, with `--tree` subagents do, with `--mcp` a
tool of an MCP server has the effect and asks a person before; with `--analysis` nothing is done but that a
document and the conversation are read in the background.
Prints `points: N, lost: 0, repeated: 0` and exits with 1 if a number behind a colon is not 0.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from urllib.parse import urlencode

import redis
import uvicorn
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.middleware.csrf import _get_new_csrf_string as new_csrf
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import get_resolver

from agentsite.asgi import application
from agentsite.celery import app as celery
from agentsite.local_services import free_port
from approvals.models import Approval
from conversations.models import Conversation, Event, Run
from harness.content import Text
from harness.events import (
    AgentMcpToolUse,
    AgentMessage,
    AgentToolUse,
    Rewound,
    UserMessage,
    answered_call,
)
from jobs import here
from jobs.broker import schedule_recurring
from mcpservers.models import McpQuestion
from providers.scripted import registered
from tests.killing import analysis, databases, scenario, tree
from tests.killing.commits import When, commits
from tests.killing.verdict import problems_of

WORKER = [
    *("worker", "--pool=threads", "--concurrency=4", "--loglevel=CRITICAL"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
]
WORKER_MODULES = (
    *("celery.bin.celery", "celery.apps.beat", "celery.apps.worker", "celery.concurrency.thread"),
    *("celery.worker.consumer", "celery.worker.loops", "celery.fixups.django"),
    *("kombu.transport.redis", "live.redis_hub"),
)
SOON = 4.0
"""Seconds after a rest in which a conversation is read, if somebody was told to."""
PATIENCE = 120.0
"""Seconds for one point; a conversation that is not done by then counts as lost."""
BETWEEN_LOOKS = 0.05
"""Seconds between two looks of the person, who reads the whole log each time."""


@dataclass
class Trial:
    """One conversation, killed once. `children` are the process ids by what they are."""

    folder: Path
    database: str
    conversation: int
    session: str
    port: int
    children: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    died: bool = False
    rests_since: float | None = None

    @property
    def effects(self) -> list[str]:
        return scenario.effects(str(self.folder / "effects"))

    @property
    def said(self) -> str:
        """The end of what its processes wrote."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in logs)

    def use(self) -> None:
        settings.KILLING_EFFECTS = str(self.folder / "effects")
        settings.AGENTSITE_WORKSPACES_DIR = self.folder / "workspaces"
        databases.use(self.database)


def roles() -> list[str]:
    """The processes of a deployment; the last one runs conversations and is the one that is killed."""
    return ["web", "beat", "worker"] if settings.AGENTSITE_BROKER_URL else ["web"]


def be(role: str, trial: Trial, point: int, when: When) -> None:
    """Be that process, in a child of the matrix; never returns."""
    try:
        log = os.open(trial.folder / f"{role}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        with registered(scenario.SCRIPT, scenario.answer):
            settings.AGENTSITE_SWEEP_SECONDS = settings.AGENTSITE_TEAM_SECONDS = 1
            if role == roles()[-1]:
                commits.arm(point, when)
            if role == "worker":
                celery.worker_main(WORKER)
            elif role == "beat":
                schedule_recurring()
                celery.start(["beat", "--loglevel=CRITICAL"])
            else:
                if not settings.AGENTSITE_BROKER_URL:
                    here.start_recurring()
                config = uvicorn.Config(
                    application, port=trial.port, log_level="critical", ws="none", lifespan="off"
                )
                uvicorn.Server(config).run()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def start(role: str, trial: Trial, point: int = 0, when: When = "after") -> None:
    databases.release()
    child = os.fork()
    if child == 0:
        be(role, trial, point, when)
    trial.children[role] = child
    if role == "web":
        _wait_for_port(trial)


def _wait_for_port(trial: Trial) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and is_alive("web", trial):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", trial.port)) == 0:
                return
        time.sleep(0.005)


def is_alive(role: str, trial: Trial) -> bool:
    child = trial.children.get(role)
    if child is None:
        return False
    done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        return True
    del trial.children[role]
    if role == roles()[-1] and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        trial.died = True
    else:
        trial.problems.append(f"the {role} ended by itself with status {status}")
    return False


def post(trial: Trial, path: str, *, to: int | None = None, **fields: str) -> None:
    """What a person's browser sends to a conversation."""
    uid = Conversation.objects.get(pk=to or trial.conversation).uid
    post_to(trial, f"/c/{uid}/{path}", uid, **fields)


def post_to(trial: Trial, address: str, uid: str, **fields: str) -> None:
    """A connection that breaks is seen as a page that failed; `uid` whose page is to come."""
    token = new_csrf()
    body = urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
    _send(trial, address, uid, token, body, "application/x-www-form-urlencoded")


def upload_to(trial: Trial, address: str, uid: str, name: str, text: str) -> None:
    token = new_csrf()
    body = encode_multipart(
        BOUNDARY, {"csrfmiddlewaretoken": token, "uploads": SimpleUploadedFile(name, text.encode())}
    )
    _send(trial, address, uid, token, body, MULTIPART_CONTENT)


def _send(trial: Trial, address: str, uid: str, token: str, body: bytes, kind: str) -> None:
    headers = {
        "Content-Type": kind,
        "Cookie": (
            f"{settings.SESSION_COOKIE_NAME}={trial.session}; {settings.CSRF_COOKIE_NAME}={token}"
        ),
    }
    client = http.client.HTTPConnection("127.0.0.1", trial.port, timeout=10)
    try:
        client.request("POST", address, body, headers)
        response = client.getresponse()
        where = response.getheader("Location") or ""
        if response.status != 409 and not (response.status == 302 and uid in where):
            trial.problems.append(f"POST {address} answered {response.status} {where}")
        response.read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        client.close()


def answer_the_server(trial: Trial, conversation: Conversation) -> bool:
    """Whether the page showed what an MCP server asks."""
    if not conversation.waits_for_person:
        return False
    question = McpQuestion.objects.filter(conversation=conversation, answered_at=None).first()
    if question is None:
        return False
    given = {"answer": "accept", "q0-f0": "3"}
    post_to(trial, f"/mcp-questions/{question.uid}/", conversation.uid, **given)
    return True


def decide_calls(trial: Trial, conversation: int, rows: list[Event]) -> bool:
    """Answer what is asked there; whether anything was."""
    answered = {answered_call(row.value) for row in rows}
    for row in rows:
        value = row.value
        asks = isinstance(value, AgentToolUse | AgentMcpToolUse) and value.name == scenario.effect()
        if asks and row.uid not in answered:
            about = [r.type for r in rows if r.subject == row.uid]
            unknown = about.count("x.outcome_unknown")
            if about.count("user.tool_confirmation") <= unknown:
                # Asked about an unknown outcome, a person looks whether it happened.
                happened = unknown and scenario.happened(row.uid, trial.effects)
                asked = Approval.objects.filter(call_uid=row.uid, conversation=conversation).first()
                if asked is not None:
                    answer(trial, asked, "deny" if happened else "approve")
                    return True
    return False


def answer(trial: Trial, asked: Approval, verdict: str) -> None:
    """What the card on the page of its conversation sends, for the question as it stands now."""
    uid = asked.conversation.uid
    post_to(
        trial,
        f"/approvals/{asked.uid}/decide/",
        uid,
        verdict=verdict,
        input_hash=asked.effective_sha256,
        round=str(asked.round),
        next=f"/c/{uid}/",
    )


def play_for_the_tree(trial: Trial) -> bool:
    """The same for a lead and its subagents."""
    if not tree.is_begun(trial.conversation):
        post(trial, "messages/", content=tree.FIRST, key="key-0")
        return False
    for each in tree.family(trial.conversation):
        rows = list(Event.objects.filter(conversation=each).order_by("seq"))
        if decide_calls(trial, each.pk, rows):
            return False
    return tree.is_done(trial.conversation)


def play_for_the_analysis(trial: Trial) -> bool:
    """The same for what is read in the background: she says something, uploads a document, and says it again
    where what she said was not read when it rested."""
    said = analysis.said(trial.conversation)
    if not said:
        post(trial, "messages/", content=analysis.SAID, key="key-0")
        return False
    if not analysis.upload_is_there():
        uid = analysis.collection().uid
        upload_to(trial, f"/settings/documents/{uid}/", uid, analysis.NAME, analysis.HANDBOOK)
        return False
    if not analysis.rests(trial.conversation):
        trial.rests_since = None
        return False
    if analysis.is_read(trial.conversation):
        return analysis.document_is_read()
    now = time.monotonic()
    trial.rests_since = trial.rests_since or now
    if (
        now - trial.rests_since > SOON
        and said < analysis.AGAIN
        and not analysis.is_being_read(trial.conversation)
    ):
        post(trial, "messages/", content=analysis.SAID, key=f"key-{said}")
        trial.rests_since = None
    return False


def play_the_person(trial: Trial) -> bool:
    """Do what a person looking at the page would do next; True when all is answered."""
    rows = list(Event.objects.filter(conversation_id=trial.conversation).order_by("seq"))
    values = [row.value for row in rows]
    said = [
        text.text
        for value in values
        if isinstance(value, UserMessage)
        for text in value.content
        if isinstance(text, Text)
    ]
    for number, text in enumerate((scenario.FIRST, scenario.SECOND)):
        if text not in said:
            post(trial, "messages/", content=text, key=f"key-{number}")
            return False
    if decide_calls(trial, trial.conversation, rows):
        return False
    conversation = Conversation.objects.get(pk=trial.conversation)
    if scenario.is_mcp() and answer_the_server(trial, conversation):
        return False
    spoken = [
        text.text for value in values if isinstance(value, AgentMessage) for text in value.content
    ]
    at_rest = conversation.status == Conversation.Status.IDLE and not conversation.owes_run
    free = not Run.objects.filter(conversation=conversation, state=Run.State.RUNNING).exists()
    done = at_rest and free and all(words in spoken for words in scenario.LAST_WORDS.values())
    if done and scenario.compacts():
        types = [row.type for row in rows]
        if "x.compaction_requested" not in types:
            post(trial, "compact/", focus="what was counted")
            return False
        done = "agent.thread_context_compacted" in types
    if not done or not scenario.goes_back():
        return done
    return _go_back_and_on(trial, conversation, rows)


def _go_back_and_on(trial: Trial, conversation: Conversation, rows: list[Event]) -> bool:
    """Have the last answer done anew, go back to before everything, files too, and on again."""
    if conversation.files_due_seq is not None:
        return False
    whys = [row.value.why for row in rows if isinstance(row.value, Rewound)]
    match len(whys):
        case 0:
            second = [row for row in rows if isinstance(row.value, UserMessage)][1]
            post(trial, f"events/{second.uid}/regenerate/")
        case 1:
            post(trial, f"events/{rows[0].uid}/rewind/")
        case 2:
            said = [row for row in rows if isinstance(row.value, AgentMessage)][-1]
            post(trial, f"events/{said.uid}/branch/")
        case _:
            return True
    return False


def try_point(template: Template, point: int, when: When) -> Trial:
    folder = Path(tempfile.mkdtemp(prefix="killing-"))
    database = template.databases.copy_for(folder)
    play, judge = play_the_person, problems_of
    if scenario.is_tree():
        play, judge = play_for_the_tree, tree.problems_of
    if scenario.is_analysis():
        play, judge = play_for_the_analysis, analysis.problems_of
    trial = Trial(folder, database, template.conversation, template.session, free_port())
    try:
        trial.use()
        for role in roles():
            start(role, trial, point, when)
        end = time.monotonic() + PATIENCE
        done = False
        while not (done or trial.problems) and time.monotonic() < end:
            for role in roles():
                if not is_alive(role, trial):
                    if scenario.is_analysis():
                        analysis.let_time_pass()
                    start(role, trial)
            done = play(trial)
            time.sleep(BETWEEN_LOOKS)
        if not done:
            trial.problems.append("lost: it did not finish")
        effects, workspaces = trial.effects, trial.folder / "workspaces"
        trial.problems += judge(trial.conversation, effects, workspaces)
        if trial.problems:
            print(trial.said, flush=True)
    finally:
        for child in trial.children.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        databases.release()
        template.databases.drop(database)
        shutil.rmtree(folder, ignore_errors=True)
        _forget_messages()
    return trial


def _forget_messages() -> None:
    """What a killed worker left in the broker belongs to a conversation that is gone."""
    if settings.AGENTSITE_BROKER_URL:
        redis.Redis.from_url(settings.AGENTSITE_BROKER_URL).flushall()


@dataclass(frozen=True)
class Template:
    """What every trial begins with."""

    databases: databases.SQLite | databases.PostgreSQL
    conversation: int
    session: str


def prepare(folder: Path) -> Template:
    prepared = databases.of_this_run(folder)
    prepared.make()
    conversation, session = scenario.prepare()
    warm_up(conversation, session)
    prepared.settle()
    databases.release()
    return Template(prepared, conversation.pk, session)


def import_all() -> None:
    """Import once what every process of every trial would import again for itself."""
    for module in WORKER_MODULES if settings.AGENTSITE_BROKER_URL else ():
        import_module(module)
    _ = get_resolver().url_patterns


def warm_up(conversation: Conversation, session: str) -> None:
    """Draw a page once, here, with what that makes in every process."""
    browser = Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={session}"})
    page = browser.get(f"/c/{conversation.uid}/", headers={"host": "127.0.0.1"})
    if page.status_code != 200:
        raise RuntimeError(f"the page answered {page.status_code}")


def run_matrix(
    *, first: int = 1, last: int | None = None, every: int = 1, verbose: bool = False
) -> dict[str, int]:
    """Try every `every`th point until one lies behind `last` or the conversation's end; counts by verdict."""
    folder = Path(tempfile.mkdtemp(prefix="killing-template-"))
    counts = {"points": 0, "lost": 0, "repeated": 0, "failed": 0}
    try:
        template = prepare(folder)
        point, over = first, False
        while not over and (last is None or point <= last):
            for when in ("before", "after"):
                tried = try_point(template, point, when)
                for problem in tried.problems:
                    kind = problem.partition(":")[0]
                    counts[kind if kind in counts else "failed"] += 1
                    print(f"point {point} {when}: {problem}", flush=True)
                over = not tried.died
                if over:
                    break
                counts["points"] += 1
                if verbose:
                    print(f"point {point} {when}", flush=True)
            point += every
        return counts
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(first: int, last: int | None, every: int, verbose: bool) -> int:
    began = time.monotonic()
    counts = run_matrix(first=first, last=last, every=every, verbose=verbose)
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    print(f"{connection.vendor}, {roles()[-1]} process, {time.monotonic() - began:.0f} s")
    return int(any(counts[name] for name in ("lost", "repeated", "failed")))
