"""The tree of conversations that is killed: a lead with two subagents that it waits for and one in the
background, and a teammate to which it writes and that writes to it. One subagent asks for one of its own,
which there is no room for, one asks a person and writes a file; what must hold at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conversations.judging import history_of
from conversations.models import Conversation, Event, Run
from harness.calls import UNKNOWN
from harness.content import Text, text_of
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    BackgroundFinished,
    InputTaken,
    SpanModelRequestEnd,
    UserMessage,
)
from harness.messages import ModelRequest, ToolAnswer
from providers.scripted import Answer, Call, call, reply
from subagents.models import Subagent
from teams_app.members import Status
from teams_app.models import Mail, Teammate

FIRST, LAST = "Have it done.", "All of it is done."
WAITED_FOR, BESIDE = ("alpha", "beta"), "gamma"
FILE, CONTENT = "beta.txt", "beta\n"
CHILDREN = (*WAITED_FOR, BESIDE)
MATE = "delta"
UP, DOWN = "It goes well.", "Tell me how it goes."
"""What teammate and lead write to each other."""


def answer(request: ModelRequest) -> Answer:
    parts = [part for message in request.messages for part in message.parts]
    answers = [part for part in parts if isinstance(part, ToolAnswer)]
    answered = len(answers)
    asked = next((part.text for part in parts if isinstance(part, Text)), "")
    who = next((name for name in CHILDREN if asked.startswith(name)), "")
    who = MATE if f"You are {MATE}" in asked else who
    joins = call("spawn_teammate", name=MATE, prompt="Wait for a word.")
    if not who and any(is_unknown(part) for part in answers[:4]):
        # Whether it has joined is not known: tried again it does, or its name is taken.
        if answered == 4:
            return reply(joins)
        answered -= 1
    steps: dict[tuple[str, int], Answer] = {
        ("", 0): reply(*(_ask(name) for name in CHILDREN), joins),
        ("", 4): reply(call("send_message", to=MATE, content=DOWN)),
        (MATE, 0): reply(call("send_message", to="lead", content=UP)),
        ("alpha", 0): reply(_ask("beta")),
        ("beta", 0): reply(call("count")),
        ("beta", 1): reply(call("write_file", path=FILE, content=CONTENT)),
    }
    return steps.get((who, answered), reply(f"{who} is done." if who else LAST))


def is_unknown(part: ToolAnswer) -> bool:
    return text_of(part.content).startswith(UNKNOWN[:40])


def _ask(name: str) -> Call:
    return call(
        "subagent", description=f"Do {name}", prompt=name, background=name == BESIDE, agent="code"
    )


def family(root: int) -> list[Conversation]:
    """The lead, then whoever works for it."""
    lead = Conversation.objects.get(pk=root)
    return [lead, *Conversation.objects.filter(parent=lead).order_by("pk")]


def is_begun(root: int) -> bool:
    return any(
        isinstance(row.value, UserMessage) for row in Event.objects.filter(conversation=root)
    )


def is_done(root: int) -> bool:
    """Nobody works, or is owed anything, and the lead has heard of each rest. Conversations are read last:
    what one of the others had told them by then stands in them."""
    rows = Subagent.objects.filter(root=root)
    mates = Teammate.objects.select_related("team", "conversation")
    nothing_is_owed = (
        rows.count() == len(CHILDREN)
        and [each.told for each in mates] == [Status.IDLE]
        and not any(each.conversation.news_seq > each.rest_seq for each in mates)
        and not Mail.objects.unread().exists()
        and not rows.filter(told_at=None).exists()
        and not Run.objects.filter(state=Run.State.RUNNING).exists()
    )
    everybody = family(root)
    return (
        nothing_is_owed
        and not any(each.owes_run or each.queued_count or each.is_running for each in everybody)
        and everybody[0].stop_reason == "end_turn"
        and LAST in _said(everybody[0])
    )


def problems_of(conversation_id: int, effects: list[str], workspaces: Path) -> list[str]:
    everybody = family(conversation_id)
    asked = set(Subagent.objects.values_list("child", flat=True))
    return [
        *_of_the_lead(everybody[0]),
        *_of_the_children([each for each in everybody if each.pk in asked]),
        *_of_the_mailboxes(),
        *(problem for each in everybody for problem in _of_a_log(each)),
        *_of_what_they_did(everybody, effects, workspaces),
    ]


def _of_the_lead(lead: Conversation) -> Iterator[str]:
    rows = list(Event.objects.filter(conversation=lead).order_by("seq"))
    told = Counter(row.type for row in rows)
    again = any(
        isinstance(v := row.value, AgentToolResult) and v.outcome == "unknown" for row in rows
    )
    wanted = {
        "agent.tool_use": 5 + again,
        "agent.tool_result": 5 + again,
        "session.thread_created": 3,
        "x.subagent_started": 3,
        "x.subagent_ended": 3,
        "x.background_finished": 1,
    }
    for kind, count in wanted.items():
        if told[kind] != count:
            yield f"{'repeated' if told[kind] > count else 'lost'}: {told[kind]} of {kind}"
    if history_of(lead).turn.reserved:
        yield "lost: tokens are held for somebody who has ended"


def _of_the_children(children: list[Conversation]) -> Iterator[str]:
    if len(children) != len(CHILDREN):
        kind = "repeated" if len(children) > len(CHILDREN) else "lost"
        yield f"{kind}: there are {len(children)} conversations below"
    said = [words for child in children for words in _said(child)]
    for name in CHILDREN:
        if (count := said.count(f"{name} is done.")) != 1:
            yield f"{'repeated' if count else 'lost'}: {name} said {count} times that it is done"
    states = list(Subagent.objects.filter(child__in=children).values_list("state", flat=True))
    if states != ["completed"] * len(CHILDREN):
        yield f"lost: they ended as {states}"


def _of_the_mailboxes() -> Iterator[str]:
    """One word each way, and each rest of the teammate's told or written of once."""
    mates = [each.name for each in Teammate.objects.all()]
    if mates != [MATE]:
        yield f"{'repeated' if mates else 'lost'}: the team has {mates}"
    written = Counter(
        mail.text for mail in Mail.objects.exclude(kind=Mail.Kind.NOTICE) if mail.is_read
    )
    for text in (UP, DOWN):
        if written[text] != 1:
            kind = "repeated" if written[text] else "lost"
            yield f"{kind}: “{text}” is {written[text]} times in a mailbox, read"


