"""Attacks in the time between a question and its answer: what was asked about is not what runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from accounts.actions.members import remove_member
from accounts.models import Membership, Role, User
from agents.actions.environments import change_environment
from agents.models import Environment
from approvals.models import Approval
from conversations.models import Conversation
from providers.scripted import call, reply
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.world import World
from tools_app.workspace import workspace_for

SUBJECT = "meanwhile"
ASKING = [{"tool": "*", "permission": "always_ask"}]
WRITTEN = "petrel-written-2b7e"
SECRET = "AGENTSITE_SECRET"


class _Scene:
    """A call of a conversation of olga's that waits for an answer."""

    def __init__(
        self, world: World, given: Any, *, owner: User | None = None, **config: Any
    ) -> None:
        self.world = world
        self.owner = owner or world.olga
        self.token = world.token_of(self.owner, world.home)
        agent = world.agent_of(world.home, world.olga, **{"tools": ASKING, **config})
        self.conversation: Conversation = world.converse(
            self.owner, organisation=world.home, agent=agent
        )
        self.folder: Path = workspace_for(self.conversation.uid)
        self._given = given

    def ask(self) -> Approval:
        self.world.turn(self.token, self.conversation, reply(self._given), reply("Done."))
        self.asked = self.world.asked(self.conversation)
        return self.asked

    def allow(self, person: User | None = None) -> None:
        """By the page, with all that the page shows now."""
        self.asked.refresh_from_db()
        with self.world.browser(person or self.owner) as visitor:
            visitor.form(
                f"/approvals/{self.asked.uid}/decide/",
                verdict="approve",
                input_hash=self.asked.effective_sha256,
                round=self.asked.round,
            )

    def over(self, seconds: float = 60) -> str:
        """What came of it, once nothing more comes: the log as text. Where nothing is to come of it,
        that is looked for no longer than `seconds`."""
        idles = [0]

        def rests() -> bool:
            types = [one["type"] for one in self.world.log(self.conversation)]
            idles[0] = types.count("session.status_idle")
            return "agent.tool_result" in types and types[-1] == "session.status_idle"

        end = time.monotonic() + seconds
        while not rests() and time.monotonic() < end:
            time.sleep(0.05)
        return str(self.world.log(self.conversation))

    @property
    def outside(self) -> Path:
        folder = self.world.directory / f"outside-{self.conversation.pk}"
        folder.mkdir(exist_ok=True)
        return folder


def _write(path: str) -> Any:
    return call("write_file", path=path, content=WRITTEN)


@control(SUBJECT, "a call that was allowed", "writes what was asked about, once somebody said yes")
def _control(world: World) -> Got:
    scene = _Scene(world, _write("a/b.txt"))
    scene.ask()
    tried(not (scene.folder / "a").exists(), "it ran unasked")
    scene.allow()
    log = scene.over()
    file = scene.folder / "a" / "b.txt"
    return "" if file.exists() and file.read_text() == WRITTEN else f"it did not run: {log[-300:]}"


# --- files ----------------------------------------------------------------------------------------


@attack(
    SUBJECT,
    "a folder that becomes a link",
    "a file's folder leads outside by the time it is written",
)
def _folder(world: World) -> Got:
    scene = _Scene(world, _write("sub/a.txt"))
    (scene.folder / "sub").mkdir()
    scene.ask()
    (scene.folder / "sub").rmdir()
    (scene.folder / "sub").symlink_to(scene.outside)
    scene.allow()
    scene.over()
    return "it wrote outside" if list(scene.outside.iterdir()) else ""


@attack(
    SUBJECT,
    "a file that becomes a link, written",
    "a name leads to a file outside by the time it is written",
)
def _file(world: World) -> Got:
    scene = _Scene(world, _write("a.txt"))
    kept = scene.outside / "kept.txt"
    kept.write_text("kept")
    scene.ask()
    (scene.folder / "a.txt").symlink_to(kept)
    scene.allow()
    scene.over()
    return "" if kept.read_text() == "kept" else "the file outside is another one"


@attack(SUBJECT, "a file that becomes a link, edited", "the same by an edit of what it says there")
def _edited(world: World) -> Got:
    scene = _Scene(world, call("edit_file", path="a.txt", old_text="kept", new_text=WRITTEN))
    kept = scene.outside / "kept.txt"
    kept.write_text("kept")
    (scene.folder / "a.txt").write_text("kept")
    scene.ask()
    (scene.folder / "a.txt").unlink()
    (scene.folder / "a.txt").symlink_to(kept)
    scene.allow()
    scene.over()
    return "" if kept.read_text() == "kept" else "the file outside is another one"


def _read(tool: str, given: dict[str, Any], world: World) -> Got:
    scene = _Scene(world, call(tool, **given))
    (scene.folder / "notes.txt").write_text("notes")
    scene.ask()
    (scene.folder / "notes.txt").unlink()
    (scene.folder / "notes.txt").symlink_to(world.directory / "env")
    scene.allow()
    return "the server's file is read" if SECRET in scene.over() else ""


