"""From the log to the messages of a prompt: a pure function, stable from step to step.

Keeps calls and answers paired whatever the log lacks, puts a summary in the place of what was
compacted, and shortens old tool results in rare batches so that cached prefixes stay valid. The
system prompt and the tools are the loop's part; a provider's dialect is the provider's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from harness.branches import on_path
from harness.content import (
    Block,
    Document,
    Image,
    PlainTextSource,
    Text,
    UploadedFile,
    as_blocks,
    text_of,
)
from harness.contextplan import CHARACTERS, KEPT_SHARE, RESULTS_SHARE, SHARES, allotted
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AppEvent,
    BackgroundFinished,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessagePinned,
    MessageWithdrawn,
    ModelUsage,
    RetryRequested,
    Rewound,
    SessionStatusIdle,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    ToolResult,
    ToolUse,
    UserCustomToolResult,
    UserDefineOutcome,
    UserMessage,
    WakeDue,
    answered_call,
    is_nested,
)
from harness.frontends import documents_of
from harness.history import SAID_TO_THE_AGENT, Entry
from harness.keepsakes import kept, pinned
from harness.messages import (
    Elsewhere,
    Message,
    Part,
    PinnedText,
    Role,
    Thinking,
    ToolAnswer,
    ToolCall,
)
from harness.texts import Texts

KEEP_RESULTS = 3
"""The newest tool results are never shortened."""
SHORTEN_OVER = 100
"""Characters; shorter results stay as they are."""
SHORTEN_BATCH = 10
"""Results are shortened at least this many at a time: each time costs the cached prefix once."""
SHORTEN_FROM = 0.45
"""Share of the context window below which nothing is shortened. Past it all old results are, so that the
prompt has as far as possible to grow until the next time."""

MEDIA_CHARACTERS = 4_800  # of the room that the results of one step have together
_NO_ROOM = "[{what} is left out here: the context window has no room for it.]"
_NO_RESULT = "No result of this call was recorded; it may or may not have run."
_BROKEN_OFF = (
    "[{block[name]} of the MCP server “{server}” was begun by the model's service with {block[input]}; what"
    " came of it is not known.]"
)
"""No service takes back a use without its result."""


@dataclass(frozen=True, slots=True)
class Window:
    """What shortening depends on."""

    tokens: int = 200_000
    reread: str = ""
    """The tool that reads what was left out, where the agent has one."""
    shortens: bool = True
    """Old results are shortened; not where the service leaves them out."""
    service: tuple[str, str] | None = None
    """Provider and model whose own summaries are sent back to them as they came; others are told them in
    words."""

    @property
    def results(self) -> int:
        """Characters that the results of one step may have together."""
        return int(self.tokens * RESULTS_SHARE * CHARACTERS)

    @property
    def pinned(self) -> int:
        """Characters of pinned messages beside a summary."""
        return int(self.tokens * SHARES["pinned"] * CHARACTERS)

    @property
    def kept(self) -> int:
        """Characters that may be kept word for word beside a summary."""
        return int(self.tokens * KEPT_SHARE * CHARACTERS)


@dataclass(slots=True)
class _Builder:
    """Messages in the making: those that are complete, and the parts of the last one."""

    complete: list[Message] = field(default_factory=list)
    role: Role | None = None
    parts: list[Part] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Calls of the assistant message in the making, in order."""
    request_id: str | None = None
    """Which request the assistant's last words came from."""
    used: set[str] = field(default_factory=set)
    """Ids of messages, requests and calls of which is told what was known of them by then."""
    elsewhere: set[str] = field(default_factory=set)
    """Uses elsewhere that stand in the message in the making."""
    behind: list[Part] = field(default_factory=list)
    """What the user's next message tells behind a service's summary, which stands at the beginning of a
    reply."""

    def add(self, role: Role, part: Part) -> None:
        if role != self.role:
            self._complete()
            self.role = role
        self.parts.append(part)

    def _complete(self) -> None:
        if self.role is not None:
            self.complete.append(Message(self.role, tuple(self.parts)))
            self.parts = []
            self.elsewhere = set()

    def end(self, answers: _Answers, texts: Texts) -> tuple[Message, ...]:
        """The messages so far, made into a prompt; what comes next is added as if they had not been."""
        end = _Builder([], self.role, list(self.parts), list(self.calls), behind=list(self.behind))
        _answer_calls(end, answers)
        if end.role == "assistant":
            end.add("user", Text(text=texts.continue_reply))
        end._complete()
        return (*self.complete, *end.complete)


