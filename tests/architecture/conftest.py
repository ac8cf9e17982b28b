"""A world in which everything that has an address belongs to alice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import Invitation, Membership, Organisation, ProviderKey, User
from agents.actions.agents import create_agent
from agents.actions.own import duplicate_agent
from agents.actions.reviews import ask_for_review
from agents.models import Agent, AgentVersion, Environment
from approvals.actions.rules import save_rule
from approvals.models import Approval
from brief.models import Brief
from comparisons.models import Comparison
from conversations.actions.files import Upload
from conversations.actions.links import make_link
from conversations.actions.stored_files import store_file
from conversations.log import append
from conversations.models import Conversation, Share
from documents.actions.collections import create_collection
from documents.actions.documents import add_document
from documents.models import Passage
from evals.actions.suites import create_suite, save_case
from evals.files import read_case
from evals.models import Evaluation, Trial
from evals.shipped import FIRST_CASE
from folders.actions.files import add_folder_file
from folders.actions.folders import create_folder
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.events import AgentToolUse, UserMessage
from harness.history import Entry
from hooks.models import Hook
from mcpservers.actions.servers import add_server
from mcpservers.models import McpQuestion, McpServer
from memory.actions.memories import create_memory
from memory.actions.stores import create_store
from notices.models import Device, Kind
from notices.stopping import stop_link
from pipelines.actions.definitions import save_pipeline
from pipelines.files import read_pipeline
from pipelines.models import PipelineRun
from programs.actions.resources import add_resource
from prompts.actions.prompts import create_prompt
from prompts.models import PromptSource, PulledLabel
from schedules.actions.orders import create_order
from schedules.drafts import Draft
from schedules.models import Delivery, OrderRun, QueueItem
from skills_app.actions.skills import create_skill
from skills_app.actions.sources import add_source
from skills_app.models import SourceOffer
from spending.actions.budgets import set_budget
from spending.models import Budget
from teams_app.actions.tasks import create_task, link_task
from teams_app.boards import board_of
from teams_app.models import Team, Teammate, TeamRequest
from tools_app.workspace import workspace_for
from vaults.actions.credentials import create_credential
from vaults.actions.vaults import create_vault
from vaults.auth import NewAuth, Secrets
from vaults.models import VaultCredential
from webhooks.actions.endpoints import create_endpoint
from webhooks.models import WebhookDelivery
from wire.ids import thread_id
from workers.models import EnvironmentKey, WorkItem

FILE = "secret.txt"
"""In the workspace of alice's conversation."""

SKILL_TEXT = b"---\nname: tidy\ndescription: How to tidy up.\n---\nTidy up."


@pytest.fixture
def conversation(alice, acme) -> Conversation:
    agent = Agent.objects.create(name="Coder")
    version = AgentVersion.objects.create(
        agent=agent, number=1, stored_config=AgentConfig(provider="demo").model_dump(mode="json")
    )
    Agent.objects.filter(pk=agent.pk).update(current=version)
    return Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=version,
        environment=Environment.objects.create(name="Here"),
        title="Alice's plans",
    )


def programs(alice, acme, conversation) -> dict[str, dict[str, Any]]:
    """What the addresses of `/v1` name."""
    agent = create_agent(
        actor=alice, organisation=acme, name="Acme's", description="", config=AgentConfig()
    )
    environment = Environment.objects.create(name="Acme's", organisation=acme)
    key = EnvironmentKey.objects.create(environment=environment, name="worker", digest="0" * 64)
    work = WorkItem.objects.create(environment=environment, conversation=conversation)
    file = store_file(
        actor=alice,
        organisation=acme,
        filename="secret.txt",
        mime_type="text/plain",
        chunks=[b"secret"],
    )
    resource = add_resource(actor=alice, conversation=conversation, file_uid=file.uid)
    vault = create_vault(actor=alice, organisation=acme, display_name="Alice's secrets")
    credential = create_credential(
        actor=alice,
        vault=vault,
        auth=NewAuth(
            VaultCredential.Kind.STATIC_BEARER,
            "https://mcp.example.invalid",
            Secrets(token="nobody-may-read-it"),
        ),
    )
    session = {"uid": conversation.uid}
    store = create_store(actor=alice, organisation=acme, name="Alice's notes")
    memory = create_memory(actor=alice, store=store, path="/secret.md", content="My secret.")
    collection = create_collection(actor=alice, organisation=acme, name="Alice's papers")
    document = add_document(actor=alice, collection=collection, name="a.md", data=b"My secret.")
    passage = Passage.objects.create(
        document=document, edition=0, number=1, text="My secret.", audience=collection.audience
    )
    return {
        "settings/documents/": {"uid": collection.uid},
        "documents/": {"uid": document.uid},
        "api/collections/": {"uid": collection.uid, "document": document.uid},
        "passages/": {"uid": passage.uid},
        "v1/memory_stores/": {
            "uid": store.uid,
            "memory": memory.uid,
            "version": memory.version_uid,
        },
        "attachments/": {"file_uid": file.uid},
        "v1/vaults/": {"uid": vault.uid, "credential": credential.uid},
        "settings/vaults/<id:uid>/": {"uid": vault.uid, "credential_uid": credential.uid},
        "settings/memory/<id:uid>/": {"uid": memory.uid, "what": "pin"},
        "settings/decay/<id:uid>/": {"uid": store.uid},
        "api/memories/stores/<id:uid>/": {"uid": store.uid},
        "v1/agents/": {"uid": agent.uid},
        "settings/workers/": {"uid": key.uid},
        "v1/environments/": {"uid": environment.uid, "work": work.uid},
        "v1/sessions/<str:uid>/resources": {**session, "resource": resource.uid},
        "v1/sessions/<str:uid>/threads": {**session, "thread": thread_id(conversation.uid)},
        "v1/sessions/": session,
        "v1/files/": {"uid": file.uid},
        "v1/models/": {"name": "claude-sonnet-5-5"},
    }


