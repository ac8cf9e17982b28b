"""The socket in front of real runs: what is sent, when, to whom, and what it survives."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Membership
from agents.models import Agent, AgentVersion, Environment
from chat import consumers
from chat.presentation.frames import page
from conversations import following
from conversations.actions.messages import post_message
from conversations.log import append
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.events import SessionUpdated, UserMessage
from harness.history import Entry
from jobs.engine import engine
from keeping.models import SeenMark
from live.hub import hub
from providers.scripted import Hold, call, registered, reply, say, think
from tests.chat.sockets import Browser

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _runs_end_with_the_test():
    yield
    engine.stop()


@pytest.fixture
def conversation(alice, acme, request) -> Conversation:
    """Alice's, with an agent that plays the script registered under the test's name."""
    agent = Agent.objects.create(name="Player")
    config = AgentConfig(provider="scripted", model=request.node.name)
    agent.current = AgentVersion.objects.create(
        agent=agent, number=1, stored_config=config.model_dump(mode="json")
    )
    agent.save(update_fields=["current"])
    return Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=agent.current,
        environment=Environment.objects.create(name="Here"),
    )


@pytest.fixture
def playing(request):
    """Registers a script for this test's agent."""

    def play(*script):
        return registered(request.node.name, script)

    return play


def event_types(conversation: Conversation) -> list[str]:
    rows = Event.objects.filter(conversation=conversation)
    return list(rows.order_by("seq").values_list("type", flat=True))


events_of = sync_to_async(event_types)


async def log_message(conversation: Conversation, text: str) -> Event:
    """Straight into the log, so that nothing runs."""
    entry = Entry.of(UserMessage(content=(Text(text=text),)))
    return (await sync_to_async(append)(conversation.pk, [entry]))[0]


async def queue_behind_an_answer(browser: Browser) -> str:
    """Posts "two" while the answer "First" stands still; the uid of "two", which waits."""
    await browser.say(type="message", content="one", key="1")
    await browser.until(lambda: browser.view.text == "First")
    await browser.say(type="message", content="two", key="2")
    uid = (await browser.hear_a("accepted"))["uid"]
    await browser.until(lambda: uid in browser.view.units)
    return str(uid)


# --- coming in ------------------------------------------------------------------------------------


async def test_a_socket_begins_with_a_snapshot_and_everything_after_the_number(conversation, alice):
    for number in range(1, 4):
        await log_message(conversation, f"message {number}")
    async with Browser(alice, conversation.uid, after="2") as browser:
        assert (await browser.hear())["type"] == "snapshot"
        first = await browser.hear()
    assert first["type"] == "changes"
    assert first["seq"] == 3
    assert [unit["order"] for unit in first["units"]] == [3]
    assert "message 3" in first["units"][0]["html"]


async def test_a_socket_that_missed_nothing_is_told_so(conversation, alice):
    await log_message(conversation, "known")
    async with Browser(alice, conversation.uid, after="1") as browser:
        changes = await browser.hear_a("changes")
    expected = {"type": "changes", "seq": 1, "units": [], "removed": [], "panels": {}, "cut": None}
    assert changes == expected


async def test_a_page_that_is_looked_at_marks_what_it_shows_as_seen(conversation, alice):
    await log_message(conversation, "one")
    async with Browser(alice, conversation.uid, after="1") as browser:
        await browser.hear_a("changes")
        await browser.say(type="seen", seq=1, key="k")
        assert await browser.hear_a("accepted") == {
            "type": "accepted",
            "key": "k",
            "seq": None,
            "uid": None,
        }
    assert (await SeenMark.objects.aget(user=alice)).seq == 1


async def test_mallory_gets_not_found_whether_it_exists_or_not(conversation, mallory):
    """No conversation opens to just anybody."""
    answers = []
    for uid in (conversation.uid, "sesn_00000000000000000000000000"):
        async with Browser(mallory, uid) as browser:
            answers.append((await browser.hear(), await browser.hear()))
    assert answers[0] == answers[1]
    assert answers[0][0]["code"] == "not_found"
    assert answers[0][1] == {"type": "close", "code": 4404}


async def test_bob_who_shares_only_the_organisation_gets_not_found(conversation, bob):
    async with Browser(bob, conversation.uid) as browser:
        assert (await browser.hear())["code"] == "not_found"
        assert (await browser.hear())["code"] == 4404