for _tool, _given in (
    ("read_file", {"path": "notes.txt"}),
    ("grep", {"pattern": "SECRET", "path": "notes.txt"}),
    ("list_files", {"path": "notes.txt"}),
):
    attack(
        SUBJECT,
        f"a file that becomes a link, by {_tool}",
        "a name leads to the server's settings by the time it is read",
        quick=_tool == "read_file",
    )(partial(_read, _tool, _given))


def _swapped(read: Callable[[World, Conversation], str], world: World) -> Got:
    """A name that is a file and a link in turn, as fast as it can be changed."""
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    folder = workspace_for(conversation.uid)
    place, over = folder / "a.txt", threading.Event()
    place.write_text("mine")

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            for make in ("link", "file"):
                new = folder / f"new{number}{make}"
                if make == "link":
                    new.symlink_to(world.directory / "env")
                else:
                    new.write_text("mine")
                new.replace(place)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    texts = []
    try:
        for _time in range(40):
            texts.append(read(world, conversation))
    finally:
        over.set()
        thread.join(10)
    tried("mine" in "".join(texts), "not even the file was read")
    return "the server's file is shown" if SECRET in "".join(texts) else ""


def _by_page(world: World, conversation: Conversation) -> str:
    with world.browser(world.olga, world.home) as visitor:
        pages = ("download", "view")
        paths = [f"/c/{conversation.uid}/files/{page}/?path=a.txt" for page in pages]
        return "".join(visitor.get(path).text for path in paths)


def _by_program(world: World, conversation: Conversation) -> str:
    with world.program(world.olgas) as program:
        return (
            program.get(f"/api/files/{conversation.uid}/a.txt").text
            + program.get(
                "/api/workspace/file/a.txt", params={"conversation_id": conversation.uid}
            ).text
        )


attack(
    SUBJECT, "a link swapped under a download", "a file is a link in turn while a program reads it"
)(partial(_swapped, _by_program))
attack(SUBJECT, "a link swapped under a page", "the same while a page shows it", quick=False)(
    partial(_swapped, _by_page)
)


@attack(SUBJECT, "a link swapped under uploads", "the folder of an upload leads outside in turn")
def _under_uploads(world: World) -> Got:
    scene = _Scene(world, _write("x"))
    folder, over = scene.folder, threading.Event()

    def swap() -> None:
        while not over.is_set():
            try:
                (folder / "sub").symlink_to(scene.outside)
                (folder / "sub").unlink()
                (folder / "sub").mkdir(exist_ok=True)
                (folder / "sub").rename(folder / f"away{time.monotonic_ns()}")
            except OSError:
                continue

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    try:
        with world.program(scene.token) as program:
            for number in range(40):
                program.post(
                    "/api/workspace/upload",
                    params={"conversation_id": scene.conversation.uid, "subdir": "sub"},
                    files={"files": (f"a{number}", b"evil")},
                )
    finally:
        over.set()
        thread.join(10)
    found = [one.name for one in scene.outside.iterdir()]
    tried(list(folder.glob("*/a*")) or not found, "no upload came through")
    return f"written outside: {found}" if found else ""


# --- people, rules and places ---------------------------------------------------------------------


@attack(
    SUBJECT,
    "a requester who was removed",
    "somebody's call is allowed after she left the organisation",
)
def _removed(world: World) -> Got:
    person = world.member(world.home)
    scene = _Scene(world, _write("a.txt"), owner=person)
    scene.ask()
    own = Membership.objects.get(user=person, organisation=world.home)
    remove_member(actor=world.olga, membership=own)
    scene.allow(world.rita)
    scene.allow(person)
    scene.over(5)
    return "it ran" if (scene.folder / "a.txt").exists() else ""


@attack(
    SUBJECT, "an account that was closed", "somebody's call is allowed after her account was closed"
)
def _closed(world: World) -> Got:
    person = world.member(world.home)
    scene = _Scene(world, _write("a.txt"), owner=person)
    scene.ask()
    User.objects.filter(pk=person.pk).update(is_active=False)
    scene.allow(world.rita)
    scene.over(5)
    return "it ran" if (scene.folder / "a.txt").exists() else ""


@attack(SUBJECT, "a reviewer who is none any more", "says yes by the page she opened as one")
def _demoted(world: World) -> Got:
    reviewer = world.member(world.home, Role.REVIEWER)
    scene = _Scene(world, _write("a.txt"))
    asked = scene.ask()
    with world.browser(reviewer, world.home) as visitor:
        tried(visitor.get(f"/approvals/{asked.uid}/").status_code == 200, "she sees no question")
        Membership.objects.filter(user=reviewer, organisation=world.home).update(role=Role.MEMBER)
        visitor.form(
            f"/approvals/{asked.uid}/decide/",
            verdict="approve",
            input_hash=asked.effective_sha256,
            round=asked.round,
        )
    time.sleep(0.5)
    return "it ran" if (scene.folder / "a.txt").exists() else ""


