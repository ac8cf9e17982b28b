"""Attacks by texts that are dear to read: judged by how long somebody else's request waits meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from agents.models import Agent
from approvals.models import PolicyRule
from conversations.log import append
from conversations.models import Conversation
from harness.content import Text
from harness.events import AgentMessage, AgentToolUse
from harness.history import Entry
from providers.scripted import call, reply
from reading.commandwords import LONGEST
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.waits import Waits, require_that_waiting_is_seen
from tests.attack_web.world import World
from tests.hostile import (
    CODE,
    COMMANDS,
    DEAR_SCHEMAS,
    DEAR_VALUES,
    EXPRESSIONS,
    JSON,
    LOOKS_LIKE_SECRETS,
    MARKDOWN,
    PATHS,
    UNSOUND_SCHEMAS,
)
from tests.pictures import coded, picture
from tools_app.workspace import workspace_for

SUBJECT = "stalls"
TRIES = 2
"""A machine that is busy with something else is nobody's attack."""


def _waited(world: World, act: Callable[[], object]) -> Got:
    require_that_waiting_is_seen(world)
    got = ""
    for _try in range(TRIES):
        with Waits(world) as waits:
            act()
        if not (got := waits.got):
            break
    return got


def _mine(world: World, **config: Any) -> Conversation:
    agent = world.agent_of(world.home, world.olga, **config)
    return world.converse(world.olga, organisation=world.home, agent=agent)


# --- schemas --------------------------------------------------------------------------------------


def _tool(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "look_up", "description": "Looks it up.", "input_schema": schema}


def _dear_schema(schema: str, value: str, world: World) -> Got:
    """A model calls a custom tool whose schema is dear, with the value that makes it so."""
    conversation = _mine(world, tools=[{"tool": "*"}], custom_tools=[_tool(DEAR_SCHEMAS[schema])])
    given, idles = DEAR_VALUES[value], [0]

    def act() -> None:
        world.turn(world.olgas, conversation, reply(call("look_up", **given)), reply("Done."))
        idles[0] += 1
        world.until(
            lambda: (
                [one["type"] for one in world.log(conversation)].count("session.status_idle")
                >= idles[0]
            ),
            "the conversation never rested",
        )

    got = _waited(world, act)
    types = {one["type"] for one in world.log(conversation)}
    tried("agent.custom_tool_use" in types, "the call did not come")
    return got


for _schema, _value, _quick in (
    ("(a+)+", "a text", True),
    ("twice at every level", "deep", True),
    ("(a|aa)+ for names", "names", False),
    ("many alternatives", "a text", False),
    ("unique items", "numbers of one hash", False),
    ("any of nine hundred", "objects", False),
    ("all of nine hundred", "numbers", False),
    ("what is left over", "numbers", False),
):
    attack(
        SUBJECT,
        f"a call checked against {_schema}",
        "a custom tool's schema that would be checked for minutes",
        quick=_quick,
    )(partial(_dear_schema, _schema, _value))


def _as_sent(schema: dict[str, Any]) -> str:
    try:
        return json.dumps(_tool(schema))
    except (RecursionError, ValueError):
        return ""


def _unsound(names: tuple[str, ...], world: World) -> Got:
    """An agent is made with each; what is taken, a run would have to check values against."""
    taken = []

    def act() -> None:
        with world.program(world.olgas) as program:
            for name in names:
                tool = _as_sent(UNSOUND_SCHEMAS[name])
                tools = f'"tools":[{{"type":"custom",{tool[1:]}]'
                sent = f'{{"name":"Unsound","model":"claude-sonnet-5-5",{tools}}}'
                made = program.post(
                    "/v1/agents", content=sent, headers={"Content-Type": "application/json"}
                )
                tried(made.status_code < 500, f"{name}: {made.status_code}")
                if made.status_code < 300:
                    taken.append(name)

    got = _waited(world, act)
    tried(not (taken and Agent.objects.filter(name="Unsound").count() == 0), "nothing was made")
    return got or (f"taken: {', '.join(taken)}" if taken else "")