async def test_a_stranger_is_told_to_sign_in(conversation):
    async with Browser(None, conversation.uid) as browser:
        assert (await browser.hear())["code"] == "anonymous"
        assert (await browser.hear())["code"] == 4401


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "", "9" * 30, "٣"])
async def test_a_number_that_is_none_is_refused_with_a_remedy(conversation, alice, after):
    async with Browser(alice, conversation.uid, after=after) as browser:
        refused = await browser.hear()
        assert (refused["code"], bool(refused["hint"])) == ("invalid", True)
        assert (await browser.hear())["code"] == 4400


@pytest.mark.parametrize("parameter", ["afterr=7", "after=7", "token=x"])
async def test_an_address_with_a_parameter_too_many_is_refused_by_its_name(
    conversation, alice, parameter
):
    async with Browser(alice, conversation.uid, after=f"0&{parameter}") as browser:
        assert parameter.partition("=")[0] in (await browser.hear())["message"]
        assert (await browser.hear())["code"] == 4400


@pytest.mark.parametrize("after", ["7", "0"])
async def test_a_page_too_far_from_the_log_is_told_to_load_again(
    conversation, alice, after, monkeypatch
):
    monkeypatch.setattr(consumers, "MAX_EVENTS_BEHIND", 2)
    for number in range(3):
        await log_message(conversation, f"message {number}")
    async with Browser(alice, conversation.uid, after=after) as browser:
        assert (await browser.hear())["type"] == "reload"
        assert (await browser.hear())["code"] == 4409


async def test_the_limit_itself_is_not_too_far(conversation, alice, monkeypatch):
    monkeypatch.setattr(consumers, "MAX_EVENTS_BEHIND", 2)
    await log_message(conversation, "one")
    await log_message(conversation, "two")
    async with Browser(alice, conversation.uid) as browser:
        assert (await browser.hear_a("changes"))["seq"] == 2


# --- during a run ---------------------------------------------------------------------------------


async def test_an_answer_streams_and_ends_as_a_unit(conversation, alice, playing):
    """Deltas with offsets, every event with its number."""
    with playing(reply(say("Hello, "), think("hm"), chunk=3), reply("unused")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="Hi", key="k1")
            accepted = await browser.hear_a("accepted")
            await browser.rest()
            await browser.say(type="ping")
            await browser.hear_a("pong")
    assert accepted["key"] == "k1"
    stored = await sync_to_async(Event.objects.get)(conversation=conversation, key="k1")
    assert (accepted["uid"], accepted["seq"]) == (stored.uid, stored.seq)
    deltas = [frame for frame in browser.frames if frame["type"] == "delta"]
    spoken = [frame for frame in deltas if frame["kind"] == "text"]
    assert "Hello, ".startswith("".join(frame["text"] for frame in spoken))
    assert (spoken[0]["offset"], spoken[0]["text"]) == (0, "Hel")
    assert browser.view.gaps == 0
    assert browser.view.live == {}
    assert "Hello," in browser.view.log


async def test_a_socket_that_comes_in_mid_answer_gets_the_text_from_its_first_character(
    conversation, alice, playing
):
    hold = Hold()
    with playing(reply(say("The first half, ", hold, "the second half."), chunk=4)):
        async with Browser(alice, conversation.uid) as first:
            await first.say(type="message", content="Go", key="k")
            await first.until(lambda: first.view.text == "The first half, ")
            async with Browser(alice, conversation.uid) as second:
                await second.hear_a("changes")
                assert second.view.text == "The first half, "
                hold.release.set()
                await first.rest()
                await second.rest()
    assert second.view.gaps == 0
    assert "The first half, the second half." in second.view.log
    assert second.view.place("log") == first.view.place("log")
    assert second.view.panels == first.view.panels


async def test_what_was_streamed_equals_what_a_reload_draws(conversation, alice, playing):
    script = (
        reply(think("Let me see."), say("I write it.\n\n"), call("think", thought="x"), chunk=5),
        reply(say("Done: `x`.")),
    )
    with playing(*script):
        async with Browser(alice, conversation.uid) as browser:
            before = await sync_to_async(page)(conversation)
            browser.view.panels.update(before.panels)
            await browser.say(type="message", content="Write it", key="k")
            await browser.until(lambda: "Done:" in browser.view.log)
            await browser.rest()
            await browser.say(type="ping")
            await browser.hear_a("pong")
    loaded = await sync_to_async(page)(conversation)
    assert browser.view.place("log") == [str(unit) for unit in loaded.units]
    assert browser.view.place("queue") == [str(unit) for unit in loaded.queue]
    assert browser.view.panels == loaded.panels