def _of_a_log(conversation: Conversation) -> Iterator[str]:
    """It has no gaps, what waited was taken once, and it rests."""
    rows = list(Event.objects.filter(conversation=conversation).order_by("seq"))
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        yield "lost: the sequence has gaps"
    taken = Counter(
        uid for row in rows if isinstance(v := row.value, InputTaken) for uid in v.event_ids
    )
    for row in rows:
        if isinstance(row.value, UserMessage | BackgroundFinished) and taken[row.uid] != 1:
            kind = "repeated" if taken[row.uid] else "lost"
            yield f"{kind}: {row.type} was taken {taken[row.uid]} times"
    if conversation.status != Conversation.Status.IDLE:
        yield f"lost: a conversation is {conversation.status} for ever"


def _of_what_they_did(
    everybody: list[Conversation], effects: list[str], workspaces: Path
) -> Iterator[str]:
    if len(effects) != 1:
        yield f"{'repeated' if effects else 'lost'}: the effect happened {len(effects)} times"
    values = {
        one.uid: [row.value for row in Event.objects.filter(conversation=one)] for one in everybody
    }
    writers = [
        uid
        for uid, said in values.items()
        if any(isinstance(v, AgentToolUse) and v.name == "write_file" for v in said)
    ]
    # Only these two count: whoever begins after the file came back has it in her copy as well.
    places = [workspaces / uid / FILE for uid in (everybody[0].uid, *writers)]
    written = [place.read_text() if place.exists() else None for place in places]
    unknown = any(
        isinstance(v, AgentToolResult) and v.outcome == "unknown"
        for said in values.values()
        for v in said
    )
    if not writers or (written != [CONTENT] * 2 and not unknown):
        yield f"lost: the file of {writers} holds {written}, here and below"


def _said(conversation: Conversation) -> list[str]:
    """What its agent said in replies that came to their end."""
    values = [row.value for row in Event.objects.filter(conversation=conversation).order_by("seq")]
    lost = {
        v.model_request_start_id
        for v in values
        if isinstance(v, SpanModelRequestEnd) and v.end == "lost"
    }
    return [
        text_of(v.content)
        for v in values
        if isinstance(v, AgentMessage) and v.model_request_id not in lost
    ]