def build_messages(
    entries: Sequence[Entry], *, texts: Texts, window: Window | None = None
) -> tuple[Message, ...]:
    """The dialogue that `entries` tell, ending in a user message.

    Empty when nothing was said yet. Entries must be one conversation's, in order.
    """
    return Dialogue(texts, window).messages(entries)


class Dialogue:
    """`build_messages` for a log that grows: what it told before is not read again.

    Messages that are complete are the same objects from prompt to prompt. An event that changes what
    was told before (an edit, a restart, a summary, a shortening, a branch) has all of it built anew.
    """

    def __init__(self, texts: Texts, window: Window | None = None) -> None:
        self._texts = texts
        self._window = window or Window()
        self._read = 0
        self._last: Entry | None = None
        self._forget()

    def is_for(self, window: Window) -> bool:
        """Whether it tells what this window is to be told, which may be wider than its own."""
        own = self._window
        return (own.shortens, own.service) == (window.shortens, window.service)

    def messages(self, entries: Sequence[Entry]) -> tuple[Message, ...]:
        """`entries` are those of the call before, and what the log gained since; or those of another
        branch."""
        if not self._knows_the_beginning(entries) or not self._go_on(entries[self._read :]):
            self._begin_anew(remembered(entries))
        self._read = len(entries)
        self._last = entries[-1] if entries else None
        return self._builder.end(self._answers, self._texts)

    def _knows_the_beginning(self, entries: Sequence[Entry]) -> bool:
        if self._last is None:
            return True
        return len(entries) >= self._read and entries[self._read - 1].uid == self._last.uid

    def _go_on(self, news: Sequence[Entry]) -> bool:
        """False where that does not do, because something told before is changed."""
        shortened = self._answers.shortened
        if not all(map(self._only_adds, news)):
            return False
        self._learn(news)
        if self._answers.shortened > shortened:
            return False
        self._add(news)
        return True

    def _begin_anew(self, entries: Sequence[Entry]) -> None:
        self._forget()
        self._learn(entries)
        self._answers.shorten()
        start, opening, made = _opening(entries, self._texts, self._window)
        self._opened = bool(opening) or made is not None
        if made is not None:
            _begin_with_its_own(self._builder, made, opening, self._texts)
        else:
            for block in opening:
                self._builder.add("user", block)
        self._add(entries[start:])

    def _forget(self) -> None:
        self._builder = _Builder()
        self._answers = _Answers(self._window, self._texts)
        self._posted: dict[str, tuple[Block, ...]] = {}
        self._files: dict[str, tuple[Block, ...]] = {}
        self._sources: dict[str, SpanModelRequestStart] = {}
        self._stopped = False
        self._opened = False
        """It begins with what stands for an older part."""
        self._aside: set[str] = set()
        self._begun_elsewhere: dict[str, str] = {}
        """Uses elsewhere of which it is not known what came, with their requests, as far as that may still
        come in the same message."""
        self._elsewhere: set[str] = set()
        """Those of which it is."""

    def _only_adds(self, entry: Entry) -> bool:
        """Whether what was told before stays as it is."""
        event, used = entry.event, self._builder.used
        match event:
            case AgentThreadContextCompacted() | ContentSetAside() | Rewound():
                return False
            case MessagePinned():
                return not self._opened
            case RetryRequested():
                return not event.from_start
            case InputTaken():
                return self._aside.isdisjoint(event.event_ids)
            case McpElsewhere():
                return event.tool_use_id not in used
            case MessageEdited():
                return event.event_id not in used
            case (
                UserMessage()
                | UserDefineOutcome()
                | WakeDue()
                | BackgroundFinished()
                | SpanModelRequestStart()
            ):
                return entry.uid not in used
            case _:
                call_id = answered_call(event)
                if call_id is None:
                    return True
                known = call_id in self._answers.known or call_id not in used
                return known and call_id not in self._aside

    def _learn(self, entries: Sequence[Entry]) -> None:
        """What is said, asked and answered, for telling it in its place."""
        self._posted |= _inputs(entries, self._texts, self._files)
        for entry in entries:
            if isinstance(entry.event, SpanModelRequestStart):
                self._sources[entry.uid] = entry.event
            if isinstance(entry.event, ContentSetAside):
                self._aside.add(entry.event.event_id)
            self._pair(entry)
            self._answers.add(entry)

    def _pair(self, entry: Entry) -> None:
        """A use elsewhere with what came of it: no service takes back one without the other."""
        event, begun = entry.event, self._begun_elsewhere
        request = getattr(event, "model_request_id", None)
        other = request is not None and request not in begun.values()
        if other or isinstance(event, _BETWEEN_REPLIES):
            begun.clear()
        if not isinstance(event, McpElsewhere) or not event.block:
            return
        if event.kind == "use":
            begun[entry.uid] = event.model_request_id
        elif event.tool_use_id in begun:
            del begun[event.tool_use_id]
            self._elsewhere.add(event.tool_use_id)

    def _add(self, entries: Sequence[Entry]) -> None:
        builder, answers, texts = self._builder, self._answers, self._texts
        for entry in entries:
            event = entry.event
            match event:
                case InputTaken():
                    _answer_calls(builder, answers)
                    if self._stopped and event.event_ids:
                        builder.add("user", Text(text=texts.stopped_note))
                        self._stopped = False
                    for uid in event.event_ids:
                        builder.used.add(uid)
                        for block in self._posted.get(uid, ()):
                            builder.add("user", block)
                case AgentMessage():
                    text = text_of(event.content)
                    if text.strip():
                        _speak(builder, event.model_request_id, Text(text=text), answers, texts)
                case AgentThinking(interrupted=False):
                    builder.used.add(event.model_request_id)
                    source = self._sources.get(event.model_request_id)
                    part = Thinking(
                        event.thinking,
                        event.signature,
                        event.redacted_data,
                        source.provider if source else "",
                        source.model if source else "",
                    )
                    _speak(builder, event.model_request_id, part, answers, texts)
                case McpElsewhere(block=block) if block:
                    builder.used.add(event.model_request_id)
                    source = self._sources.get(event.model_request_id)
                    done: Part = Elsewhere(
                        block, source.provider if source else "", source.model if source else ""
                    )
                    told = entry.uid in self._elsewhere
                    if event.kind == "use" and not told:
                        done = Text(text=_BROKEN_OFF.format(**event.model_dump()))
                        builder.used.add(entry.uid)
                    if event.kind == "result" and event.tool_use_id not in builder.elsewhere:
                        continue
                    _speak(builder, event.model_request_id, done, answers, texts)
                    builder.elsewhere.discard(event.tool_use_id)
                    builder.elsewhere |= {entry.uid} if told else set()
                case RetryRequested(from_start=True):
                    _answer_calls(builder, answers)
                    builder.add("user", Text(text=texts.restarted))
                    self._stopped = False
                case SpanOutcomeEvaluationEnd(result=result) if result in SAID_TO_THE_AGENT:
                    _answer_calls(builder, answers)
                    builder.add("user", Text(text=_words_of_evaluation(event, texts)))
                case SessionStatusIdle(interrupted=True):
                    self._stopped = True
                case AppEvent() if words := event.to_agent():
                    _answer_calls(builder, answers)
                    builder.add("user", Text(text=words))
                case _ if is_nested(event):
                    pass
                case _ if isinstance(event, ToolUse):
                    call = ToolCall(entry.uid, event.name, event.input)
                    same_reply = builder.request_id == event.model_request_id
                    if builder.calls and same_reply:
                        builder.add("assistant", call)
                    else:
                        _speak(builder, event.model_request_id, call, answers, texts)
                    builder.calls.append(entry.uid)
                case _:
                    pass