@pytest.fixture
def world(alice, acme, conversation) -> Mapping[str, Any]:
    return alices_objects(alice, acme, conversation)


def spawned(alice: User, lead: Conversation) -> Teammate:
    """As rows, because nobody is to run."""
    child = Conversation.objects.create(
        organisation=lead.organisation,
        owner=alice,
        parent=lead,
        agent_version=lead.agent_version,
        environment=lead.environment,
    )
    team = Team.objects.create(lead=lead)
    return Teammate.objects.create(team=team, name="anna", conversation=child, told="idle")


def alices_objects(
    alice: User, acme: Organisation, conversation: Conversation
) -> Mapping[str, dict[str, Any]]:
    """One of each kind. Beginning of a route, the longest first → what stands for its parameters."""
    invitation = Invitation.objects.create(
        organisation=acme,
        email="carol@example.org",
        token_hash="0" * 64,
        invited_by=alice,
        expires_at="2100-01-01T00:00Z",
    )
    key = ProviderKey.objects.create(provider="anthropic", organisation=acme, created_by=alice)
    token = create_token(actor=alice, organisation=acme, name="Laptop", scopes=["admin"]).token
    service = create_service_account(actor=alice, organisation=acme, name="Nightly build")
    message = Entry.of(UserMessage(content=(Text(text="My secret plan"),)))
    call = Entry.of(AgentToolUse(name="write_file", input={}, evaluated_permission="ask"))
    append(conversation.pk, [message, call])
    (workspace_for(conversation.uid) / FILE).write_text("secret", encoding="utf-8")
    budget = set_budget(
        actor=alice,
        scope=Budget.Scope.USER,
        organisation=acme,
        user=alice,
        unit="tokens",
        period="day",
        limit=1,
    )
    membership = Membership.objects.get(user=alice, organisation=acme)
    webhook = create_endpoint(
        actor=alice, organisation=acme, url="https://hooks.example.invalid/", event_types=["*"]
    ).endpoint
    # As a row, because nobody is to send it.
    delivery = WebhookDelivery.objects.create(
        endpoint=webhook,
        event_type="x.webhook.test",
        subject=webhook.uid,
        body="{}",
        next_attempt_at=webhook.created_at,
        created_at=webhook.created_at,
    )
    rule = save_rule(
        actor=alice,
        level="organisation",
        organisation=acme,
        rule={"tool": "bash", "permission": "always_ask"},
    )
    mcp = add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.PERSON,
        name="mine",
        url="https://mcp.example.org/",
        look=False,
    )
    McpServer.objects.create(
        organisation=acme,
        name="listed",
        url="https://listed.example.org/",
        published_name="com.example/listed",
        published_version="1.0.0",
        listed=True,
        created_by=alice,
    )
    of_server = McpQuestion.objects.create(
        conversation=conversation,
        server=mcp,
        call_uid=call.uid,
        round=0,
        kind=McpQuestion.Kind.INPUT,
        asked={"a": {"message": "Where to?"}},
    )
    folder = create_folder(actor=alice, organisation=acme, name="Tax")
    upload = Upload("rates.txt", 3, [b"abc"])
    shared = add_folder_file(actor=alice, folder=folder, upload=upload)
    own = duplicate_agent(actor=alice, organisation=acme, agent=conversation.agent_version.agent)
    share = Share.objects.create(conversation=conversation, user=None, role="viewer")
    link = make_link(
        actor=alice, conversation=conversation, days=1, details=True, members_only=False
    ).link
    review = ask_for_review(actor=alice, agent=own)
    order = create_order(
        actor=alice,
        organisation=acme,
        draft=Draft(
            name="Nightly",
            agent=conversation.agent_version.agent,
            environment=conversation.environment,
            messages=(UserMessage(content=(Text(text="Tidy up"),)),),
            cron="0 3 * * *",
        ),
    )
    order_run = OrderRun.objects.create(
        order=order, agent_version=order.agent_version, trigger="manual", state="failed"
    )
    result = Delivery.objects.create(run=order_run, way="mail", user=alice, state="failed")
    item = QueueItem.objects.create(
        order=order, text="My secret item", source="person", not_before="2030-01-01T00:00Z"
    )
    acmes = create_agent(
        actor=alice, organisation=acme, name="Gated", description="", config=AgentConfig()
    )
    suite = create_suite(actor=alice, organisation=acme, name="Manners")
    spec = read_case(FIRST_CASE)
    case = save_case(actor=alice, suite=suite, spec=spec)
    evaluation = Evaluation.objects.create(
        suite=suite,
        root=None,
        agent_version=conversation.agent_version,
        environment=conversation.environment,
        digest="0" * 64,
        state="done",
    )
    Trial.objects.create(
        evaluation=evaluation,
        case=case,
        name=case.name,
        stored_spec=case.stored_spec,
        digest=case.digest,
        repetition=1,
        state="passed",
    )
    pipeline = save_pipeline(
        actor=alice,
        organisation=acme,
        spec=read_pipeline("name: Line\nagent: Gated\nsteps: [{name: secret, prompt: My secret}]"),
    )
    pipeline_run = PipelineRun.objects.create(
        version=pipeline, root=conversation, question="My secret question", state="done"
    )
    comparison = Comparison.objects.create(
        root=conversation, question="My secret question", judged=False, state="done"
    )
    hook = Hook.objects.create(organisation=acme, name="Gate", kind="python", target="gate")
    prompt = create_prompt(
        actor=alice, organisation=acme, name="tone", text="My secret tone.", label="production"
    )
    prompt_source = PromptSource.objects.create(
        organisation=acme, kind="site", address="https://secret-prompts.example"
    )
    PulledLabel.objects.create(
        source=prompt_source,
        prompt=prompt,
        version=prompt.versions.get(),
        label="production",
        remote_name="tone",
        remote_version="1",
    )
    skill = create_skill(actor=alice, organisation=acme, files={"SKILL.md": SKILL_TEXT})
    source = add_source(
        actor=alice, organisation=acme, kind="index", address="https://secret.example"
    )
    offer = SourceOffer.objects.create(source=source, name="my-secret", digest="0" * 64)
    task = create_task(actor=alice, board=board_of(conversation), subject="My secret task")
    link_of_task = link_task(
        actor=alice, task=task, kind="file", conversation=conversation, target=FILE
    )
    teammate = spawned(alice, conversation)
    question = TeamRequest.objects.create(
        team=teammate.team,
        kind="question",
        asker=teammate.conversation,
        person=alice,
        text="My secret question",
        key="asked",
        expires_at="2100-01-01T00:00Z",
    )
    brief = Brief.objects.create(
        user=alice,
        organisation=acme,
        due_at="2030-01-01T07:00Z",
        since="2029-12-31T07:00Z",
        until="2030-01-01T07:00Z",
        stored_contents={},
    )
    device = Device.objects.create(
        user=alice,
        session_key="0" * 32,
        endpoint_sha256="0" * 64,
        endpoint="https://push.invalid/a",
    )
    objects: dict[str, dict[str, Any]] = {
        "settings/notifications/": {"uid": device.uid},
        "notifications/stop/": {"token": stop_link(alice, Kind.WAITS).split("/")[-2]},
        ".well-known/": {"digest": skill.digest},
        "hooks/schedules/": {"uid": order.uid},
        "brief/": {"uid": brief.uid},
        "api/briefs/": {"uid": brief.uid},
        "timers/": {"kind": "schedule", "key": order.uid},
        "schedules/": {
            "uid": order.uid,
            "run_uid": order_run.uid,
            "item_uid": item.uid,
            "delivery_uid": result.uid,
        },
        "api/schedules/": {
            "uid": order.uid,
            "run_uid": order_run.uid,
            "item_uid": item.uid,
            "delivery_uid": result.uid,
        },
        "v1/deployments/": {"uid": order.uid},
        "v1/deployment_runs/": {"uid": order_run.uid},
        "evals/suites/": {"uid": suite.uid, "case_uid": case.uid},
        "evals/runs/": {"uid": evaluation.uid},
        "api/evals/suites/": {"uid": suite.uid},
        "api/evals/runs/": {"uid": evaluation.uid},
        "evals/agents/": {"uid": acmes.uid},
        "pipelines/runs/": {"uid": pipeline_run.uid},
        "pipelines/": {"uid": pipeline.pipeline.uid, "number": 1},
        "api/pipelines/runs/": {"uid": pipeline_run.uid},
        "api/pipelines/": {"uid": pipeline.pipeline.uid},
        "comparisons/": {"uid": comparison.uid},
        "api/comparisons/": {"uid": comparison.uid},
        "prompts/sources/": {"source_uid": prompt_source.uid},
        "prompts/": {"uid": prompt.uid, "number": 1},
        "api/prompts/sources/": {
            "uid": prompt_source.uid,
            "prompt": prompt.uid,
            "label": "production",
        },
        "api/prompts/": {"uid": prompt.uid, "number": 1, "label": "production"},
        "evals/skills/": {"uid": skill.uid},
        "skills/sources/": {"uid": source.uid, "offer_id": offer.pk},
        "api/skills/sources/": {"uid": source.uid},
        "skills/": {"uid": skill.skill.uid, "label": skill.label},
        "v1/skills/": {"uid": skill.skill.uid, "version": skill.uid},
        "api/skills/": {"uid": skill.skill.uid, "label": skill.label},
        "c/<id:uid>/": {
            "uid": conversation.uid,
            "message_uid": message.uid,
            "event_uid": message.uid,
            "call_uid": call.uid,
            "share": share.uid,
            "name": skill.skill.name,
            "member": teammate.name,
        },
        "events/": {"event_uid": message.uid},
        "folders/": {
            "uid": folder.uid,
            "file_uid": shared.file.uid,
            "member_uid": alice.uid,
        },
        "ws/conversations/<str:uid>/": {"uid": conversation.uid},
        "organisation/invitations/": {"uid": invitation.uid},
        "organisation/members/": {"pk": membership.pk},
        "organisation/webhooks/<id:uid>/": {
            "uid": webhook.uid,
            "event_uid": delivery.event_id,
        },
        "settings/keys/<str:uid>/": {"uid": key.uid},
        "settings/tokens/<str:uid>/": {"uid": token.uid},
        "settings/service-accounts/<str:uid>/": {"uid": service.uid},
        "usage/budgets/<id:uid>/": {"uid": budget.uid},
        "approvals/rules/<id:uid>/": {"uid": rule.uid},
        "approvals/calls/": {"call_uid": call.uid},
        "approvals/<id:uid>/": {"uid": Approval.objects.get(call_uid=call.uid).uid},
        "api/approvals/<id:uid>/": {"uid": Approval.objects.get(call_uid=call.uid).uid},
        "api/workspace/file/": {
            "path": f"{FILE}?conversation_id={conversation.uid}",
        },
        "api/agents/": {"uid": own.uid},
        "api/agent-reviews/": {"uid": review.uid},
        "agents/reviews/": {"uid": review.uid},
        "agents/": {"uid": own.uid, "conversation_uid": conversation.uid},
        "api/webhooks/<id:uid>": {"uid": webhook.uid, "event_uid": delivery.event_id},
        "api/files/": {"uid": conversation.uid, "path": FILE},
        "api/folders/": {"uid": folder.uid},
        "api/mcp-servers/": {"uid": mcp.uid},
        "settings/hooks/": {"uid": hook.uid},
        "v0.1/servers/": {"name": "com.example/listed", "version": "latest"},
        "v0.1/": {"rest": "nothing"},
        "settings/mcp-servers/": {"uid": mcp.uid},
        "mcp-questions/": {"uid": of_server.uid},
        "mcp-attachments/": {"uid": conversation.uid, "server_uid": mcp.uid},
        "mcp-clients/": {"uid": mcp.uid},
        "tasks/": {"task_uid": task.uid, "question_uid": question.uid},
        "api/tasks/": {"task_uid": task.uid, "link": link_of_task.pk},
        **programs(alice, acme, conversation),
        "api/conversations/<id:uid>/team/": {"uid": conversation.uid, "member": teammate.name},
        "api/conversations/<id:uid>/team-requests/": {
            "uid": conversation.uid,
            "asked": question.uid,
        },
        "api/": {"uid": conversation.uid, "rest": "nothing", "share": share.uid},
        "shared/": {"token": "nobody-was-given-this-token"},
        "settings/links/<id:uid>/": {"uid": link.uid},
        "setup/": {"token": "nobody-was-given-this-token"},
        "invitations/": {"token": "nobody-was-given-this-token"},
        "admin/": {
            "object_id": conversation.pk,
            "content_type_id": 1,
            "id": alice.pk,
            "app_label": "accounts",
            "url": "nowhere/",
        },
        "accounts/": {"key": "key", "uidb36": "1", "provider_id": "oidc"},
    }
    return dict(sorted(objects.items(), key=lambda each: len(each[0]), reverse=True))


@pytest.fixture
def alice_client(client_of, alice):
    return client_of(alice)


@pytest.fixture
def mallory_client(client_of, mallory):
    return client_of(mallory)