async def test_asking_again_brings_a_snapshot(conversation, alice, playing):
    hold = Hold()
    with playing(reply(say("So far", hold))):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="Go", key="k")
            await browser.until(lambda: browser.view.text == "So far")
            await browser.say(type="resync")
            snapshot = await browser.hear_a("snapshot")
            hold.release.set()
            await browser.rest()
    assert [block["text"] for block in snapshot["blocks"]] == ["So far"]


async def test_a_nudge_that_was_lost_heals_itself(conversation, alice, monkeypatch):
    monkeypatch.setattr(following, "RECHECK_SECONDS", 0.05)
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        monkeypatch.setattr(hub, "nudge", lambda uid, seq: None)
        await log_message(conversation, "unheard")
        await browser.until(lambda: "unheard" in "".join(browser.view.place("queue")))


async def test_many_events_at_once_are_drawn_by_few_reads(conversation, alice):
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")

        def grow() -> None:
            for number in range(60):
                append(conversation.pk, [Entry.of(SessionUpdated(title=f"title {number}"))])

        await sync_to_async(grow)()
        await browser.until(lambda: browser.view.seq == 60)
    assert browser.view.panels["title"] == "title 59"
    reads = [frame for frame in browser.frames if frame["type"] == "changes"]
    assert len(reads) < 60


# --- commands -------------------------------------------------------------------------------------


async def test_a_stop_in_mid_answer_ends_with_exactly_one_rest(conversation, alice, playing):
    """A cancel does not drop the connection, and has a last word."""
    hold = Hold()
    with playing(reply(say("Half of ", hold, "it"))):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="Go", key="k")
            await browser.until(lambda: browser.view.text == "Half of ")
            await browser.say(type="stop", key="s")
            assert (await browser.hear_a("accepted"))["key"] == "s"
            await browser.rest()
            assert browser.view.live == {}
            assert "Half of" in browser.view.log
            await browser.say(type="stop", key="again")
            again = await browser.hear_a("accepted")
    assert (again["key"], again["seq"], again["uid"]) == ("again", None, None)
    types = await events_of(conversation)
    assert types.count("session.status_idle") == 1
    assert types[-1] == "session.status_idle"


async def test_a_message_while_running_waits_visibly_and_is_answered(conversation, alice, playing):
    """No frame that comes while a turn runs is lost."""
    hold = Hold()
    with playing(reply(say("First", hold)), reply("Second")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="one", key="1")
            await browser.until(lambda: browser.view.text == "First")
            await browser.say(type="message", content="two", key="2")
            await browser.until(lambda: "two" in "".join(browser.view.place("queue")))
            hold.release.set()
            await browser.until(lambda: "Second" in browser.view.log)
            await browser.rest()
    assert browser.view.place("queue") == []
    log = browser.view.log
    assert log.index("one") < log.index("First") < log.index("two") < log.index("Second")


async def test_interrupt_now_ends_the_answer_and_goes_first(conversation, alice, playing):
    """An interrupt with its text in one frame."""
    hold = Hold()
    with playing(reply(say("Slow", hold)), reply("Quick"), reply("Later")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="one", key="1")
            await browser.until(lambda: browser.view.text == "Slow")
            await browser.say(type="message", content="waits", key="2")
            await browser.say(type="message", content="now", key="3", interrupt=True)
            await browser.until(lambda: "Later" in browser.view.log)
            await browser.rest()
    log = browser.view.log
    assert log.index("Slow") < log.index("now") < log.index("Quick") < log.index("Later")


async def test_the_same_key_again_is_one_message(conversation, alice, playing):
    with playing(reply("Once"), reply("Twice")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="Go", key="k")
            first = await browser.hear_a("accepted")
            await browser.rest()
        async with Browser(alice, conversation.uid) as again:
            await again.say(type="message", content="Go", key="k")
            assert await again.hear_a("accepted") == first
    assert (await events_of(conversation)).count("user.message") == 1


async def test_a_queued_message_is_withdrawn_and_disappears(conversation, alice, playing):
    hold = Hold()
    with playing(reply(say("First", hold))):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="one", key="1")
            await browser.until(lambda: browser.view.text == "First")
            await browser.say(type="message", content="two", key="2")
            waiting = await browser.hear_a("accepted")
            await browser.until(lambda: waiting["uid"] in browser.view.units)
            await browser.say(type="withdraw", message=waiting["uid"])
            await browser.until(lambda: waiting["uid"] not in browser.view.units)
            hold.release.set()
            await browser.rest()
    assert "two" not in browser.view.log