_SET_ASIDE = "What this call brought was set aside by a person: no model service could take it."

_BETWEEN_REPLIES = InputTaken | RetryRequested | SpanOutcomeEvaluationEnd | ToolResult
"""Behind them a reply begins another message."""

_WORDS = (
    UserMessage
    | UserDefineOutcome
    | MessageEdited
    | MessageWithdrawn
    | ContentSetAside
    | WakeDue
    | BackgroundFinished
    | InputTaken
)
"""What is said to the agent; the rest of a turn is what came of it."""


def remembered(entries: Sequence[Entry]) -> Sequence[Entry]:
    """What counts of the log: without other branches, without what turns brought that were then done
    again from their start, and without what was set aside.

    Words that people and wakes said meanwhile stay. A restart that found nothing to forget is left
    out too. Applying it twice changes nothing.
    """
    return _without_asides(_without_restarts(on_path(entries)))


def _without_asides(entries: Sequence[Entry]) -> Sequence[Entry]:
    aside = {each.event.event_id for each in entries if isinstance(each.event, ContentSetAside)}
    return [_without(aside, entry) for entry in entries] if aside else entries


def _without(aside: Set[str], entry: Entry) -> Entry:
    event: Event = entry.event
    match event:
        case InputTaken(event_ids=uids) if not aside.isdisjoint(uids):
            left = tuple(uid for uid in uids if uid not in aside)
            event = event.model_copy(update={"event_ids": left})
        case UserCustomToolResult(custom_tool_use_id=call) if call in aside:
            left_out = {"content": as_blocks(_SET_ASIDE), "front_end": None}
            event = event.model_copy(update=left_out)
        case _ if isinstance(event, ToolResult) and answered_call(event) in aside:
            event = event.model_copy(update={"content": as_blocks(_SET_ASIDE)})
        case _:
            return entry
    return replace(entry, event=event)


