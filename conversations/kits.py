"""Builds what one run works with: provider, tools, words, from the rows of its conversation.

Which provider "auto" means for this person is decided here; whose key it uses, by `accounts`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings

from accounts.models import Organisation, ProviderKey, Scope, User
from accounts.provider_connections import JudgedConnections, way_of
from accounts.provider_keys import ResolvedKey, resolve
from agents.models import Environment, Prompt
from harness.agentconfig import AgentConfig
from harness.contextplan import Head, Portion, fit
from harness.errors import AgentError, NotConfigured
from harness.hooks import Hooks
from harness.kit import Kit
from harness.messages import ModelRequest, Piece
from harness.outcomechecks import CheckRunner
from harness.ports import Live, Tracer
from harness.provider import Provider
from harness.rules import LevelledRule
from harness.texts import Texts
from harness.tools import Tool
from jobs.engine import engine
from jobs.garbage import keeping_what_is_imported
from jobs.prepared import Prepared
from live.output import LiveOutput
from net.addresses import meant_by
from providers.table import ProviderConfig, build, kind_of, preload
from sandbox.policy import Policy
from tools_app.builtin.background import EXTRA as BACKGROUND
from tools_app.builtin.shell import EXTRA as SHELL
from tools_app.builtin.shell import under
from tools_app.catalogue import all_tools
from tools_app.elsewhere import tools_elsewhere
from tools_app.media import readable
from tools_app.provenance import EXTRA as PROVENANCE
from tools_app.provenance import OUTPUT
from tools_app.sandboxes import NONE as UNCONFINED
from tools_app.web.credentials import EXTRA as CREDENTIALS
from tools_app.workspace import Workspace, workspace_for

from .background import ConversationsBackground
from .bearers import ConversationCredentials
from .checkpoints import keep_before_turn
from .departures import has_left
from .evidence import evidence_of
from .kitparts import (
    Concerned,
    Layer,
    NameTaken,
    Part,
    Section,
    guard_of,
    layers_of,
    part_of,
    rules_of,
)
from .models import Conversation
from .provenance import TableProvenance
from .sandboxing import SandboxPlan, plan_sandbox, run_once, shell_access

logger = logging.getLogger(__name__)

AUTO = "auto"
AUTO_ORDER = ("anthropic", "openai_compatible")
"""Which services "auto" tries for a key, before it falls back to the demo."""
DEMO = "demo"
KEPT_PROVIDERS = 50
"""Clients of model services that stay open although no run uses them."""
COMMANDS = ("bash", "background_run")
"""Tools whose reach is the sandbox's."""
OWN_PLACE = 100
"""Where the facts of the conversation stand among the sections of its prompt."""
OUTPUTS = "tool-results"
"""The folder of the workspace in which results are kept that are too long for a prompt."""