_BY_THEMSELVES = (
    *("itself", "itself by a combination", "each other", "doubled fourteen times"),
    *("a long chain", "itself, where no schema is looked for", "itself, written with percents"),
)
attack(
    SUBJECT, "schemas that lead to themselves", "$ref:#, cycles and doublings in a tool's schema"
)(partial(_unsound, _BY_THEMSELVES))
attack(
    SUBJECT,
    "schemas that no engine reads in time",
    "back-references, look-aheads and schemas of other servers in a tool's schema",
)(
    partial(
        _unsound,
        tuple(
            name
            for name, schema in UNSOUND_SCHEMAS.items()
            if name not in _BY_THEMSELVES and _as_sent(schema)
        ),
    )
)


# --- rules ----------------------------------------------------------------------------------------


def _judged(world: World, conversation: Conversation, tool: str, given: dict[str, Any]) -> None:
    query = {"conversation": conversation.uid, "tool": tool, "input": json.dumps(given)}
    with world.browser(world.olga, world.home) as visitor:
        page = visitor.get("/approvals/simulate/", params=query).text
    tried("It would" in page, "the page says nothing")


def _path_rule(name: str, world: World) -> Got:
    glob, path = PATHS[name]
    rule = {
        "tool": "write_file",
        "permission": "always_deny",
        "when": {"argument": "path", "path": glob[:1_000]},
    }
    conversation = _mine(world, tools=[{"tool": "*"}, rule])
    given = {"path": path[:4_000], "content": "x"}

    def act() -> None:
        for _time in range(3):
            _judged(world, conversation, "write_file", given)

    return _waited(world, act)


for _name in PATHS:
    attack(
        SUBJECT,
        f"a path rule with {_name}",
        "a rule's glob and a call's path that would be compared for minutes",
        quick=_name == "folders of any depth",
    )(partial(_path_rule, _name))


def _commands(world: World) -> Got:
    rule = {
        "tool": "bash",
        "permission": "always_deny",
        "when": {"argument": "command", "prefix": "git push"},
    }
    conversation = _mine(world, tools=[{"tool": "*"}, rule])

    def act() -> None:
        for text in COMMANDS.values():
            # As long as an address may be: the page is asked by GET.
            _judged(world, conversation, "bash", {"command": (text * 1_000)[:1_000]})

    return _waited(world, act)


attack(
    SUBJECT, "commands that are hard to read", "quotes in quotes at the page that judges a call"
)(_commands)


def _called(world: World, name: str, given: dict[str, Any], files: dict[str, str]) -> Got:
    """A model calls a tool of ours in a run."""
    conversation = _mine(world, tools=[{"tool": "*"}])
    for path, text in files.items():
        (workspace_for(conversation.uid) / path).write_text(text)
    idles = [0]

    def act() -> None:
        world.turn(world.olgas, conversation, reply(call(name, **given)), reply("Done."))
        idles[0] += 1
        log = world.rested(conversation, idles[0])
        tried(any(one["type"] == "agent.tool_use" for one in log), "the call did not come")

    return _waited(world, act)


attack(SUBJECT, "a long command of a model", "as long as a command may be, in quotes of quotes")(
    lambda world: _called(
        world, "bash", {"command": (COMMANDS["nested in both quotes"] * LONGEST)[:LONGEST]}, {}
    )
)
for _name, (_expression, _text) in EXPRESSIONS.items():
    attack(
        SUBJECT,
        f"a search for {_name}",
        "a model searches a file for an expression that never comes to an end",
        quick=False,
    )(partial(_called, name="grep", given={"pattern": _expression}, files={"a.txt": _text * 20}))
attack(SUBJECT, "files by a glob", "a model looks for files by a glob of many stars", quick=False)(
    partial(
        _called,
        name="glob",
        given={"pattern": "**/" * 40 + "*a*a*a*a*a*b"},
        files={"a" * 200: "x"},
    )
)
attack(SUBJECT, "a calculation", "a model asks for a number that fills the memory")(
    partial(_called, name="calculator", given={"expression": "9**9**9**9"}, files={})
)
attack(SUBJECT, "a file before and after", "two files whose difference is dear", quick=False)(
    partial(
        _called,
        name="write_file",
        given={
            "path": "lines",
            "content": "".join(f"{n * 104_729 % 1_999}\n" for n in range(1_999)),
        },
        files={"lines": "".join(f"{n * 7919 % 1_999}\n" for n in range(1_999))},
    )
)

# --- what is shown --------------------------------------------------------------------------------