def _without_restarts(entries: Sequence[Entry]) -> Sequence[Entry]:
    if not any(_is_restart(entry) for entry in entries):
        return entries
    kept: list[Entry] = []
    began: int | None = None
    for entry in entries:
        match entry.event:
            case InputTaken(steered=False):
                began = len(kept)
            case SessionStatusIdle(stop_reason=EndTurn(), interrupted=False):
                began = None
            case RetryRequested(from_start=True):
                if began is None:
                    continue
                behind = began + 1
                kept[behind:] = [
                    old for old in kept[behind:] if isinstance(old.event, _WORDS | MessagePinned)
                ]
            case _:
                pass
        kept.append(entry)
    return kept


def _is_restart(entry: Entry) -> bool:
    return isinstance(entry.event, RetryRequested) and entry.event.from_start


def _speak(
    builder: _Builder,
    request_id: str,
    part: Part,
    answers: _Answers,
    texts: Texts,
) -> None:
    """Add a part of a reply; a new reply directly behind another one needs a user's word between."""
    if builder.request_id != request_id:
        _answer_calls(builder, answers)
        if builder.role == "assistant":
            builder.add("user", Text(text=texts.continue_reply))
    if builder.role is None:
        builder.add("user", Text(text=texts.continue_reply))
    builder.add("assistant", part)
    builder.request_id = request_id


def _answer_calls(builder: _Builder, answers: _Answers) -> None:
    builder.used.update(builder.calls)
    for answer in answers.of_step(builder.calls):
        builder.add("user", answer)
    builder.calls.clear()
    for part in builder.behind:
        builder.add("user", part)
    builder.behind.clear()


def _begin_with_its_own(
    builder: _Builder,
    made: AgentThreadContextCompacted,
    opening: Sequence[Block],
    texts: Texts,
) -> None:
    """A summary that the service made stands at the beginning of the reply in which it made it. What stood
    before it the service leaves out; a dialogue begins with a user's words all the same."""
    builder.add("user", Text(text=texts.compaction_preamble))
    builder.add("assistant", Elsewhere(made.block, made.provider, made.model))
    builder.request_id = made.model_request_id
    builder.behind.extend(opening)


