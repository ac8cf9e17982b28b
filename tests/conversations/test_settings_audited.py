"""Who set up, changed or took away what others rely on stands in the audit log, in words and without
secrets."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import Organisation, User
from agents.actions import agents, environments, prompts
from agents.models import Environment, Prompt
from agentsite.seeding import seed
from audit.models import AuditEntry
from conversations.actions import preferences
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.errors import Declined
from spending.actions import budgets, prices
from spending.models import Budget, ModelPrice
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, MakeAgent
from webhooks.actions import endpoints as hooks

pytestmark = pytest.mark.django_db

HOOK = "https://hooks.example.invalid/services/hidden-part?key=hidden-key"


def actions() -> list[str]:
    """Of what was told since the organisations were made, in order."""
    found = AuditEntry.objects.exclude(action="organisation_made").order_by("pk")
    return list(found.values_list("action", flat=True))


@pytest.fixture
def on_the_page(client_of: ClientOf) -> Callable[[User], list[str]]:
    """The rows of the audit log as somebody reads them, the newest first."""

    def read(person: User) -> list[str]:
        page = client_of(person).get("/approvals/audit/").content.decode()
        rows = re.findall(r"<tr>\s*<td>(.*?)</tr>", page, re.DOTALL)
        plain = [html.unescape(re.sub(r"<[^>]+>", " ", row)) for row in rows]
        return [" ".join(row.split()) for row in plain]

    return read


def change(staff: User, environment: Environment, **values: Any) -> Environment:
    given = {
        "name": environment.name,
        "description": environment.description,
        "upload_limit": environment.upload_limit,
        **values,
    }
    return environments.change_environment(actor=staff, environment=environment, **given)


def test_everything_about_environments_is_told(
    staff: User, alice: User, acme: Organisation, on_the_page: Callable[[User], list[str]]
) -> None:
    made = environments.create_environment(
        actor=staff, organisation=acme, name="Build", description="", upload_limit=5
    )
    change(staff, made)
    policy = "resources: {pids: 20}"
    change(staff, made, name="Builds", upload_limit=6, backend="bubblewrap", policy=policy)
    environments.trust_workers(actor=staff, environment=made, trusted=True)
    environments.trust_workers(actor=staff, environment=made, trusted=True)
    environments.archive_environment(actor=staff, environment=made)
    environments.archive_environment(actor=staff, environment=made, archived=False)
    environments.delete_environment(actor=staff, environment=made)

    assert actions() == [
        "environment_made",
        "environment_changed",
        "environment_changed",
        "environment_archived",
        "environment_changed",
        "environment_deleted",
    ]
    deleted, offered, archived, trusting, changed, _made = on_the_page(alice)[:6]
    assert "environment deleted" in deleted
    assert f"environment: {made.uid} name: Builds" in deleted
    assert "archived: no" in offered
    assert "environment archived" in archived
    assert "trusts workers: yes" in trusting
    assert "environment changed" in changed
    assert "staff" in changed
    assert "changed: name, upload limit, backend, policy" in changed.replace("_", " ")
    assert "before: name: Build, upload limit: 5, backend: –" in changed
    assert "after: name: Builds, upload limit: 6, backend: bubblewrap" in changed


def test_what_an_organisation_takes_away_from_sandboxes_is_told(
    staff: User, alice: User, acme: Organisation, on_the_page: Callable[[User], list[str]]
) -> None:
    for policy in ("resources: {pids: 20}", "resources: {pids: 20}", "", ""):
        environments.set_sandbox_rules(actor=staff, organisation=acme, policy=policy)

    assert actions() == ["sandbox_rules_set", "sandbox_rules_set"]
    taken, made = on_the_page(alice)[:2]
    assert "removed: yes" in taken
    assert "rules for sandboxes changed" in made
    assert "version: 1" in made


def test_everything_about_budgets_is_told(
    alice: User,
    bob: User,
    acme: Organisation,
    converse: Converse,
    on_the_page: Callable[[User], list[str]],
) -> None:
    conversation: Conversation = converse()[0]

    def cap(limit: int, **about: Any) -> Budget:
        given = {"scope": Budget.Scope.ORGANISATION, "unit": "tokens", "period": "day", **about}
        return budgets.set_budget(actor=alice, limit=limit, organisation=acme, **given)

    for limit in (1_000, 1_000, 2_000):
        held = cap(limit)
    budgets.remove_budget(actor=alice, budget=held)
    cap(120_000_000, scope=Budget.Scope.USER, user=bob, unit="money", period="month")
    cap(50, scope=Budget.Scope.CONVERSATION, conversation=conversation)

    assert actions() == ["budget_set", "budget_set", "budget_lifted", "budget_set", "budget_set"]
    one_talk, bobs, lifted, raised, _made = on_the_page(alice)[:5]
    assert conversation.uid in one_talk
    assert f"limit: 1.2 USD period: month person: bob ({bob.uid})" in bobs
    assert "budget lifted" in lifted
    assert "limit: 2000 tokens period: day before: 1000 tokens" in raised
    assert f"budget: {held.uid} scope: organisation" in raised


def test_everything_about_webhooks_is_told_and_neither_secret_nor_path(
    alice: User, acme: Organisation, on_the_page: Callable[[User], list[str]]
) -> None:
    issued = hooks.create_endpoint(
        actor=alice, organisation=acme, url=HOOK, event_types=["session.created"]
    )
    named: dict[str, Any] = {"actor": alice, "endpoint": issued.endpoint}
    elsewhere = "https://other.example.invalid/hidden-part"
    for url in (HOOK, elsewhere):
        hooks.change_endpoint(**named, url=url, event_types=["session.created"])
    hooks.disable_endpoint(**named)
    hooks.disable_endpoint(**named)
    hooks.enable_endpoint(**named)
    again = hooks.rotate_secret(**named, grace_hours=0)
    hooks.remove_endpoint(**named)

    assert actions() == ["webhook_made", *["webhook_changed"] * 4, "webhook_removed"]
    removed, rotated, enabled, disabled, moved, made = on_the_page(alice)[:6]
    assert f"webhook: {issued.endpoint.uid} address: https://other.example.invalid" in removed
    assert "changed: secret old signs hours: 0" in rotated
    assert "enabled: yes" in enabled
    assert "enabled: no" in disabled
    assert "changed: url before: https://hooks.example.invalid" in moved
    assert "events: session.created" in made
    written = str(list(AuditEntry.objects.values()))
    for secret in (issued.secret, again.secret, "hidden"):
        assert secret not in written


def test_shared_defaults_are_told_with_what_they_were(
    staff: User,
    alice: User,
    acme: Organisation,
    make_agent: MakeAgent,
    on_the_page: Callable[[User], list[str]],
) -> None:
    first, second = make_agent("First"), make_agent("Second")
    for agent in (first, first, second):
        preferences.set_shared_defaults(
            actor=alice, organisation=acme, agent=agent, environment=None
        )
    preferences.clear_shared_defaults(actor=alice, organisation=acme)
    preferences.clear_shared_defaults(actor=alice, organisation=acme)
    preferences.set_shared_defaults(actor=staff, organisation=None, agent=first, environment=None)

    assert actions() == ["defaults_set"] * 4
    cleared, changed = on_the_page(alice)[:2]
    assert "after: agent: –, environment: –" in cleared
    assert "shared defaults changed" in changed
    assert f"before: agent: First ({first.uid}), environment: –" in changed
    assert f"after: agent: Second ({second.uid}), environment: –" in changed
    assert f"First ({first.uid})" in on_the_page(staff)[0], "the server's"


def test_everything_about_agents_is_told(
    alice: User, acme: Organisation, on_the_page: Callable[[User], list[str]]
) -> None:
    config = AgentConfig(provider="demo")
    made = agents.create_agent(
        actor=alice, organisation=acme, name="Ours", description="", config=config
    )
    named: dict[str, Any] = {"actor": alice, "agent": made}
    stricter = config.model_copy(update={"instructions": "Be brief."})
    for given in (config, stricter):
        agents.change_agent(**named, name="Ours", description="", config=given)
    agents.restore_version(**named, number=1)
    agents.archive_agent(**named)
    agents.delete_agent(**named)

    assert actions() == [
        "agent_made",
        "agent_changed",
        "agent_changed",
        "agent_archived",
        "agent_deleted",
    ]
    changed = on_the_page(alice)[3]
    assert f"agent: {made.uid} name: Ours version: 2 changed: instructions" in changed


def test_prices_and_prompts_are_told(staff: User, on_the_page: Callable[[User], list[str]]) -> None:
    seed()
    rates = dict.fromkeys(prices.RATES, Decimal("1.5"))
    price: ModelPrice = prices.create_price(
        actor=staff, provider="demo", model="own-1", from_prompt_tokens=0, rates=rates
    )
    for cost in ("1.5", "2"):
        given = {**rates, "output": Decimal(cost)}
        prices.change_price(actor=staff, price=price, rates=given)
    prices.delete_price(actor=staff, price=price)
    prompt = Prompt.objects.get(name="compaction-request")
    for _twice in range(2):
        prompts.change_prompt(actor=staff, prompt=prompt, text="Sum it up.")
    for _twice in range(2):
        prompts.reset_prompt(actor=staff, prompt=prompt)

    assert actions() == ["price_set"] * 2 + ["price_removed"] + ["prompt_changed"] * 2
    reset, reworded, _removed, changed, _made = on_the_page(staff)[:5]
    assert "prompt: compaction-request reset: yes" in reset
    assert "characters: 10" in reworded
    assert "model: own-1" in changed
    assert "output: 1.5" in changed
    assert "output: 2" in changed


def test_what_was_refused_is_not_told_and_others_read_nothing(
    bob: User,
    mallory: User,
    alice: User,
    acme: Organisation,
    environment: Environment,
    on_the_page: Callable[[User], list[str]],
) -> None:
    for attempt in (
        lambda: environments.trust_workers(actor=bob, environment=environment, trusted=True),
        lambda: environments.set_sandbox_rules(actor=alice, organisation=acme, policy=""),
        lambda: preferences.clear_shared_defaults(actor=bob, organisation=acme),
        lambda: hooks.create_endpoint(
            actor=mallory, organisation=acme, url=HOOK, event_types=["*"]
        ),
        lambda: budgets.set_budget(
            actor=bob,
            scope=Budget.Scope.ORGANISATION,
            unit="tokens",
            period="day",
            limit=1,
            organisation=acme,
        ),
    ):
        with pytest.raises(Declined):
            attempt()
    assert actions() == []

    hooks.create_endpoint(actor=alice, organisation=acme, url=HOOK, event_types=["*"])

    assert "webhook made" in on_the_page(alice)[0]
    for person in (bob, mallory):
        assert not any("webhook made" in row for row in on_the_page(person))