def _page(text: str, world: World, *, of_tool: bool = False) -> Got:
    conversation = _mine(world)
    said: Any = AgentMessage(content=(Text(text=text),))
    if of_tool:
        said = AgentToolUse(name="bash", input={"command": text}, evaluated_permission="allow")
    append(conversation.pk, [Entry.of(said)], actor=world.olga)

    def act() -> None:
        with world.browser(world.olga, world.home) as visitor:
            answer = visitor.get(f"/c/{conversation.uid}/")
            tried(answer.status_code == 200, f"{answer.status_code}")

    return _waited(world, act)


_QUICK_MARKDOWN = ("lines behind many quotes", "brackets")
for _name in MARKDOWN:
    attack(
        SUBJECT,
        f"Markdown: {_name}",
        "an agent's words that are dear to show",
        quick=_name in _QUICK_MARKDOWN,
    )(partial(_page, MARKDOWN[_name]))
attack(SUBJECT, "a formula in brackets", "an agent's formula, nine hundred levels deep")(
    partial(_page, "$$" + "{" * 900 + "x" + "}" * 900 + "$$")
)


def _code(name: str, world: World) -> Got:
    language, text = CODE[name]
    ending = {"python": "py", "perl": "pl", "markdown": "md", "javascript": "js"}.get(
        language, language
    )
    conversation = _mine(world)
    (workspace_for(conversation.uid) / f"a.{ending}").write_text(text)

    def act() -> None:
        with world.browser(world.olga, world.home) as visitor:
            answer = visitor.get(
                f"/c/{conversation.uid}/files/view/", params={"path": f"a.{ending}"}
            )
            tried(answer.status_code == 200, f"{answer.status_code}")

    return _waited(world, act)


for _name in (
    *("slashes in Perl", "quotes in Python", "heredocs in PHP", "slashes in JavaScript"),
    *("a line of letters in Markdown", "dollars in SQL", "open comments"),
):
    attack(
        SUBJECT,
        f"a file with {_name}",
        "a file of thirty kilobytes that is coloured",
        quick=_name == "slashes in Perl",
    )(partial(_code, _name))


def _redacted(name: str, world: World) -> Got:
    """What a model was sent is looked through for secrets before a program sees it."""
    conversation = _mine(world, features={"tracing": True})
    text = LOOKS_LIKE_SECRETS[name]
    opening = f"Look through {world.number()} {text}"
    world.service.expect(opening, reply("Done."))
    body = {"events": [{"type": "user.message", "content": [{"type": "text", "text": opening}]}]}
    sent = world.program(world.olgas).post(f"/v1/sessions/{conversation.uid}/events", json=body)
    tried(sent.status_code < 300, sent.text[:200])
    world.rested(conversation)
    heard = []

    def act() -> None:
        with world.line(f"/api/chat/{conversation.uid}/ws?after=0", token=world.olgas) as line:
            heard.append(line.listen(10, until="llm_response"))

    got = _waited(world, act)
    tried("llm_request" in heard[0], "what was sent is not shown")
    return got


for _name in LOOKS_LIKE_SECRETS:
    attack(
        SUBJECT,
        f"secrets among {_name}",
        "a text in which secrets are looked for without an end",
        quick=_name == "a-a-a",
    )(partial(_redacted, _name))

# --- what is sent ---------------------------------------------------------------------------------


def _bodies(world: World) -> Got:
    def act() -> None:
        with world.program(world.olgas) as program:
            for text in JSON.values():
                for path in ("/v1/sessions", "/api/chat", "/agui"):
                    program.post(path, content=text, headers={"Content-Type": "application/json"})

    return _waited(world, act)


attack(
    SUBJECT, "bodies that are hard to read", "JSON of depths and digits at the doors of programs"
)(_bodies)


def _frames(world: World) -> Got:
    conversation = _mine(world)

    def act() -> None:
        for text in JSON.values():
            with world.line(f"/api/chat/{conversation.uid}/ws", token=world.olgas) as line:
                line.send(text)
                line.listen(0.2, until="error")

    return _waited(world, act)


attack(SUBJECT, "frames that are hard to read", "the same on a socket", quick=False)(_frames)