def _opening(
    entries: Sequence[Entry], texts: Texts, window: Window
) -> tuple[int, tuple[Block, ...], AgentThreadContextCompacted | None]:
    """Where the verbatim dialogue starts, and what stands for everything before it; with the summary that
    goes before that as the service made it."""
    for index in range(len(entries) - 1, -1, -1):
        event = entries[index].event
        if isinstance(event, AgentThreadContextCompacted):
            break
    else:
        return 0, (), None
    own = event if event.block and (event.provider, event.model) == window.service else None
    places = enumerate(entries[:index])
    cut = next((place for place, entry in places if entry.uid == event.through), index)
    summary = f"{texts.compaction_preamble}\n\n{event.summary}"
    if window.reread and not event.fallback:  # which names it itself
        summary += f"\n\n[{texts.reread.format(tool=window.reread)}]"
    blocks: list[Block] = [] if own else [Text(text=summary)]
    before, since = entries[: cut + 1], entries[cut + 1 : index]
    said = _inputs(before, texts, {})
    if words := kept(before, since, texts=texts, room=window.kept):
        blocks.append(Text(text=words))
    if words := pinned(entries, before, said, texts=texts, room=window.pinned):
        blocks.append(PinnedText(text=words))
    # A turn that was cut in the middle keeps the words it was asked with.
    if not any(isinstance(entry.event, InputTaken) for entry in since):
        blocks.extend(_words_of_last_input(before, said))
    return cut + 1, tuple(blocks), own


def _inputs(
    entries: Sequence[Entry], texts: Texts, files: dict[str, tuple[Block, ...]]
) -> dict[str, tuple[Block, ...]]:
    """What each message and wake says, as it was last edited. `files` is what is told of those that came
    with messages, of earlier entries too: an edit is one of words and leaves them."""
    said: dict[str, tuple[Block, ...]] = {}
    for entry in entries:
        match entry.event:
            case UserMessage(content=content, front_end=front_end):
                files[entry.uid] = _note_of_files(entry.event.files, texts)
                said[entry.uid] = (*content, *files[entry.uid], *documents_of(front_end))
            case MessageEdited(event_id=uid, content=content):
                said[uid] = (*content, *files.get(uid, ()))
            case UserDefineOutcome(description=description, rubric=rubric):
                words = texts.outcome.format(description=description, rubric=rubric)
                said[entry.uid] = as_blocks(words)
            case BackgroundFinished() as end:
                said[entry.uid] = as_blocks(_note_of_end(end, texts))
            case WakeDue(reason=reason, note=note):
                said[entry.uid] = as_blocks(
                    "\n".join(line for line in (texts.woken.format(reason=reason), note) if line)
                )
            case _:
                pass
    return said


def _note_of_files(files: Sequence[UploadedFile], texts: Texts) -> tuple[Block, ...]:
    if not files:
        return ()
    named = ", ".join(f"{file.path} ({file.media_type}, {file.size:,} bytes)" for file in files)
    return as_blocks(texts.uploaded.format(files=named))


def _words_of_evaluation(event: SpanOutcomeEvaluationEnd, texts: Texts) -> str:
    judged = [
        f"- {'met' if each.met else 'NOT MET'}: {each.criterion}"
        + (f" — {each.reason}" if each.reason else "")
        for each in event.criteria
    ]
    again = event.result == "needs_revision"
    said = texts.outcome_unmet if again else texts.outcome_given_up
    return "\n".join(part for part in (said, *judged, event.explanation) if part)


def _note_of_end(end: BackgroundFinished, texts: Texts) -> str:
    if end.subagent:
        note = texts.subagent_finished.format(
            id=end.background_id,
            state=f"{end.state}, {end.seconds:.1f} s",
            description=end.command,
        )
        return "\n".join(part for part in (note, end.detail, end.tail) if part)
    code = "" if end.exit_code is None else f", exit code {end.exit_code}"
    note = texts.background_finished.format(
        id=end.background_id,
        command=end.command,
        state=f"{end.state}{code}, {end.seconds:.1f} s",
        output=end.output_path,
    )
    return "\n".join(part for part in (note, end.detail, end.tail) if part)


def _words_of_last_input(
    entries: Sequence[Entry], said: Mapping[str, tuple[Block, ...]]
) -> list[Block]:
    taken = next(
        (e.event for e in reversed(entries) if isinstance(e.event, InputTaken)),
        InputTaken(event_ids=()),
    )
    return [block for uid in taken.event_ids for block in said.get(uid, ())]


