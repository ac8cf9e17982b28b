"""The pages on which members find, make, change and share agents."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from agents.actions.agents import create_agent
from agents.actions.own import make_own_agent
from agents.actions.reviews import ask_for_review, decide_review
from agents.models import Agent, AgentReview
from agents.narrowing import Wishes
from harness.agentconfig import AgentConfig, Features, ToolRule
from harness.patterns import When
from tests.cast import shown

CONFIG = AgentConfig(
    provider="demo",
    instructions="Help.",
    tools=(
        ToolRule(tool="read_file"),
        ToolRule(tool="write_file"),
        ToolRule(tool="bash", permission="always_ask"),
        ToolRule(tool="web_fetch", permission="always_deny"),
    ),
)


@pytest.fixture
def preset(staff):
    return create_agent(
        actor=staff, organisation=None, name="Work", description="Writes.", config=CONFIG
    )


@pytest.fixture
def own(bob, acme, preset):
    return make_own_agent(
        actor=bob,
        organisation=acme,
        base=preset,
        name="Reviewer",
        description="",
        wishes=Wishes(instructions="Review.", provider="demo"),
    )


@pytest.fixture
def bobs(client_of, bob):
    return client_of(bob)


@pytest.fixture
def alices(client_of, alice):
    return client_of(alice)


def page(name: str, *args: Any) -> str:
    return reverse(f"agents:{name}", args=args)


def filled(acme, **values: Any) -> dict[str, Any]:
    given = {
        "name": "Reviewer",
        "instructions": "Review.",
        "model": "demo|",
        "use": ["read_file", "write_file", "bash"],
        "memory": "on",
        **values,
    }
    return shown(acme, **given)


# --- the list -------------------------------------------------------------------------------------


def test_the_list_tells_apart_whose_agents_are_whose(bobs, alices, own, preset):
    answer = bobs.get(page("agents"))
    groups = {place: [str(each) for each in agents] for place, agents in answer.context["groups"]}
    assert groups == {"own": ["Reviewer"], "server": ["Work"]}
    assert [place for place, _agents in alices.get(page("agents")).context["groups"]] == ["server"]


def test_words_are_searched_in_names_and_descriptions(bobs, own, preset):
    def found(words: str) -> list[str]:
        groups = bobs.get(page("agents"), {"q": words}).context["groups"]
        return [str(each) for _place, agents in groups for each in agents]

    assert found("review") == ["Reviewer"]
    assert found("wor writes") == ["Work"]
    assert found("nothing-has-this") == []


def test_one_is_put_away_and_offered_again(bobs, own):
    bobs.post(page("agent-archive", own.uid), {"archived": "1"})
    assert bobs.get(page("agents")).context["groups"][0][0] != "own"
    assert b"Reviewer" in bobs.get(page("agents"), {"archived": "1"}).content
    bobs.post(page("agent-archive", own.uid), {"archived": "0"})
    assert bobs.get(page("agents")).context["groups"][0][0] == "own"


# --- the form -------------------------------------------------------------------------------------


def test_the_form_makes_an_agent_with_fewer_tools(bobs, bob, acme, preset):
    answer = bobs.post(
        page("agent-new"),
        filled(acme, base=preset.uid, use=["read_file", "bash"], ask=["read_file"], effort="high"),
    )

    made = Agent.objects.get(owner=bob)
    assert answer.url == page("agent", made.uid)
    config = made.current.config
    assert config.tools[len(CONFIG.tools) :] == (
        ToolRule(tool="read_file", permission="always_ask"),
        ToolRule(tool="write_file", permission="always_deny"),
    )
    assert (config.effort, config.provider, config.model) == ("high", "demo", "")


def test_the_form_shows_what_the_base_allows_and_what_was_chosen(bobs, acme, own):
    bobs.post(page("agent", own.uid), filled(acme, use=["read_file"], ask=["read_file"]))
    form = bobs.get(page("agent", own.uid)).context["form"]

    rows = {row.offered.name: row for _group, rows in form.tool_groups() for row in rows}
    assert rows.keys() == {"read_file", "write_file", "bash"}
    assert (rows["read_file"].used, rows["read_file"].asks) == (True, True)
    assert not rows["write_file"].used
    assert rows["bash"].offered.asks


def test_what_is_posted_beyond_the_boxes_widens_nothing(bobs, acme, own):
    bobs.post(page("agent", own.uid), filled(acme, use=["web_fetch", "read_file", "nothing"]))

    own.refresh_from_db()
    rules = own.current.config.tools[len(CONFIG.tools) :]
    assert {rule.permission for rule in rules} == {"always_deny"}


def test_rules_that_have_no_box_stay(bobs, bob, acme, preset):
    rule = ToolRule(
        tool="bash", permission="always_deny", when=When(argument="command", prefix="git push")
    )
    made = make_own_agent(
        actor=bob,
        organisation=acme,
        base=preset,
        name="Careful",
        description="",
        wishes=Wishes(provider="demo", tools=(rule,)),
    )
    bobs.post(page("agent", made.uid), filled(acme, name="Careful", instructions="Anew."))

    made.refresh_from_db()
    assert made.current.number == 2
    assert made.current.config.tools == (*CONFIG.tools, rule)
    assert b"git push" in bobs.get(page("agent", made.uid)).content


def test_a_switch_that_holds_back_cannot_be_taken_off_by_the_form(bobs, bob, acme, staff):
    careful = create_agent(
        actor=staff,
        organisation=None,
        name="Asks",
        description="",
        config=CONFIG.model_copy(update={"features": Features(approval=True)}),
    )
    bobs.post(page("agent-new"), filled(acme, base=careful.uid))

    assert Agent.objects.get(owner=bob).current.config.features.approval


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", {"name": ""}),
        ("model", {"model": "nowhere|x"}),
        ("model_name", {"model": "openai_compatible|?"}),
        ("effort", {"effort": "endless"}),
    ],
)
def test_what_is_wrong_stands_beside_its_field(bobs, acme, own, field, values, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {
        "openai_compatible": {"base_url": "http://127.0.0.1:11434/v1"}
    }
    answer = bobs.post(page("agent", own.uid), filled(acme, **values))

    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    own.refresh_from_db()
    assert own.newest.number == 1


def test_another_model_goes_by_the_name_that_is_typed(bobs, acme, own, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {
        "openai_compatible": {"base_url": "http://127.0.0.1:11434/v1"}
    }
    bobs.post(
        page("agent", own.uid), filled(acme, model="openai_compatible|?", model_name="qwen4:8b")
    )

    own.refresh_from_db()
    assert own.current.config.provider == "openai_compatible"
    assert own.current.config.model == "qwen4:8b"


def test_only_providers_with_a_key_are_offered(bobs, own, settings):
    def offered() -> set[str]:
        choices = bobs.get(page("agent", own.uid)).context["form"].fields["model"].choices
        return {value.partition("|")[0] for _group, group in choices for value, _label in group}

    settings.AGENTSITE_PROVIDER_KEYS = {}
    assert offered() == {"auto", "demo"}
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "k" * 20}}
    assert offered() == {"auto", "demo", "anthropic"}


def test_a_tab_from_before_another_change_is_told(bobs, acme, own):
    bobs.post(page("agent", own.uid), filled(acme, instructions="One.", expected_version=1))
    answer = bobs.post(
        page("agent", own.uid), filled(acme, instructions="Two.", expected_version=1)
    )

    assert answer.status_code == 409
    assert b"Two." in answer.content
    own.refresh_from_db()
    assert own.newest.config.instructions == "One."


# --- sharing --------------------------------------------------------------------------------------


def test_a_review_is_asked_for_decided_and_seen(bobs, alices, own, acme):
    bobs.post(page("agent-share", own.uid), {"note": "For the whole team"})
    review = AgentReview.objects.get()
    assert b"For the whole team" in alices.get(page("reviews")).content
    answer = alices.get(page("review", review.uid))
    assert {change.field for change in answer.context["changes"]} == {"instructions"}
    refused = alices.post(page("review", review.uid), {"decision": "refuse"})
    assert (refused.status_code, list(refused.context["form"].errors)) == (422, ["reason"])

    alices.post(page("review", review.uid), {"decision": "approve"})

    own.refresh_from_db()
    assert not own.private
    groups = dict(alices.get(page("agents")).context["groups"])
    assert [str(each) for each in groups["organisation"]] == ["Reviewer"]
    assert alices.get(page("agent", own.uid)).status_code == 200
    assert alices.post(page("agent", own.uid), filled(acme)).status_code == 404


def test_who_asked_sees_why_it_was_refused_and_takes_back_the_next(bobs, bob, alice, own):
    decide_review(
        actor=alice,
        review=ask_for_review(actor=bob, agent=own),
        approve=False,
        reason="Too blunt by far",
    )
    assert b"Too blunt by far" in bobs.get(page("agent", own.uid)).content
    bobs.post(page("agent-share", own.uid), {})
    waiting = AgentReview.objects.waiting().get()
    own_decision = bobs.post(page("review", waiting.uid), {"decision": "approve"})
    assert own_decision.status_code == 422
    bobs.post(page("review-withdraw", waiting.uid))
    assert not AgentReview.objects.waiting().exists()


def test_versions_are_compared_and_brought_back(bobs, acme, own):
    bobs.post(page("agent", own.uid), filled(acme, instructions="Worse."))
    answer = bobs.get(page("agent-versions", own.uid), {"from": "1", "to": "2"})
    assert [change.field for change in answer.context["changes"]] == ["instructions"]
    assert bobs.get(page("agent-versions", own.uid), {"from": "x", "to": "2"}).status_code == 404

    bobs.post(page("agent-restore", own.uid), {"version": "1"})

    own.refresh_from_db()
    assert (own.current.number, own.current.config.instructions) == (3, "Review.")


def test_a_copy_is_opened_for_its_owner(alices, alice, preset):
    answer = alices.post(page("agent-duplicate", preset.uid))

    copied = Agent.objects.get(owner=alice)
    assert answer.url == page("agent", copied.uid)


def test_its_maker_begins_a_conversation_from_its_page_unless_it_is_archived(bobs, bob, own):
    begin = f'href="/new/?agent={own.uid}"'
    assert begin in bobs.get(page("agent", own.uid)).content.decode()
    bobs.post(page("agent-archive", own.uid), {"archived": "1"})
    assert begin not in bobs.get(page("agent", own.uid)).content.decode()


# --- trying out -----------------------------------------------------------------------------------


def test_what_is_tried_is_an_ordinary_conversation_with_a_version_of_ones_own(
    bobs, bob, acme, own, environment
):
    answer = bobs.post(reverse("tryouts:try", args=[own.uid]), filled(acme, instructions="Try."))

    own.refresh_from_db()
    begun = bob.conversations.get()
    assert answer.url == reverse("tryouts:tryout", args=[own.uid, begun.uid])
    assert (own.current.number, begun.agent_version.number) == (1, 2)
    opened = bobs.get(answer.url)
    assert opened.status_code == 200
    assert opened.context["conversation"] == begun
    assert opened.context["form"]["instructions"].value() == "Try."
    again = bobs.post(reverse("tryouts:try", args=[own.uid]), filled(acme, instructions="Try."))
    assert again.url == answer.url, "nothing was said in it yet"


def test_a_new_agent_is_tried_before_it_is_saved_anywhere_else(
    bobs, bob, acme, preset, environment
):
    answer = bobs.post(reverse("tryouts:try-new"), filled(acme, base=preset.uid))

    made = Agent.objects.get(owner=bob)
    assert answer.url.startswith(f"/agents/{made.uid}/try/")
    wrong = bobs.post(reverse("tryouts:try-new"), filled(acme, base=preset.uid, name=""))
    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["name"])


def test_without_a_place_to_work_the_form_says_so(bobs, acme, own):
    answer = bobs.post(reverse("tryouts:try", args=[own.uid]), filled(acme))

    assert answer.status_code == 422
    assert b"no environment" in answer.content


def test_nobody_tries_anothers_agent_or_shows_another_conversation(
    bobs, alices, alice, acme, own, converse
):
    others, _script = converse()
    for client, name, args in (
        (alices, "tryouts:try", [own.uid]),
        (alices, "tryouts:tryout", [own.uid, others.uid]),
        (bobs, "tryouts:tryout", [own.uid, others.uid]),
    ):
        address = reverse(name, args=args)
        send = client.post if name == "tryouts:try" else client.get
        assert send(address, filled(acme)).status_code == 404


def test_mallory_finds_no_page(client_of, mallory, elsewhere, bob, own):
    review = ask_for_review(actor=bob, agent=own)
    hers = client_of(mallory)
    for name in ("agent", "agent-versions"):
        assert hers.get(page(name, own.uid)).status_code == 404
    for name in ("agent", "agent-duplicate", "agent-archive", "agent-share", "agent-restore"):
        assert hers.post(page(name, own.uid), {"version": "1"}).status_code == 404
    for name in ("review", "review-withdraw"):
        assert hers.post(page(name, review.uid), {"decision": "approve"}).status_code == 404
    assert hers.get(page("agent-new"), {"base": own.uid}).status_code == 404
    assert b"Reviewer" not in hers.get(page("agents")).content
    assert b"Reviewer" not in hers.get(page("reviews")).content