def _form(world: World) -> Got:
    """A stranger's sign-in with the longest form that is taken before one is known."""

    def act() -> None:
        for form in (
            "&".join(f"a{n}=1" for n in range(8_000)),
            "login=" + "%61" * 20_000,
            "login=x&password=" + "p" * 60_000,
            "login=" + "\u0130\ufdfa" * 4_000,
        ):
            with world.browser(source=world.source()) as visitor:
                visitor.post(
                    "/accounts/login/",
                    content=form.encode(),
                    headers={"Content-Type": "application/x-www-form-urlencoded"},
                )

    return _waited(world, act)


attack(SUBJECT, "a sign-in of sixty kilobytes", "thousands of fields, long names and passwords")(
    _form
)


def _parts(world: World) -> Got:
    """A form of thousands of tiny files."""
    conversation = _mine(world)
    mark = "frontier"
    part = f'--{mark}\r\nContent-Disposition: form-data; name="files"; filename="%d"\r\n\r\nx\r\n'
    body = "".join(part % number for number in range(20_000)) + f"--{mark}--\r\n"

    def act() -> None:
        with world.program(world.olgas) as program:
            program.post(
                "/api/workspace/upload",
                params={"conversation_id": conversation.uid},
                content=body.encode(),
                headers={"Content-Type": f"multipart/form-data; boundary={mark}"},
            )

    got = _waited(world, act)
    kept = len(list(workspace_for(conversation.uid).iterdir()))
    return got or (f"{kept} files were kept" if kept > 5_000 else "")


attack(SUBJECT, "a form of twenty thousand files", "tiny parts in one upload")(_parts)


def _search(world: World) -> Got:
    def act() -> None:
        with world.browser(world.olga, world.home) as visitor:
            for text in ("%" * 1_000, "_%" * 500, '"' * 900, "a OR " * 300, "*" * 900):
                for name in ("q", "search"):
                    visitor.get("/", params={name: text})

    return _waited(world, act)


attack(SUBJECT, "a search of signs", "percents, quotes and stars in the search", quick=False)(
    _search
)


def _pictures(world: World) -> Got:
    """More messages at once than there are threads for requests, each of them seconds to decode."""
    conversation, vast = _mine(world), picture(side=8_000)
    statuses: list[int] = []

    def send(number: int) -> None:
        content = [
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    # What follows the picture's end makes it another file.
                    "data": coded(vast + f"{number} {each}".encode()),
                },
            }
            for each in range(3)
        ]
        body = {"events": [{"type": "user.message", "content": content}]}
        with world.program(world.olgas) as program:
            path = f"/v1/sessions/{conversation.uid}/events"
            statuses.append(program.post(path, json=body).status_code)

    def act() -> None:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    got = _waited(world, act)
    tried(400 in statuses, f"none was opened: {sorted(set(statuses))}")
    return got


attack(
    SUBJECT,
    "pictures that are dear to decode",
    "forty messages of vast pictures at once",
    quick=False,
)(_pictures)


@control(SUBJECT, "a rule with an ordinary glob", "decides a call by its path at once")
def _ordinary(world: World) -> Got:
    rule = {
        "tool": "write_file",
        "permission": "always_deny",
        "when": {"argument": "path", "path": "**/secrets/**"},
    }
    conversation = _mine(world, tools=[{"tool": "*"}, rule])
    found = []
    for path in ("a/secrets/b.txt", "a/notes/b.txt"):
        query = {
            "conversation": conversation.uid,
            "tool": "write_file",
            "input": json.dumps({"path": path, "content": "x"}),
        }
        with world.browser(world.olga, world.home) as visitor:
            found.append(visitor.get("/approvals/simulate/", params=query).text)
    tried(not PolicyRule.objects.filter(conversation=conversation).exists(), "another rule holds")
    denied, allowed = "It would be denied" in found[0], "It would run" in found[1]
    return "" if denied and allowed else f"denied: {denied}, allowed: {allowed}"


@control(SUBJECT, "a call that fits its schema", "is handed out to the program")
def _fitting(world: World) -> Got:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    conversation = _mine(world, tools=[{"tool": "*"}], custom_tools=[_tool(schema)])
    world.turn(world.olgas, conversation, reply(call("look_up", a="aaaa")), reply("Done."))
    log = world.rested(conversation)
    waits = any(one["type"] == "agent.custom_tool_use" for one in log)
    return "" if waits and not any(one["type"] == "agent.tool_result" for one in log) else "refused"