class _Answers:
    """The first result of each call; old and long ones are shortened, those of one step have their share."""

    def __init__(self, window: Window, texts: Texts) -> None:
        self.known: dict[str, ToolAnswer] = {}
        self.shortened = 0
        """How many of the oldest are, as far as they are long."""
        self._window = window
        self._texts = texts
        self._names: dict[str, str] = {}
        self._nested: set[str] = set()
        self._order: list[str] = []

    def add(self, entry: Entry) -> None:
        event = entry.event
        if is_nested(event):
            self._nested.add(entry.uid)
        elif isinstance(event, ToolUse):
            self._names[entry.uid] = event.name
        elif isinstance(event, SpanModelRequestEnd) and not event.is_error:
            self._follow_size(event.model_usage)
        elif isinstance(event, ToolResult):
            call_id = answered_call(event)
            if call_id and call_id not in self.known and call_id not in self._nested:
                content = event.content or as_blocks("(no output)")
                if isinstance(event, UserCustomToolResult):
                    content = (*content, *documents_of(event.front_end))
                self.known[call_id] = ToolAnswer(call_id, content, event.is_error)
                self._order.append(call_id)

    def _follow_size(self, usage: ModelUsage) -> None:
        """Of a prompt that was sent: when it is a large one, all that is old by then is to be shortened."""
        prompt = (
            usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        )
        if self._window.shortens and prompt > self._window.tokens * SHORTEN_FROM:
            old = len(self._order) - KEEP_RESULTS
            if old - self.shortened >= SHORTEN_BATCH:
                self.shortened = old

    def shorten(self) -> None:
        for call_id in self._order[: self.shortened]:
            answer = self.known[call_id]
            size = _characters(answer)
            if size > SHORTEN_OVER:
                tool = self._names.get(call_id, "a tool")
                note = self._texts.shortened_result.format(tool=tool, size=size)
                note += self._where(call_id)
                self.known[call_id] = ToolAnswer(call_id, as_blocks(note), answer.is_error)

    def of_step(self, calls: Sequence[str]) -> list[ToolAnswer]:
        """The answers of one step's calls, in order; what is too long for the window by far loses its
        middle. It depends on these alone, so it stays as it is from prompt to prompt."""
        found = [
            self.known.get(call_id) or ToolAnswer(call_id, as_blocks(_NO_RESULT), is_error=True)
            for call_id in calls
        ]
        found, room = _with_media(found, self._window.results)
        sizes = [_characters(answer) for answer in found]
        if sum(sizes) <= room:
            return found
        return [
            answer if size <= most else self._clipped(answer, size, most)
            for answer, size, most in zip(found, sizes, allotted(sizes, room), strict=True)
        ]

    def _clipped(self, answer: ToolAnswer, size: int, most: int) -> ToolAnswer:
        whole = "\n".join(block.text for block in answer.content if isinstance(block, Text))
        others = [block for block in answer.content if not isinstance(block, Text)]
        note = self._texts.clipped_result.format(size=size - most) + self._where(answer.call_id)
        head = most * 2 // 3
        text = f"{whole[:head]}\n{note}\n{whole[len(whole) - (most - head) :]}"
        return replace(answer, content=(Text(text=text), *others))

    def _where(self, call_id: str) -> str:
        tool = self._window.reread
        return f" [{tool} with call {call_id} shows it whole.]" if tool else ""


def _with_media(found: list[ToolAnswer], room: int) -> tuple[list[ToolAnswer], int]:
    """The same with as many images and documents as the room holds, and what is left of it for texts."""
    kept_: list[ToolAnswer] = []
    for answer in found:
        blocks: list[Block] = []
        for block in answer.content:
            size = _media_characters(block)
            what = "An image" if isinstance(block, Image) else "A document"
            blocks.append(block if size <= room else Text(text=_NO_ROOM.format(what=what)))
            room -= size if size <= room else 0
        kept_.append(replace(answer, content=tuple(blocks)))
    return kept_, room


def _media_characters(block: Block) -> int:
    match block:
        case Text():
            return 0
        case Document(source=PlainTextSource(data=data)):
            return len(data)
        case _:
            return MEDIA_CHARACTERS


def _characters(answer: ToolAnswer) -> int:
    return sum(len(block.text) for block in answer.content if isinstance(block, Text))