async def test_a_queued_message_is_edited_and_only_its_last_words_are_answered(
    conversation, alice, playing
):
    hold = Hold()
    with playing(reply(say("First", hold)), reply("Second")) as played:
        async with Browser(alice, conversation.uid) as browser:
            uid = await queue_behind_an_answer(browser)
            await browser.say(type="edit", message=uid, content="three instead", key="e")
            assert (await browser.hear_a("accepted"))["key"] == "e"
            await browser.until(lambda: "three instead" in browser.view.units[uid]["html"])
            assert browser.view.units[uid]["place"] == "queue"
            hold.release.set()
            await browser.until(lambda: "Second" in browser.view.log)
            await browser.rest()
    asked = str(played.requests[-1].messages[-1])
    assert "three instead" in asked
    assert "two" not in asked
    assert "three instead" in browser.view.log


async def test_a_steered_message_joins_the_answer_under_way(conversation, alice, playing):
    hold = Hold()
    steps = (reply(say("First", hold), call("think", thought="x")), reply("Second"))
    with playing(*steps) as played:
        async with Browser(alice, conversation.uid) as browser:
            uid = await queue_behind_an_answer(browser)
            await browser.say(type="steer", message=uid, key="s")
            assert (await browser.hear_a("accepted"))["key"] == "s"
            await browser.until(lambda: "steered" in browser.view.units[uid]["html"])
            hold.release.set()
            await browser.until(lambda: "Second" in browser.view.log)
            await browser.rest()
    assert len(played.requests) == 2, "it was answered in the same turn"
    assert "two" in str(played.requests[-1].messages[-1])
    assert (await events_of(conversation)).count("session.status_idle") == 1


@pytest.mark.parametrize("frame", [{"type": "edit", "content": "too late"}, {"type": "steer"}])
async def test_a_message_that_was_taken_is_neither_edited_nor_steered(
    conversation, alice, playing, frame
):
    with playing(reply("Answered")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="one", key="1")
            taken = (await browser.hear_a("accepted"))["uid"]
            await browser.until(lambda: "Answered" in browser.view.log)
            await browser.rest()
            before = await events_of(conversation)
            await browser.say(**frame, message=taken, key="late")
            error = await browser.hear_a("error")
            await browser.say(type="ping")
            await browser.hear_a("pong")
    assert (error["code"], error["key"]) == ("conflict", "late")
    assert error["hint"]
    assert await events_of(conversation) == before


@pytest.mark.parametrize("frame", [{"type": "edit", "content": "mine now"}, {"type": "steer"}])
async def test_mallory_reaches_no_message_of_alices_through_her_own_conversation(
    conversation, mallory, elsewhere, frame
):
    waiting = await log_message(conversation, "alice's")
    own = await sync_to_async(Conversation.objects.create)(
        organisation=elsewhere,
        owner=mallory,
        agent_version=conversation.agent_version,
        environment=conversation.environment,
    )
    async with Browser(mallory, own.uid) as browser:
        await browser.say(**frame, message=waiting.uid, key="m")
        error = await browser.hear_a("error")
        await browser.say(**frame, message="sevt_none", key="m")
        assert await browser.hear_a("error") == error
    assert error["code"] == "not_found"
    assert await events_of(conversation) == ["user.message"]


async def test_a_switch_is_turned_over_the_socket(conversation, alice):
    async with Browser(alice, conversation.uid) as browser:
        await browser.say(type="feature", feature="plan_mode", enabled=True, key="k")
        assert (await browser.hear_a("accepted"))["key"] == "k"
    await sync_to_async(conversation.refresh_from_db)()
    assert conversation.features.plan_mode


async def test_a_switch_turned_in_one_tab_is_turned_in_the_other(conversation, alice):
    async with Browser(alice, conversation.uid) as one, Browser(alice, conversation.uid) as other:
        await other.hear_a("changes")
        await one.say(type="feature", feature="approval", enabled=True)
        await other.until(lambda: "features" in other.view.panels)
    stands = {
        "plan_mode": False,
        "approval": True,
        "teams": False,
        "tracing": False,
        "memory": True,
    }
    assert other.view.panels["features"] == stands
    assert (await sync_to_async(page)(conversation)).panels["features"] == stands


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "withdraw", "message": "sevt_none"}, "not_found"),
        ({"type": "edit", "message": "sevt_none", "content": "a"}, "not_found"),
        ({"type": "steer", "message": "sevt_none"}, "not_found"),
        ({"type": "decide", "call": "sevt_none", "allow": False}, "not_found"),
        ({"type": "feature", "feature": "flying", "enabled": True}, "invalid"),
        ({"type": "retry"}, "conflict"),
    ],
)
async def test_what_an_action_declines_is_said_and_the_socket_stays(
    conversation, alice, frame, code
):
    async with Browser(alice, conversation.uid) as browser:
        await browser.say(**frame, key="mine")
        error = await browser.hear_a("error")
        assert (error["code"], error["key"]) == (code, "mine")
        assert error["message"]
        await browser.say(type="ping")
        await browser.hear_a("pong")


