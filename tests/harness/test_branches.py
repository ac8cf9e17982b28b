"""Branches are places in one log: what counts on each, and that nothing else of it is lost."""

from __future__ import annotations

from harness.branches import Branches, Path, branches_in, on_path, place_before
from harness.content import Text
from harness.events import (
    AgentMessage,
    AgentToolUse,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    ModelUsage,
    Rewound,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionUpdated,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    UserMessage,
)
from harness.history import Entry, History
from harness.texts import Texts
from harness.transcript import Dialogue, build_messages


class Log:
    """Writes turns; `at` names the numbers of what each turn began and ended with."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    @property
    def last(self) -> int:
        return len(self.entries)

    def add(self, *events: Event) -> int:
        for event in events:
            seq = self.last + 1
            self.entries.append(Entry(f"e{seq}", event, seq, float(seq)))
        return self.last

    def ask(self, text: str) -> int:
        """A message that is taken; the number of its taking."""
        said = self.add(UserMessage(content=(Text(text=text),)))
        return self.add(SessionStatusRunning(), InputTaken(event_ids=(f"e{said}",)))

    def reply(self, text: str) -> int:
        """The number of the rest behind it."""
        start = self.add(SpanModelRequestStart())
        usage = ModelUsage(input_tokens=10, output_tokens=1)
        return self.add(
            AgentMessage(content=(Text(text=text),), model_request_id=f"e{start}"),
            SpanModelRequestEnd(
                model_request_start_id=f"e{start}", model_usage=usage, end="end_turn"
            ),
            SessionStatusIdle(stop_reason=EndTurn()),
        )

    @property
    def history(self) -> History:
        return History(self.entries)

    def prompt(self) -> list[str]:
        return said(self.entries)


def said(entries) -> list[str]:
    messages = build_messages(entries, texts=Texts())
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]


def spoken(log: Log) -> list[str]:
    return [each for each in log.prompt() if each != Texts().continue_reply]


def test_a_log_in_which_nobody_went_back_counts_as_it_is():
    log = Log()
    log.ask("one")
    log.reply("first")
    assert on_path(log.entries) is log.entries
    assert Branches((), 7).path() == Path(((1, 7),))
    assert Branches((), 7).siblings() == {}


def test_what_stands_between_the_place_and_the_event_is_left_out_of_the_prompt():
    log = Log()
    log.ask("one")
    rest = log.reply("first")
    log.ask("two")
    log.reply("second")
    log.add(Rewound(behind=rest))
    log.ask("other")
    assert spoken(log) == ["one", "first", "other"]
    assert len(log.entries) == log.last


def test_an_answer_done_anew_is_owed_and_begins_a_turn_of_its_own():
    log = Log()
    taken = log.ask("one")
    log.reply("first")
    log.add(Rewound(behind=taken, why="regenerate", model="other"))
    history = log.history
    assert history.has_work
    assert history.turn.reply_owed
    assert not history.running
    assert history.turn.model == "other"
    assert (history.turn.uid, history.turn.steps) == (f"e{log.last}", 0)
    assert spoken(log) == ["one"]


def test_what_other_branches_used_stays_used():
    log = Log()
    taken = log.ask("one")
    log.reply("first")
    log.add(Rewound(behind=taken, why="regenerate"))
    log.reply("anew")
    assert log.history.usage.input_tokens == 20
    assert log.history.context_tokens == 11


def test_a_sibling_is_gone_back_to_by_its_end():
    log = Log()
    taken = log.ask("one")
    first = log.reply("first")
    log.add(Rewound(behind=taken, why="regenerate"))
    log.reply("anew")
    log.add(Rewound(behind=first, why="switch"))
    assert spoken(log) == ["one", "first"]
    assert not log.history.has_work
    log.ask("two")
    assert spoken(log) == ["one", "first", "two"]


def test_siblings_are_counted_where_they_part_and_empty_ones_are_none():
    log = Log()
    taken = log.ask("one")
    first = log.reply("first")
    again = log.add(Rewound(behind=taken, why="regenerate"))
    log.reply("anew")
    log.add(Rewound(behind=first, why="switch"))
    (place, found), *more = branches_in(log.entries).siblings().items()
    assert (place, found.choices, found.chosen, more) == (taken, (taken + 1, again), 0, [])
    log.add(Rewound(behind=first, why="switch"))
    assert list(branches_in(log.entries).siblings()) == [taken]


def test_the_newest_dialogue_through_a_place_is_where_a_sibling_is_gone_on_with():
    log = Log()
    taken = log.ask("one")
    first = log.reply("first")
    again = log.add(Rewound(behind=taken, why="regenerate"))
    anew = log.reply("anew")
    log.add(Rewound(behind=first, why="switch"))
    log.ask("two")
    second = log.reply("second")
    log.add(Rewound(behind=anew, why="switch"))
    branches = branches_in(log.entries)
    assert branches.tip(taken + 1) == second
    assert branches.tip(again) >= anew


def test_what_waited_at_the_place_does_not_wait_any_more_unless_it_is_kept():
    log = Log()
    taken = log.ask("one")
    queued = log.add(UserMessage(content=(Text(text="queued"),)))
    log.reply("first")
    log.add(Rewound(behind=log.last))
    assert not log.history.queued()
    assert not log.history.has_work
    log.add(Rewound(behind=taken, keeps=(f"e{queued}",)))
    assert [entry.uid for entry in log.history.queued()] == []  # it came behind that place
    log.add(Rewound(behind=queued, keeps=(f"e{queued}",)))
    assert [entry.uid for entry in log.history.queued()] == [f"e{queued}"]


def test_calls_that_were_open_at_the_place_are_not_owed():
    log = Log()
    log.ask("one")
    start = log.add(SpanModelRequestStart())
    call = log.add(AgentToolUse(name="look", input={}, model_request_id=f"e{start}"))
    log.add(Rewound(behind=call))
    assert not log.history.unanswered()


def test_settings_and_what_was_set_aside_hold_on_every_branch():
    log = Log()
    taken = log.ask("one")
    log.reply("first")
    log.add(SessionUpdated(features={"plan_mode": True}), ContentSetAside(event_id="e1"))
    log.add(Rewound(behind=taken, why="regenerate"))
    assert log.history.features.plan_mode
    assert spoken(log) == []


def test_a_growing_dialogue_and_one_that_is_built_anew_tell_the_same_on_every_branch():
    log, dialogue = Log(), Dialogue(Texts())

    def same() -> None:
        history = log.history
        assert dialogue.messages(history.entries) == build_messages(log.entries, texts=Texts())

    taken = log.ask("one")
    first = log.reply("first")
    same()
    log.add(Rewound(behind=taken, why="regenerate"))
    same()
    log.reply("anew")
    same()
    log.add(Rewound(behind=first, why="switch"))
    log.ask("two")
    same()


def test_a_history_that_is_told_of_a_branch_is_the_one_that_reads_the_whole_log():
    log, growing = Log(), History()

    def told() -> None:
        for entry in log.entries[growing.last_seq :]:
            growing.add(entry)
        anew = log.history
        assert growing.entries == anew.entries
        assert (growing.turn, growing.usage, growing.has_work, growing.last_seq) == (
            anew.turn,
            anew.usage,
            anew.has_work,
            anew.last_seq,
        )

    taken = log.ask("one")
    log.reply("first")
    told()
    log.add(Rewound(behind=taken, why="regenerate"))
    told()
    log.reply("anew")
    told()
    log.add(Rewound(behind=0))
    told()
    log.ask("new")
    told()


def test_the_place_before_a_turn_is_the_end_of_the_one_before_whatever_stands_between():
    log = Log()
    log.ask("one")
    rest = log.reply("first")
    log.add(SessionUpdated(title="A title"))
    taken = log.ask("two")
    assert place_before(log.entries, taken - 1) == rest
    assert place_before(log.entries, 2) == 0