@attack(
    SUBJECT, "plan mode switched on", "a call that waits is allowed after nothing may be changed"
)
def _planning(world: World) -> Got:
    scene = _Scene(world, _write("a.txt"))
    scene.ask()
    with world.browser(world.olga, world.home) as visitor:
        visitor.form(f"/c/{scene.conversation.uid}/feature/", feature="plan_mode", enabled="1")
    scene.conversation.refresh_from_db()
    tried(scene.conversation.features.plan_mode, "it was not switched on")
    scene.allow()
    scene.over()
    return "it ran" if (scene.folder / "a.txt").exists() else ""


@attack(
    SUBJECT,
    "an environment that was closed",
    "a command is allowed after its environment lost the network",
)
def _environment(world: World) -> Got:
    """What an environment says holds when the command runs, not when it was asked for."""
    environment = Environment.objects.create(
        name=f"Open {world.number()}",
        organisation=world.home,
        policy="process: {env_allow: [AGENTSITE_SHOWN]}",
    )
    scene = _Scene(world, call("bash", command='echo "seen:$AGENTSITE_SHOWN:" > seen'))
    Conversation.objects.filter(pk=scene.conversation.pk).update(environment=environment)
    scene.ask()
    change_environment(
        actor=world.staff,
        environment=environment,
        name=environment.name,
        description="",
        upload_limit=environment.upload_limit,
        policy="resources: {file_mb: 1}\nfilesystem_policy: {include_workdir: false}",
    )
    scene.allow()
    log = scene.over()
    tried("agent.tool_result" in log, "nothing came of it")
    return "it wrote where it may not any more" if (scene.folder / "seen").exists() else ""


@attack(
    SUBJECT,
    "an environment that opened",
    "a command that was asked for in a sandbox is allowed without one",
)
def _opened(world: World) -> Got:
    environment = Environment.objects.create(
        name=f"Closed {world.number()}", organisation=world.home
    )
    reached = scene_outside = world.directory / f"reached-{environment.pk}"
    scene = _Scene(world, call("bash", command=f"echo x > {reached}"))
    Conversation.objects.filter(pk=scene.conversation.pk).update(environment=environment)
    scene.ask()
    Environment.objects.filter(pk=environment.pk).update(backend="none")
    scene.allow()
    scene.over()
    return "it ran without a sandbox" if scene_outside.exists() else ""


@attack(
    SUBJECT,
    "one yes for many runs",
    "the same yes by three doors at once, and the run woken ten times",
)
def _once(world: World) -> Got:
    scene = _Scene(world, call("bash", command="echo ran >> count"))
    asked = scene.ask()
    event = {"type": "user.tool_confirmation", "tool_use_id": asked.call_uid, "result": "allow"}
    path = f"/v1/sessions/{scene.conversation.uid}"

    def confirm() -> None:
        world.program(scene.token).post(f"{path}/events", json={"events": [event]})

    def wake() -> None:
        for _time in range(5):
            world.program(scene.token).post(f"{path}/wake", json={})

    threads = [threading.Thread(target=one) for one in (confirm, scene.allow, confirm, wake, wake)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    log = scene.over()
    count = scene.folder / "count"
    tried(count.exists(), f"it did not run: {log[-300:]}")
    times = count.read_text().count("ran")
    return f"it ran {times} times" if times != 1 else ""


@attack(
    SUBJECT,
    "a yes for another conversation",
    "olga's yes is posted to a call of another conversation",
)
def _elsewhere(world: World) -> Got:
    first, second = _Scene(world, _write("a.txt")), _Scene(world, _write("b.txt"))
    one, other = first.ask(), second.ask()
    event = {"type": "user.tool_confirmation", "tool_use_id": other.call_uid, "result": "allow"}
    world.program(first.token).post(
        f"/v1/sessions/{first.conversation.uid}/events", json={"events": [event]}
    )
    with world.browser(world.olga, world.home) as visitor:
        visitor.form(
            f"/approvals/{other.uid}/decide/",
            verdict="approve",
            input_hash=one.effective_sha256,
            round=one.round,
        )
    time.sleep(0.5)
    ran = [scene.folder / name for scene, name in ((first, "a.txt"), (second, "b.txt"))]
    return "it ran" if any(file.exists() for file in ran) else ""


@attack(
    SUBJECT, "a yes to a call that was denied meanwhile", "no by one page, yes by another, at once"
)
def _denied(world: World) -> Got:
    scene = _Scene(world, _write("a.txt"))
    asked = scene.ask()
    world.browser(world.rita, world.home).form(f"/approvals/{asked.uid}/decide/", verdict="deny")
    asked.refresh_from_db()
    tried(asked.state == "denied", "it was not denied")
    scene.allow()
    scene.over()
    return "it ran" if (scene.folder / "a.txt").exists() else ""
