"""Units: the elements of a transcript, each made of all events with one subject.

Pure over rows: the same rows give the same units, so that what is drawn live equals what is drawn
after a reload. Which rows to read is `frames`' part, what a unit looks like the templates'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from django.urls import reverse
from django.utils.formats import number_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.overridden import sentences_of
from conversations.models import Event
from harness.content import Block, Text, UploadedFile, text_of
from harness.events import (
    TYPES,
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AppEvent,
    BackgroundFinished,
    BudgetReached,
    CompactionRequested,
    CompactionSkipped,
    ContentRedacted,
    ContentSetAside,
    FeedbackGiven,
    McpElsewhere,
    MessageEdited,
    MessageSteered,
    MessageWithdrawn,
    ModelUsage,
    OutcomeCheckRan,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    RetryRequested,
    Rewound,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusTerminated,
    SessionThreadCreated,
    SessionUpdated,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    ToolUse,
    UserDefineOutcome,
    UserMessage,
    WakeDue,
    WakeRequested,
)
from harness.frontends import documents_of
from reading.unseen import visible
from rendering.markdown import to_html

from . import failures
from .calls import Card, card_of
from .content import Moment, duration, pieces_of
from .judged import result_words, shown_checks, shown_criteria
from .network import network_of
from .touched import NOTHING, Touched

MOST_ELSEWHERE = 2_000
"""Characters that are shown of what a service was given or answered; the log has the whole."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file that came with a message, and where its page is."""

    name: str
    size: int
    address: str

    @classmethod
    def of(cls, file: UploadedFile, row: Event) -> Uploaded:
        address = reverse("conversations:file", args=[row.conversation.uid])
        name = visible(file.path.rpartition("/")[2])
        return cls(name, file.size, f"{address}?{urlencode({'path': file.path})}")


