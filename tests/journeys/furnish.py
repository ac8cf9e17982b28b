"""What journeys have done in the site's own process (`serve`), by its actions and with its settings."""

from __future__ import annotations

from datetime import time, timedelta
from decimal import Decimal

from django.core.management import call_command


def furnish() -> None:
    """One of everything that the admin lists, before a start adds what it brings along: alice, who owns it,
    is an operator and signs in with `people.PASSWORD`."""
    # They need the apps.
    from allauth.account.models import EmailAddress  # noqa: PLC0415
    from allauth.mfa.models import Authenticator  # noqa: PLC0415
    from allauth.socialaccount.models import SocialAccount  # noqa: PLC0415
    from axes.models import AccessAttempt, AccessFailureLog, AccessLog  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from agents.actions.agents import change_agent, create_agent  # noqa: PLC0415
    from agents.actions.environments import set_sandbox_rules  # noqa: PLC0415
    from agents.models import Environment  # noqa: PLC0415
    from brief.actions.wishes import set_brief  # noqa: PLC0415
    from conversations.actions.preferences import set_shared_defaults  # noqa: PLC0415
    from conversations.models import (  # noqa: PLC0415
        Activation,
        Conversation,
        ModelTrace,
        Run,
    )
    from deadletters.models import DeadLetter  # noqa: PLC0415
    from decay.actions import rules as fades  # noqa: PLC0415
    from decay.models import DecayRun, Step  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415
    from learning.models import Analysis  # noqa: PLC0415
    from mcpclients.models import McpClient  # noqa: PLC0415
    from mcpservers.models import McpServer, McpTool  # noqa: PLC0415
    from memory.models import MemoryStore  # noqa: PLC0415
    from receipts.signing import current_key  # noqa: PLC0415
    from retention.actions.rules import save_rule  # noqa: PLC0415
    from schedules.models import Arrival, StandingOrder  # noqa: PLC0415
    from sharedfiles.models import SharedVersion  # noqa: PLC0415
    from sharedfiles.versions import sha256_of  # noqa: PLC0415
    from skills_app.models import SkillPackages  # noqa: PLC0415
    from spending.actions.budgets import set_budget  # noqa: PLC0415
    from spending.amounts import units_of  # noqa: PLC0415
    from spending.models import Budget, Usage  # noqa: PLC0415
    from tests.architecture.conftest import alices_objects  # noqa: PLC0415
    from tests.cast import make_user  # noqa: PLC0415
    from titles.models import TitleRequest  # noqa: PLC0415

    call_command("migrate", verbosity=0)  # nothing to do where the database is a copy
    alice = make_user("alice", is_staff=True, is_superuser=True)
    acme = create_organisation(actor=alice, name="Acme")
    current_key()
    set_brief(actor=alice, organisation=acme, is_on=False, at=time(7, 30), zone="UTC")
    rules = [
        {"tool": "*"},
        {"tool": "bash", "permission": "always_ask"},
        {
            "tool": "bash",
            "permission": "always_deny",
            "when": {"argument": "command", "prefix": "git push"},
        },
        {
            "tool": "write_file",
            "permission": "always_ask",
            "when": {"argument": "path", "path": "live/**"},
            "options": {"two_people": True, "expires_seconds": 3600},
        },
    ]
    agent = create_agent(
        actor=alice,
        organisation=acme,
        name="Coder",
        description="Writes and mends code",
        config=AgentConfig.model_validate({"provider": "demo", "tools": rules}),
    )
    agent = change_agent(
        actor=alice,
        agent=agent,
        name=agent.name,
        description=agent.description,
        config=AgentConfig.model_validate(
            {"provider": "demo", "tools": rules, "instructions": "Be brief."}
        ),
        expected_version=1,
    )
    assert agent.current is not None
    conversation = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=agent.current,
        environment=Environment.objects.create(name="Here", organisation=acme),
        title="Alice's plans",
    )
    alices_objects(alice, acme, conversation)
    now = timezone.now()
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    Authenticator.objects.create(user=alice, type=Authenticator.Type.RECOVERY_CODES, data={})
    SocialAccount.objects.create(user=alice, provider="oidc", uid="alice-elsewhere")
    seen = {"username": "alice", "ip_address": "192.0.2.1", "user_agent": "A browser"}
    AccessAttempt.objects.create(**seen, failures_since_start=2)
    AccessLog.objects.create(**seen)
    AccessFailureLog.objects.create(**seen)
    set_sandbox_rules(actor=alice, organisation=acme, policy='{"require": ["no_network"]}')
    set_budget(
        actor=alice,
        scope=Budget.Scope.ORGANISATION,
        organisation=acme,
        unit="money",
        period="month",
        limit=units_of(Decimal(50)),
    )
    set_shared_defaults(actor=alice, organisation=acme, agent=agent, environment=None)
    save_rule(actor=alice, organisation=acme, days=365)
    store = MemoryStore.objects.get(owner=alice)
    fades.save_rule(actor=alice, store=store, days={Step.SUMMARY: 90, Step.GONE: 900})
    DecayRun.objects.create(
        store=store, rule_version=1, summaries=2, markers=0, gone=1, tokens_saved=300
    )
    run = Run.objects.create(
        conversation=conversation,
        state=Run.State.FAILED,
        worker="worker-1",
        error="It broke.",
        lease_until=now,
        ended_at=now,
    )
    Activation.objects.create(
        conversation=conversation, run=run, step=Activation.Step.LEASED, worker="worker-1"
    )
    ModelTrace.objects.create(
        conversation=conversation, model_request_id="mreq_1", request={"model": "demo"}
    )
    Usage.objects.create(
        organisation=acme,
        user=alice,
        charged_to=alice,
        conversation=conversation,
        run=run,
        model_request_id="mreq_1",
        purpose="reply",
        provider="anthropic",
        model="claude-sonnet-5-5",
        input_tokens=1_200,
        output_tokens=300,
        cost="0.0123",
    )
    TitleRequest.objects.create(
        conversation=conversation,
        provider="anthropic",
        model="claude-haiku-5-5",
        outcome=TitleRequest.Outcome.TITLED,
    )
    Analysis.objects.create(
        conversation=conversation,
        provider="anthropic",
        model="claude-haiku-5-5",
        outcome=Analysis.Outcome.NOTHING,
    )
    DeadLetter.objects.create(
        conversation=conversation,
        organisation=acme,
        run=run,
        code="overloaded",
        cause=DeadLetter.Cause.TRANSIENT,
        error_seq=1,
        message="The service is overloaded.",
        failed_at=now - timedelta(minutes=5),
    )
    McpClient.objects.create(name="Notes", redirect_uris=["https://client.example/back"])
    McpTool.objects.create(
        server=McpServer.objects.earliest("pk"),
        remote_name="search",
        name="mcp__mine__search",
        state=McpTool.State.NEW,
        seen={"name": "search", "description": "Search.", "input_schema": {"type": "object"}},
    )
    SkillPackages.objects.create(
        needs="0" * 64,
        wanted={"packages": ["charts>=2"], "python": ">=3.11"},
        state=SkillPackages.State.FAILED,
        problem="The index could not be reached.",
    )
    Arrival.objects.create(
        order=StandingOrder.objects.get(),
        key="0" * 64,
        sender="carol@example.org",
        subject="Prices",
        refusal=Arrival.Refusal.PAUSED,
    )
    for number, content in enumerate((b"one\ntwo\n", b"one\nthree\n"), start=1):
        SharedVersion.objects.create(
            organisation=acme,
            agent=agent,
            path="notes.md",
            number=number,
            content=content,
            sha256=sha256_of(content),
            conversation=conversation,
            owner=alice,
        )


def instruct(name: str, instructions: str) -> None:
    """Give the only organisation an agent with these instructions, as staff do in the admin."""
    from accounts.models import Organisation, User  # noqa: PLC0415
    from agents.actions.agents import change_agent, create_agent  # noqa: PLC0415
    from agents.models import Agent  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415

    alice = User.objects.get(username="alice")
    config = AgentConfig(provider="demo", instructions=instructions)
    agent = Agent.objects.filter(name=name).first()
    if agent is not None:
        change_agent(actor=alice, agent=agent, name=name, description="", config=config)
        return
    create_agent(
        actor=alice,
        organisation=Organisation.objects.get(),
        name=name,
        description="",
        config=config,
    )