async def test_no_frame_however_malformed_ends_the_connection(conversation, alice, settings):
    settings.AGENTSITE_SOCKET_FRAME_BYTES = 1_000
    corpus = ["", "null", "3", "[]", "{", '"stop"', "{}", '{"type":"?"}', "x" * 1_001, "\0"]
    async with Browser(alice, conversation.uid) as browser:
        for text in corpus:
            await browser.say_raw(text)
            error = await browser.hear_a("error")
            assert error["code"] in {"bad_frame", "unknown_frame", "too_large"}
            assert error["hint"]
        await browser.say_raw(data=b"\x00\xff")
        assert (await browser.hear_a("error"))["code"] == "bad_frame"
        await browser.say(type="ping")
        await browser.hear_a("pong")
    assert await events_of(conversation) == []


# --- going away -----------------------------------------------------------------------------------


async def test_closing_the_socket_cancels_nothing(conversation, alice, playing):
    """The turn is not lost with its connection."""
    hold = Hold()
    with playing(reply(say("Half, ", hold, "whole"))):
        async with Browser(alice, conversation.uid) as browser:
            await browser.say(type="message", content="Go", key="k")
            await browser.until(lambda: browser.view.text == "Half, ")
        hold.release.set()
        async with Browser(alice, conversation.uid) as back:
            await back.until(lambda: "Half, whole" in back.view.log)
            await back.rest()


async def test_whoever_loses_her_membership_is_shown_out(conversation, alice, monkeypatch):
    monkeypatch.setattr(following, "RECHECK_SECONDS", 0.05)
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        await sync_to_async(Membership.objects.filter(user=alice).delete)()
        await log_message(conversation, "not for her any more")
        assert (await browser.hear())["code"] == "not_found"
        assert await browser.hear() == {"type": "close", "code": 4404}
    assert "not for her" not in str(browser.frames)


async def test_whoever_signs_out_is_shown_out(conversation, alice, monkeypatch):
    monkeypatch.setattr(following, "RECHECK_SECONDS", 0.05)
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        await sync_to_async(browser._client.logout)()
        assert (await browser.hear())["code"] == "anonymous"
        assert (await browser.hear())["code"] == 4401


async def test_a_command_after_signing_out_is_refused_by_its_key_and_ends_the_socket(
    conversation, alice
):
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        await sync_to_async(browser._client.logout)()
        await browser.say(type="message", content="still here?", key="k")
        told = [await browser.hear() for _ in range(3)]
    assert [(error["code"], error["key"]) for error in told[:2]] == [
        ("anonymous", "k"),
        ("anonymous", None),
    ]
    assert told[2] == {"type": "close", "code": 4401}
    assert await events_of(conversation) == []


async def test_a_changed_password_ends_open_sockets(conversation, alice, monkeypatch):
    monkeypatch.setattr(following, "RECHECK_SECONDS", 0.05)
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        alice.set_password("another battery staple")
        await sync_to_async(alice.save)(update_fields=["password"])
        assert (await browser.hear())["type"] == "error"
        assert (await browser.hear())["type"] == "close"


async def test_a_command_after_losing_membership_does_nothing(conversation, alice):
    async with Browser(alice, conversation.uid) as browser:
        await browser.hear_a("changes")
        await sync_to_async(Membership.objects.filter(user=alice).delete)()
        await browser.say(type="message", content="still here?", key="k")
        assert (await browser.hear_a("error"))["code"] == "not_found"
    assert await events_of(conversation) == []


async def test_another_door_posts_and_the_socket_shows_it(conversation, alice, playing):
    with playing(reply("Heard.")):
        async with Browser(alice, conversation.uid) as browser:
            await browser.hear_a("changes")
            await sync_to_async(post_message)(actor=alice, conversation=conversation, text="Hello")
            await browser.until(lambda: "Heard." in browser.view.log)
            await browser.rest()