Kind = Literal[
    "message", "text", "thinking", "tool", "plan", "questions", "error", "rest", "notice"
]
Place = Literal["log", "queue"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One element. `key` is its subject, `members` the ids of the text blocks it is made of.

    Units of a place stand by `order`; those with the same one, in the order they are listed.
    """

    key: str
    kind: Kind
    place: Place
    order: int
    members: tuple[str, ...]
    at: Moment
    context: Mapping[str, Any] = field(repr=False)
    state: str = ""

    @property
    def template(self) -> str:
        return f"chat/units/{self.kind}.html"


FIRST_TYPES = frozenset(
    {
        "user.message",
        "user.define_outcome",
        "agent.message",
        "agent.thinking",
        "agent.tool_use",
        "agent.mcp_tool_use",
        "agent.custom_tool_use",
        "x.mcp_elsewhere",
        "agent.thread_context_compacted",
        "x.compaction_requested",
        "x.compaction_skipped",
        "session.status_idle",
        "session.status_rescheduled",
        "session.status_terminated",
        "session.error",
        "session.updated",
        "session.thread_created",
        "span.outcome_evaluation_start",
        "x.retry_requested",
        "x.rewound",
        "x.wake_requested",
        "x.wake_due",
        "x.background_finished",
    }
)
"""Events that may begin a unit; all others but those of apps only add to one, or to none."""


def may_begin(event_type: str) -> bool:
    return event_type in FIRST_TYPES or event_type not in TYPES


def units_of(
    rows: Iterable[Event],
    *,
    taken: Mapping[str, int],
    places: Mapping[str, int] | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    touched: Mapping[str, Touched] | None = None,
) -> list[Unit]:
    """The units of `rows`, in order; `more` is told of those with these keys, and `touched` of these calls.

    `rows` must hold every event about each subject; a subject whose first event is missing makes no
    unit. `taken` tells at which seq a message entered the dialogue, in the order they did; `places`, where
    it waits, as far as somebody ordered that.
    """
    subjects: dict[str, list[Event]] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        subjects.setdefault(row.subject, []).append(row)
    turns = {uid: turn for turn, uid in enumerate(taken)}
    units = [
        unit
        for subject, about in subjects.items()
        if about[0].uid == subject
        and (unit := _unit(about, taken, places or {}, touched or {})) is not None
    ]
    if more:
        units = [
            replace(unit, context={**unit.context, **told})
            if (told := more.get(unit.key))
            else unit
            for unit in units
        ]
    return sorted(units, key=lambda unit: (unit.order, turns.get(unit.key, 0)))


def _unit(
    rows: Sequence[Event],
    taken: Mapping[str, int],
    places: Mapping[str, int],
    touched: Mapping[str, Touched],
) -> Unit | None:
    value = rows[0].value
    match value:
        case UserMessage():
            return _message(value, rows, taken, places)
        case AgentMessage():
            return _text(rows)
        case AgentThinking():
            return _thinking(value, rows)
        case _ if isinstance(value, ToolUse):
            return _call(value, rows, touched.get(rows[0].uid, NOTHING))
        case _:
            return _remark(value, rows)


def _made(
    rows: Sequence[Event],
    kind: Kind,
    *,
    members: tuple[str, ...] = (),
    state: str = "",
    **context: Any,
) -> Unit:
    first = rows[0]
    at = Moment.of(first.created_at)
    return Unit(first.uid, kind, "log", first.seq, members, at, context, state)


# --- what people and the agent say ----------------------------------------------------------------


def _message(
    value: UserMessage,
    rows: Sequence[Event],
    taken: Mapping[str, int],
    places: Mapping[str, int],
) -> Unit | None:
    first = rows[0]
    queued = first.uid not in taken
    content: tuple[Block, ...] = (*value.content, *documents_of(value.front_end))
    edited, steered, set_aside, removed = False, False, False, False
    for row in rows[1:]:
        match row.value:
            case MessageWithdrawn():
                return None
            case MessageEdited(content=content):
                edited = True
            case MessageSteered():
                steered = True
            case ContentSetAside():
                set_aside = True
            case ContentRedacted():
                removed = True
            case _:
                pass
    source = "" if removed else text_of(content)
    return Unit(
        first.uid,
        "message",
        "queue" if queued else "log",
        taken.get(first.uid, places.get(first.uid, first.seq)),
        (first.uid,),
        Moment.of(first.created_at),
        {
            "author": _("Another agent") if value.by_agent else _name(first),
            "pieces": () if removed else pieces_of(content, in_full=True),
            "source": source,
            "by_person": not value.by_agent,
            "removed": removed,
            "files": [Uploaded.of(file, first) for file in value.files],
            "queued": queued,
            "edited": edited,
            "steered": steered,
            "set_aside": set_aside,
            # An edit is text alone: it must not take a picture away.
            "editable": all(isinstance(block, Text) for block in content),
        },
        "queued" if queued else "aside" if set_aside else "",
    )


def _text(rows: Sequence[Event]) -> Unit | None:
    pieces = [(row.uid, row.value) for row in rows]
    said = [(uid, piece) for uid, piece in pieces if isinstance(piece, AgentMessage)]
    source = "".join(block.text for _uid, piece in said for block in piece.content)
    if not source.strip():
        return None
    removed = any(isinstance(piece, ContentRedacted) for _uid, piece in pieces)
    return _made(
        rows,
        "text",
        members=tuple(uid for uid, _piece in said),
        source="" if removed else source,
        html="" if removed else to_html(source, key=rows[0].uid),
        removed=removed,
        interrupted=said[-1][1].interrupted,
        feedback=next(
            (value for _uid, value in reversed(pieces) if isinstance(value, FeedbackGiven)), None
        ),
    )


def _thinking(value: AgentThinking, rows: Sequence[Event]) -> Unit | None:
    if not value.thinking.strip() and not value.redacted_data:
        return None
    return _made(
        rows,
        "thinking",
        members=(rows[0].uid,),
        html=to_html(value.thinking) if value.thinking.strip() else "",
        interrupted=value.interrupted,
    )


def _call(value: ToolUse, rows: Sequence[Event], touched: Touched) -> Unit:
    card: Card = card_of(value, rows, touched)
    kind: Kind = "plan" if card.plan is not None else "questions" if card.questions else "tool"
    return _made(rows, kind, state=card.state, card=card)


# --- what happened besides ------------------------------------------------------------------------


def _remark(value: object, rows: Sequence[Event]) -> Unit | None:
    if isinstance(value, AppEvent):
        words = value.remark()
        return _notice(rows, words, more=value.more()) if words else None
    maker = _REMARKS.get(type(value))
    return maker(value, rows) if maker else None


def _elsewhere(value: McpElsewhere, rows: Sequence[Event]) -> Unit:
    """A call that ran at the model's service, with what came of it: no card of ours, for nothing of it was
    judged or carried out here."""
    names = {"server": value.server, "tool": str(value.block.get("name", ""))}
    if value.kind == "listing":
        return _notice(rows, _("The model’s service asked “%(server)s” what tools it has.") % names)
    if not value.block:
        return _notice(rows, _("Executed elsewhere: “%(server)s”, by the model’s service.") % names)
    words = [_("Executed elsewhere: %(tool)s of “%(server)s”, by the model’s service.") % names]
    given = json.dumps(value.block.get("input"), ensure_ascii=False)
    shown = [_("It was given: %(input)s") % {"input": _clipped(given)}]
    results = [row.value for row in rows[1:] if isinstance(row.value, McpElsewhere)]
    for told in results:
        if told.block.get("is_error") is True:
            words.append(_("It failed."))
        answer = _clipped(_words_of(told.block.get("content")))
        shown.append(_("It answered: %(said)s") % {"said": answer})
    if not results:
        words.append(_("What came of it is not known."))
    about = pieces_of((Text(text="\n\n".join(shown)),))
    return _notice(rows, " ".join(words), label=_("What was sent and answered"), pieces=about)


def _words_of(content: object) -> str:
    """Of a result, as a service writes it: a text, or blocks of text."""
    if isinstance(content, list):
        texts = (block.get("text") for block in content if isinstance(block, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_ELSEWHERE else f"{text[:MOST_ELSEWHERE]}…"


def _error(value: SessionError, rows: Sequence[Event]) -> Unit | None:
    """One that ended the turn; one that did not is told with the wait that it led to, in passing."""
    if value.error.retry_status == "retrying":
        words = _("The model could not answer: %(reason)s") % {
            "reason": failures.in_words(value.error.message)
        }
        if value.error.attempts > 1:
            tried = _("Tried %(count)d times.") % {"count": value.error.attempts}
            words = f"{words} {tried}"
        return _notice(rows, words)
    return _made(rows, "error", error=value.error)


def _waiting(value: SessionStatusRescheduled, rows: Sequence[Event]) -> Unit:
    """A wait until a request is made again. How long it still is, the page counts."""
    due = rows[0].created_at + timedelta(seconds=value.delay_seconds)
    words = _("Trying again at %(time)s.") % {"time": Moment.of(due).clock}
    return _notice(rows, words, due=due.isoformat())


def _rest(value: SessionStatusIdle, rows: Sequence[Event]) -> Unit | None:
    """Only a rest that a reader would wonder about: an error before it has said its own words, and a
    call that waits asks for itself."""
    details = value.stop_details
    state, words, budgets = "noted", "", ""
    match value.stop_reason:
        case _ if value.interrupted:
            state, words = "stopped", _("Stopped.")
        case BudgetReached():
            state, words = "limit", _("Stopped at a limit.")
            budgets = reverse("spending:budget", args=[rows[0].conversation.uid])
        case Refusal():
            state, words = "refusal", _("The model declined to answer.")
        case RetriesExhausted() | RequiresAction():
            return None
        case _ if details is None:
            return None
    return _made(
        rows,
        "rest",
        state=state,
        words=words,
        details=details,
        budgets=budgets,
        can_go_on=state == "limit",
    )


def _notice(rows: Sequence[Event], words: str, **more: Any) -> Unit:
    return _made(rows, "notice", words=words, **more)


def _ended(value: SessionStatusTerminated, rows: Sequence[Event]) -> Unit:
    return _notice(rows, _("This conversation has ended."))


def _compacted(value: AgentThreadContextCompacted, rows: Sequence[Event]) -> Unit:
    if value.fallback:
        words = _("Earlier messages no longer fit and could not be summarised for the agent.")
    elif value.messages:
        words = ngettext(
            "%(count)d earlier message was summarised for the agent.",
            "%(count)d earlier messages were summarised for the agent.",
            value.messages,
        ) % {"count": value.messages}
    elif value.provider:
        words = _("Earlier messages were summarised by the model’s service.")
    else:
        words = _("Earlier messages were summarised for the agent.")
    kept = _("The log above keeps all of them.")
    focus = _("It dwells on: %(focus)s.") % {"focus": value.focus} if value.focus else ""
    cost = ""
    if value.usage is not None:
        cost = _("It took %(input)s tokens of input and %(output)s of output.") % {
            "input": number_format(_prompt(value.usage), force_grouping=True),
            "output": number_format(value.usage.output_tokens, force_grouping=True),
        }
    return _notice(
        rows,
        " ".join(part for part in (words, kept, focus, cost) if part),
        label=_("The summary"),
        html="" if value.fallback else to_html(value.summary),
    )


def _prompt(usage: ModelUsage) -> int:
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def _asked_to_compact(value: CompactionRequested, rows: Sequence[Event]) -> Unit | None:
    if value.by_agent:
        return None
    words = _("Older messages are to be summarised.")
    if value.focus:
        words = _("Older messages are to be summarised, above all: %(focus)s.") % {
            "focus": visible(value.focus)
        }
    return _notice(rows, words, by=_name(rows[0]) if rows[0].actor else "")


def _not_compacted(value: CompactionSkipped, rows: Sequence[Event]) -> Unit:
    words = {
        "too_short": _("There is too little to summarise yet."),
        "failed": _("Older messages could not be summarised; the agent still has them."),
        "stopped": _("Summarising was stopped; the agent still has older messages."),
    }[value.reason]
    return _notice(rows, f"{words} {visible(value.detail)}".rstrip())


def _updated(value: SessionUpdated, rows: Sequence[Event]) -> Unit | None:
    names = {
        "teams": _("Teams"),
        "memory": _("Memory"),
        "tracing": _("Tracing"),
        "approval": _("Approvals"),
        "plan_mode": _("Plan mode"),
    }
    sentences = [
        (_("%(feature)s: on.") if on else _("%(feature)s: off."))
        % {"feature": names.get(feature, feature)}
        for feature, on in value.features.items()
    ]
    sentences += sentences_of(value.overrides)
    if not sentences:
        return None
    return _notice(rows, " ".join(sentences), by=_name(rows[0]) if rows[0].actor else "")


def _retry(value: RetryRequested, rows: Sequence[Event]) -> Unit:
    sentences = [_("Trying again from the start.") if value.from_start else _("Trying again.")]
    if value.model:
        sentences.append(_("Model: %(model)s.") % {"model": value.model})
    if value.token_budget:
        sentences.append(_("Token budget: %(tokens)d.") % {"tokens": value.token_budget})
    return _notice(rows, " ".join(sentences), by=_name(rows[0]) if rows[0].actor else "")


FILES_STAYED = {
    "stay": lambda: _("The files were left as they were."),
    "not_kept": lambda: _("The files stay as they were: how they were then was not kept."),
    "elsewhere": lambda: _("The files stay as they were, on the worker's machine."),
}


def _rewound(value: Rewound, rows: Sequence[Event]) -> Unit | None:
    """Only what the branch itself does not show: that it ends here, or who was asked."""
    match value.why:
        case "rewind":
            words = _(
                "The conversation was taken back to here. What came after it stays on its branch."
            )
        case "regenerate" if value.model:
            words = _("Asked once more, of the model %(model)s.") % {"model": value.model}
        case _ if value.files in FILES_STAYED:
            words = ""
        case _:
            return None
    stayed = FILES_STAYED.get(value.files)
    if stayed is not None:
        words = f"{words} {stayed()}".strip()
    return _notice(rows, words, by=_name(rows[0]) if rows[0].actor else "")


def _thread(value: SessionThreadCreated, rows: Sequence[Event]) -> Unit:
    return _notice(rows, _("%(agent)s started to work on a part.") % {"agent": value.agent_name})


def _outcome(value: UserDefineOutcome, rows: Sequence[Event]) -> Unit:
    return _notice(
        rows,
        _("Outcome to reach: %(description)s") % {"description": value.description},
        by=_name(rows[0]) if rows[0].actor else "",
        label=_("How it is judged"),
        pieces=pieces_of((Text(text=value.rubric),)),
    )


def _evaluation(value: SpanOutcomeEvaluationStart, rows: Sequence[Event]) -> Unit:
    ends = [row.value for row in rows if isinstance(row.value, SpanOutcomeEvaluationEnd)]
    checks = shown_checks(row.value for row in rows if isinstance(row.value, OutcomeCheckRan))
    if not ends:
        words = _("The work is being judged…")
        return _notice(rows, words, label=_("What was found"), checks=checks)
    end = ends[-1]
    return _notice(
        rows,
        result_words(end.result, end.criteria),
        label=_("What was found"),
        explanation=visible(end.explanation),
        criteria=shown_criteria(end.criteria),
        checks=checks,
    )


def _sleeping(value: WakeRequested, rows: Sequence[Event]) -> Unit:
    after = duration(value.delay_seconds * 1_000)
    words = _("Sleeps for %(duration)s: %(reason)s") % {"duration": after, "reason": value.reason}
    return _notice(rows, words)


def _woken(value: WakeDue, rows: Sequence[Event]) -> Unit:
    return _notice(rows, _("Woken: %(reason)s") % {"reason": value.reason})


_ENDS_OF_COMMANDS = {
    "completed": gettext_lazy("Background command done"),
    "failed": gettext_lazy("Background command failed"),
    "timed_out": gettext_lazy("Background command took too long and was ended"),
    "cancelled": gettext_lazy("Background command cancelled"),
    "lost": gettext_lazy("Background command lost with its process"),
}
_ENDS_OF_SUBAGENTS = {
    "completed": gettext_lazy("Subagent in the background done"),
    "failed": gettext_lazy("Subagent in the background failed"),
    "timed_out": gettext_lazy("Subagent in the background took too long and was ended"),
    "cancelled": gettext_lazy("Subagent in the background stopped"),
    "lost": gettext_lazy("Subagent in the background lost"),
}


def _finished(value: BackgroundFinished, rows: Sequence[Event]) -> Unit:
    how = (_ENDS_OF_SUBAGENTS if value.subagent else _ENDS_OF_COMMANDS)[value.state]
    facts = [duration(round(value.seconds * 1_000))]
    if value.exit_code is not None:
        facts.insert(0, _("exit code %(code)d") % {"code": value.exit_code})
    line = " ".join(value.command.split())[:200]
    words = f"{how} ({', '.join(facts)}): {visible(line)}"
    tail = "\n".join(part for part in (value.detail, value.tail) if part)
    return _notice(
        rows,
        words,
        label=_("What it answered") if value.subagent else _("The end of its output"),
        pieces=pieces_of((Text(text=tail),)) if tail else (),
        network=network_of(value.network),
    )


_REMARKS: dict[type, Callable[[Any, Sequence[Event]], Unit | None]] = {
    McpElsewhere: _elsewhere,
    SessionError: _error,
    SessionStatusIdle: _rest,
    SessionStatusRescheduled: _waiting,
    SessionStatusTerminated: _ended,
    AgentThreadContextCompacted: _compacted,
    CompactionRequested: _asked_to_compact,
    CompactionSkipped: _not_compacted,
    SessionUpdated: _updated,
    RetryRequested: _retry,
    Rewound: _rewound,
    SessionThreadCreated: _thread,
    UserDefineOutcome: _outcome,
    SpanOutcomeEvaluationStart: _evaluation,
    WakeRequested: _sleeping,
    WakeDue: _woken,
    BackgroundFinished: _finished,
}


def _name(row: Event) -> str:
    return str(row.actor) if row.actor else _("Somebody")