_TEXTS = Prepared(lambda given: Prompt.objects.order_by("pk").values_list("name", "text"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider and model that a person's work with an agent uses, or why none can be used."""

    provider: str
    model: str
    config: ProviderConfig | None = None
    problem: NotConfigured | None = None
    server_keys: bool = False
    """The server pays: it is its key, or its own service (`accounts.provider_keys`)."""
    key: ResolvedKey | None = field(default=None, repr=False)


def choose_provider(config: AgentConfig, user: User | None, organisation: Organisation) -> Choice:
    """What `config` means for this person now, as its words say: no name is looked up. Never raises: a
    problem is part of the answer."""
    names = AUTO_ORDER if config.provider == AUTO else (config.provider,)
    for name in names:
        try:
            kind = kind_of(name)
            key = resolve(user, organisation, name)
        except NotConfigured as refusal:
            return Choice(name, config.model, problem=refusal)
        if config.provider == AUTO and key is None:
            continue
        model = config.model or kind.default_model
        if not model:
            problem = NotConfigured(
                f"The agent names no model, and {kind.label} has no default one.",
                hint="Staff can enter a model in the agent's settings.",
            )
            return Choice(name, "", problem=problem)
        found = ProviderConfig(
            name=name,
            api_key=key.key if key else "",
            base_url=key.base_url if key else "",
            # Typed into a form by somebody who does not run this server.
            connect=JudgedConnections()
            if key and key.base_url and key.scope != Scope.DEPLOYMENT
            else None,
            timeout=settings.AGENTSITE_PROVIDER_TIMEOUT,
        )
        pays = key is not None and key.server_pays
        return Choice(name, model, config=found, server_keys=pays, key=key)
    return Choice(DEMO, DEMO, config=ProviderConfig(name=DEMO))


def looked_up(choice: Choice) -> Choice:
    """For a run: who pays, and where it may connect, also by where names lead. It may wait for them."""
    if choice.config is None or choice.key is None or not choice.key.open_services:
        return choice
    way = way_of(choice.key)
    config = replace(choice.config, connect=way.connections)
    return replace(choice, config=config, server_keys=way.server_pays)


def ready(choice: Choice) -> Choice:
    """`looked_up`, and what its client needs imported: neither may hold up a loop."""
    choice = looked_up(choice)
    if choice.config is not None:
        with keeping_what_is_imported():
            preload(choice.config)
    return choice


@dataclass(slots=True)
class _Client:
    config: ProviderConfig
    provider: Provider
    runs: int = 0
    """That use it now."""


class Providers:
    """Providers by their configuration, built once for each event loop: making a client is dear.

    At most `kept` that no run uses stay open; of more, the one that was not used for longest is closed.
    """

    def __init__(
        self, kept: int = KEPT_PROVIDERS, make: Callable[[ProviderConfig], Provider] = build
    ) -> None:
        self._kept = kept
        self._make = make
        self._clients: OrderedDict[tuple[int, str], _Client] = OrderedDict()
        self._in_use: dict[int, _Client] = {}
        self._replaced: list[_Client] = []

    def get(self, choice: Choice) -> Provider:
        """For a run, which gives it back with `let_go`."""
        if choice.config is None:
            return Unavailable(choice)
        loop = id(asyncio.get_running_loop())
        slot = (loop, f"{choice.config.name} {choice.config.base_url} {choice.config.api_key}")
        client = self._clients.get(slot)
        if client is None or client.config != choice.config:
            try:
                provider = self._make(choice.config)
            except NotConfigured as problem:
                return Unavailable(Choice(choice.provider, choice.model, problem=problem))
            if client is not None:
                self._replaced.append(client)
            client = self._clients[slot] = _Client(choice.config, provider)
        self._clients.move_to_end(slot)
        self._in_use[id(client.provider)] = client
        client.runs += 1
        return client.provider

    async def let_go(self, provider: Provider) -> None:
        """A run needs it no more. Nothing for a stand-in."""
        client = self._in_use.get(id(provider))
        if client is None:
            return
        client.runs -= 1
        if client.runs == 0:
            del self._in_use[id(provider)]
        idle = [slot for slot, held in self._clients.items() if not held.runs]
        unneeded = [self._clients.pop(slot) for slot in idle[: max(0, len(idle) - self._kept)]]
        unneeded += [held for held in self._replaced if not held.runs]
        self._replaced = [held for held in self._replaced if held.runs]
        for held in unneeded:
            await _close(held.provider)

    async def close(self) -> None:
        """Close those of this event loop, which ends."""
        loop = id(asyncio.get_running_loop())
        for slot in [slot for slot in self._clients if slot[0] == loop]:
            await _close(self._clients.pop(slot).provider)


async def _close(provider: Provider) -> None:
    try:
        await provider.aclose()
    except Exception:
        logger.exception("the client of %s was not closed in order", provider.name)


class Unavailable:
    """Stands for a provider that cannot be had; asking it says why, as any provider's failure."""

    def __init__(self, choice: Choice) -> None:
        self.name = choice.provider
        self._problem = choice.problem or NotConfigured(f"{choice.provider} is not configured.")
        self._nothing: tuple[Piece, ...] = ()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        for piece in self._nothing:
            yield piece
        raise self._problem

    async def aclose(self) -> None:
        pass


providers = Providers()
"""The process's own."""
engine.at_end(providers.close)


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a kit comes from tables, read in one go in a database thread."""

    config: AgentConfig
    choice: Choice
    head: Head
    """The system prompt, and what it is of."""
    texts: Texts
    workspace: Path
    tracing: bool
    departed: bool
    """The person it would work for has left."""
    part: Part
    """What apps add."""
    sandbox: SandboxPlan
    """What commands run in."""
    rules: tuple[LevelledRule, ...] = ()
    """Those of every level but the agent's own."""
    layers: tuple[Layer, ...] = ()
    """What apps put in front of the provider."""
    guard: Hooks | None = None
    """Whom apps have asked about what happens."""

    @property
    def system(self) -> str:
        return self.head.text


def preload_services() -> None:
    """Import what the services need that a key is known for. It takes seconds, for which the first
    answer after a start would wait otherwise."""
    given = settings.AGENTSITE_PROVIDER_KEYS.items()
    named = {name for name, where in given if where.get("key") or where.get("base_url")}
    named.update(ProviderKey.objects.order_by().values_list("provider", flat=True).distinct())
    with keeping_what_is_imported():
        for name in sorted(named):
            with suppress(NotConfigured):
                preload(ProviderConfig(name, api_key="some"))


def plan_kit(conversation: Conversation) -> Plan:
    config = conversation.config
    choice = ready(choose_provider(config, conversation.owner, conversation.organisation))
    workspace = workspace_for(conversation.uid)
    concerned = Concerned.in_(conversation)
    part = part_of(conversation, config, workspace, concerned)
    return Plan(
        config=config,
        choice=choice,
        head=_head(config, conversation, part.sections),
        texts=current_texts(),
        workspace=workspace,
        tracing=conversation.features.tracing,
        departed=has_left(conversation),
        part=part,
        sandbox=plan_sandbox(conversation, config, workspace, concerned),
        rules=rules_of(conversation, concerned),
        layers=layers_of(conversation),
        guard=guard_of(conversation, concerned),
    )


def build_kit(
    plan: Plan,
    *,
    live: Live,
    tracer: Tracer | None,
    offload: Callable[..., Awaitable[Any]],
    read_rules: Callable[[], Awaitable[Sequence[LevelledRule]]] | None = None,
    who_can_mend: Callable[[], Awaitable[str]] | None = None,
    output: LiveOutput | None = None,
) -> Kit:
    """The kit itself, on the loop that will run it. `output` carries what commands print."""
    shell = shell_access(plan.sandbox, output)
    marks = TableProvenance(plan.sandbox.conversation_id)
    # What is kept in this server's workspace could not be read there.
    elsewhere = plan.sandbox.backend == Environment.Backend.WORKER
    own = {
        "conversation": plan.sandbox.conversation_uid,
        SHELL: shell,
        PROVENANCE: marks,
        BACKGROUND: ConversationsBackground(plan.sandbox.conversation_id, shell),
        CREDENTIALS: ConversationCredentials(plan.sandbox.conversation_id),
    }
    if taken := own.keys() & plan.part.extras.keys():
        raise NameTaken(f"there is an extra {sorted(taken)[0]} already")
    service = provider = providers.get(plan.choice)
    for layer in plan.layers:
        provider = layer(provider)
    return Kit(
        config=plan.config,
        provider=provider,
        service=service,
        model=plan.choice.model,
        server_keys=plan.choice.server_keys,
        reply_seconds=settings.AGENTSITE_PROVIDER_REPLY_SECONDS,
        tools=tools_of(plan.sandbox, plan.part.tools),
        workspace=plan.workspace,
        meant_by=meant_by,
        system=plan.system,
        head=plan.head.characters,
        cut=plan.head.cut,
        texts=plan.texts,
        live=live,
        tracer=tracer,
        offload=offload,
        admit=partial(offload, readable),
        keep=None if elsewhere else partial(_keep, offload, plan.workspace, marks),
        before_writing=None
        if elsewhere
        else partial(offload, keep_before_turn, plan.sandbox.conversation_id),
        hooks=plan.guard,
        evidence=None if elsewhere else partial(offload, evidence_of, plan.workspace, marks),
        checks=CheckRunner("bash", partial(run_once, plan.sandbox)),
        extras={**own, **plan.part.extras},
        remote=plan.part.remote,
        rules=plan.rules,
        read_rules=read_rules,
        who_can_mend=who_can_mend,
    )


def tools_of(sandbox: SandboxPlan, added: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Every tool there is and those that apps add for this conversation, as they are where its commands
    and files are. Raises `NameTaken` for one that is called like one of the catalogue."""
    if taken := added.keys() & all_tools().keys():
        raise NameTaken(f"the catalogue has a tool {sorted(taken)[0]} already")
    if sandbox.backend == Environment.Backend.WORKER:
        return tools_elsewhere({**all_tools(), **added})
    return {**tools_under(sandbox.policy, confined=sandbox.backend != UNCONFINED), **added}


def tools_under(policy: Policy, *, confined: bool = True) -> Mapping[str, Tool]:
    """Every tool there is; those that run commands as they are under this policy."""
    tools = all_tools()
    changed = {
        name: under(policy, tools[name], confined=confined) for name in COMMANDS if name in tools
    }
    return {**tools, **changed}


async def _keep(
    offload: Callable[..., Awaitable[Any]],
    workspace: Path,
    marks: TableProvenance,
    call: str,
    text: str,
    untrusted: bool,
) -> str:
    """Store a result that is too long for a prompt in the workspace; its path, "" if it cannot be."""

    def store() -> None:
        if untrusted:
            marks.mark_file(path, OUTPUT)
        entry = Workspace(workspace).write_bytes(path, text.encode(errors="replace"))
        if untrusted:
            marks.mark_file(path, OUTPUT, entry.inode)

    path = f"{OUTPUTS}/{call}.txt"
    try:
        await offload(store)
    except AgentError:
        return ""
    return path


def current_texts() -> Texts:
    """The harness's sentences as staff have them now; ours where a row is missing."""
    return _texts_of(tuple(_TEXTS.all()))


@lru_cache(maxsize=2)
def _texts_of(rows: tuple[tuple[str, str], ...]) -> Texts:
    """The same ones for all runs, until staff change them."""
    known = {field.name for field in fields(Texts)}
    named = {name.replace("-", "_"): text for name, text in rows}
    return Texts(
        **{**asdict(Texts()), **{name: text for name, text in named.items() if name in known}}
    )


def _head(config: AgentConfig, conversation: Conversation, sections: Sequence[Section]) -> Head:
    """Instructions and the facts that stay the same for the whole conversation, so that the cached
    beginning of every prompt stays the same as well."""
    owner = conversation.owner.get_full_name() or conversation.owner.username
    facts = [
        f"You work for {owner} in {conversation.organisation.name}.",
        f"The conversation began on {conversation.first_day:%A, %d %B %Y}.",
        "Files are those of this conversation's own workspace; give paths relative to it.",
    ]
    own = Section(OWN_PLACE, "\n".join(facts))
    placed = sorted((own, *sections), key=lambda section: section.place)
    portions = (
        Portion("system", config.instructions, most=len(config.instructions)),
        *(Portion(each.source, each.text, each.most, each.share, each.reread) for each in placed),
    )
    return fit(portions, config.limits.context_window)
