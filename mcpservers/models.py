"""MCP servers and their tools, as somebody here took them.

A server belongs to everybody on this server, to an organisation, an agent, a person or one conversation of
hers. Of each of its tools there is what was released (the pin) and what it said last, if that differs. Who
may change what is `actions`' question, what is connected to `sessions`'.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from agents.models import Agent
from conversations.models import Conversation
from harness.ids import new_id
from vaults.models import VaultCredential

CHANGE = "mcpservers.change_mcpserver"

Key = int | OuterRef
"""A row's, or that of the row around it in a query."""


def new_server_id() -> str:
    return new_id("mcps")


class McpServerQuerySet(models.QuerySet["McpServer"]):
    def visible_to(self, user: User) -> Self:
        """Everybody's, those of her organisations and of agents that she sees, and her own in organisations
        she still belongs to."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, CHANGE):
            return self
        mine = Organisation.objects.filter(memberships__user=user)
        seen = Q(organisation=None) | Q(organisation__in=mine, owner=None)
        seen |= Q(organisation__in=mine, owner=user)
        agents = Agent.objects.visible_to(user).values("pk")
        return self.filter(seen).filter(Q(agent=None) | Q(agent__in=agents))

    def usable_by(self, user: User, organisation_id: int) -> Self:
        """Those that her work in an organisation may come by: with some agent, or in some conversation."""
        here = Q(organisation=None) | Q(organisation=organisation_id)
        return self.visible_to(user).filter(here, Q(owner=None) | Q(owner=user))

    def manageable_by(self, user: User) -> Self:
        """Those whose settings and tools she decides about."""
        if has_staff_permission(user, CHANGE):
            return self.filter(owner=None) | self.filter(owner=user)
        managing = [role for role in Role if role.manages]
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=managing
        )
        mine = Organisation.objects.filter(memberships__user=user)
        return self.visible_to(user).filter(
            Q(organisation__in=managed, owner=None) | Q(organisation__in=mine, owner=user)
        )

    def serving(
        self,
        organisation_id: Key,
        owner_id: Key,
        *,
        agents: Iterable[Key] = (),
        conversation_id: Key | None = None,
    ) -> Self:
        """Those that a person's work in an organisation may use, the broadest scope first: with these
        `agents`, in this conversation."""
        wide = Q(agent=None, conversation=None)
        wide &= (
            Q(organisation=None)
            | Q(organisation=organisation_id, owner=None)
            | Q(organisation=organisation_id, owner=owner_id)
        )
        narrow = Q(agent__in=())
        for agent in agents:
            narrow |= Q(agent=agent)
        if conversation_id is not None:
            narrow |= Q(conversation=conversation_id, owner=owner_id)
        return self.filter(wide | narrow).order_by(
            models.F("conversation").asc(nulls_first=True),
            models.F("owner").asc(nulls_first=True),
            models.F("agent").asc(nulls_first=True),
            models.F("organisation").asc(nulls_first=True),
            "pk",
        )


class McpServer(models.Model):
    class Scope(models.TextChoices):
        DEPLOYMENT = "deployment", _("everybody on this server")
        ORGANISATION = "organisation", _("the organisation")
        AGENT = "agent", _("one agent")
        PERSON = "person", _("only you")
        CONVERSATION = "conversation", _("one conversation")

    uid = models.CharField(max_length=40, unique=True, default=new_server_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, null=True, related_name="mcp_servers"
    )
    """None: everybody's."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="mcp_servers"
    )
    """Whose alone it is; None: its organisation's."""
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, null=True, editable=False, related_name="mcp_servers"
    )
    """In whose runs alone it is used; None: whatever names it."""
    conversation = models.ForeignKey(
        Conversation,
        on_delete=models.CASCADE,
        null=True,
        editable=False,
        related_name="mcp_servers",
    )
    """In which alone it is used, and in those that work for it; always the owner's."""
    name = models.CharField(_("name"), max_length=32)
    url = models.CharField(_("address"), max_length=500, blank=True)
    """Empty: it is a program."""
    command = models.CharField(_("command"), max_length=200, blank=True)
    """The program, by a name or path in the sandbox of the conversation that uses it; empty: it is reached at
    an address."""
    arguments = models.JSONField(_("arguments"), default=list, blank=True)
    sealed = models.TextField(blank=True)
    """Headers that are sent along, or the variables that a program finds (`secrets`)."""
    timeout_seconds = models.PositiveIntegerField(_("seconds for one call"), default=60)
    through_provider = models.BooleanField(
        _("model services may call it themselves"), default=False
    )
    """Its tools and, where people connected, their tokens are given to the model's service, for agents that
    have it so (`elsewhere`)."""
    published_name = models.CharField(_("name in registries"), max_length=201, blank=True)
    """What a registry that it came from calls it; empty: it came from none, or is elsewhere by now."""
    published_version = models.CharField(_("version in registries"), max_length=100, blank=True)
    """Which version of it was added; another one is taken by nobody but a person."""
    listed = models.BooleanField(_("listed in our registry"), default=False)
    """Programs of those who may use it find it there (`sharing`)."""
    updated_at = models.DateTimeField(_("changed at"), default=timezone.now, editable=False)
    """When what a registry says of it was last changed."""
    disabled_at = models.DateTimeField(_("switched off at"), null=True)
    listed_at = models.DateTimeField(_("last looked at"), null=True)
    """When it last told what tools it has."""
    failing_since = models.DateTimeField(_("failing since"), null=True)
    last_error = models.CharField(_("last error"), max_length=500, blank=True)
    last_output = models.TextField(_("last errors that it wrote"), blank=True)
    """Of a program, when it was last looked at; never what it wrote in a conversation."""
    protocol = models.CharField(_("protocol"), max_length=40, blank=True)
    software = models.CharField(_("software"), max_length=200, blank=True)
    """What it calls itself."""
    offers = models.JSONField(default=dict)
    """What people may attach of it, as it said last: `offers.Offers` as JSON."""
    wants_authorisation = models.BooleanField(default=False)
    """It refused us for want of a token, so people are offered to connect their own accounts."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = McpServerQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(organisation=None, agent=None),
                name="mcp_server_name_everybody",
            ),
            models.UniqueConstraint(
                fields=["organisation", "name"],
                condition=Q(owner=None, agent=None),
                name="mcp_server_name_organisation",
            ),
            models.UniqueConstraint(fields=["agent", "name"], name="mcp_server_name_agent"),
            models.UniqueConstraint(
                fields=["organisation", "owner", "name"],
                condition=Q(conversation=None),
                name="mcp_server_name_person",
            ),
            models.UniqueConstraint(
                fields=["conversation", "name"], name="mcp_server_name_conversation"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def argv(self) -> tuple[str, ...]:
        """What is started; empty: nothing is."""
        return (self.command, *self.arguments) if self.command else ()

    @property
    def place(self) -> str:
        """Where it is: its address, or the line of a program."""
        return self.url or shlex.join(self.argv)

    @property
    def scope(self) -> Scope:
        if self.agent_id is not None:
            return self.Scope.AGENT
        if self.conversation_id is not None:
            return self.Scope.CONVERSATION
        if self.organisation_id is None:
            return self.Scope.DEPLOYMENT
        return self.Scope.ORGANISATION if self.owner_id is None else self.Scope.PERSON


class McpTool(models.Model):
    class State(models.TextChoices):
        RELEASED = "released", _("released")
        NEW = "new", _("new, held until somebody looked at it")
        CHANGED = "changed", _("changed, held until somebody looked at it")
        GONE = "gone", _("not there any more")
        REFUSED = "refused", _("cannot be taken")

    class Failure(models.TextChoices):
        SAID = "said", _("the server said that it failed")
        LATE = "late", _("there was no answer in time")
        UNREACHED = "unreached", _("the server could not be reached")
        UNAUTHORISED = "unauthorised", _("the server wanted other credentials")
        UNSOUND = "unsound", _("the answer was not as the tool describes it")

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="tools")
    remote_name = models.CharField(max_length=128)
    """As the server knows it."""
    name = models.CharField(max_length=64)
    """As models know it: `mcp__server__tool`."""
    state = models.CharField(max_length=10, choices=State)
    pinned = models.JSONField(null=True)
    """What was released of it: `listing.Described` as JSON."""
    digest = models.CharField(max_length=64, blank=True)
    """Of the pin."""
    seen = models.JSONField(null=True)
    """What it said last, where that is not the pin."""
    fault = models.CharField(max_length=500, blank=True)
    """Why it cannot be taken."""
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    released_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(_("last failed at"), null=True)
    """When a call of it last failed."""
    failure = models.CharField(_("how it failed"), max_length=12, choices=Failure, blank=True)
    """How that was; never in the server's words, which are one conversation's."""

    class Meta:
        ordering = ["remote_name"]
        verbose_name = _("tool of an MCP server")
        verbose_name_plural = _("tools of MCP servers")
        constraints = [
            models.UniqueConstraint(fields=["server", "remote_name"], name="mcp_tool_once")
        ]

    def __str__(self) -> str:
        return self.name


class McpToolDay(models.Model):
    """What the calls of one tool came to on one day: how many, how long, and no word of whose they were."""

    tool = models.ForeignKey(McpTool, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    calls = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    milliseconds = models.PositiveBigIntegerField(default=0)
    """Of all of them together."""
    slowest = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["day"]
        constraints = [models.UniqueConstraint(fields=["tool", "day"], name="mcp_tool_day_once")]
        indexes = [models.Index(fields=["day"], name="mcp_tool_day_over")]

    def __str__(self) -> str:
        return f"{self.tool}, {self.day}"


class McpClient(models.Model):
    """What this server is at the authorisation server of an MCP server. One for each issuer, so that what
    one of them gave is shown to no other."""

    class Kind(models.TextChoices):
        BY_HAND = "by_hand", _("registered by hand")
        DOCUMENT = "document", _("by our metadata document")
        DYNAMIC = "dynamic", _("registered by itself")

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="clients")
    issuer = models.CharField(max_length=500)
    kind = models.CharField(max_length=10, choices=Kind)
    client_id = models.CharField(max_length=2_000)
    sealed = models.TextField(blank=True)
    """Its secret; empty: it has none."""
    method = models.CharField(max_length=30)
    """How it shows who it is at the token endpoint: `vaults.auth.ClientAuth`."""
    redirect_uri = models.CharField(max_length=500, blank=True)
    """With which it was registered; empty: whoever registered it by hand knows."""
    expires_at = models.DateTimeField(null=True)
    """When its secret is over."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["issuer"]
        constraints = [models.UniqueConstraint(fields=["server", "issuer"], name="mcp_client_once")]

    def __str__(self) -> str:
        return f"{self.server} at {self.issuer}"


class McpFlow(models.Model):
    """A person who was sent to an authorisation server and is not back yet. It serves once, and her alone."""

    digest = models.CharField(max_length=64, unique=True)
    """Of the `state` that she brings back."""
    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    sealed = models.TextField()
    """`connecting.Departure`."""
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.user} to {self.server}"


def new_question_id() -> str:
    return new_id("mcpq")


class McpQuestion(models.Model):
    """What a server wants of a person before it goes on with a call. It outlives whatever process asks: the
    call rests in the log, and is begun anew with the answer."""

    class Kind(models.TextChoices):
        INPUT = "input", _("it asks something")
        CONNECT = "connect", _("it wants an account connected")

    uid = models.CharField(max_length=40, unique=True, default=new_question_id, editable=False)
    conversation = models.ForeignKey(
        "conversations.Conversation", on_delete=models.CASCADE, related_name="mcp_questions"
    )
    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    place = models.TextField()
    """Where it was when it asked: nothing of this is told to it elsewhere."""
    call_uid = models.CharField(max_length=40)
    round = models.PositiveIntegerField()
    """Which of the call's questions, from 0."""
    kind = models.CharField(max_length=10, choices=Kind)
    asked = models.JSONField()
    """`elicitation.Asked` as JSON, by the server's name for each."""
    sealed = models.TextField(blank=True)
    """What the server wants to see again, which says nothing to us."""
    answered_at = models.DateTimeField(null=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "call_uid", "round"], name="mcp_question_once"
            )
        ]

    def __str__(self) -> str:
        return self.uid


class McpConnectionQuerySet(models.QuerySet["McpConnection"]):
    def visible_to(self, user: User) -> Self:
        """Her own, and those at servers that she manages: of everybody for staff, else of her organisations'
        people."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, CHANGE):
            return self.filter(Q(server__owner=None) | Q(user=user))
        managing = [role for role in Role if role.manages]
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=managing
        )
        theirs = Q(server__organisation__in=managed, server__owner=None)
        return self.filter(Q(user=user) | theirs & Q(organisation__in=managed))


class McpConnection(models.Model):
    """One person's account at an MCP server, for her work in one organisation. Its tokens lie in a vault of
    hers; whoever archives or deletes them there has ended it."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="connections")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="mcp_connections"
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    credential = models.OneToOneField(
        VaultCredential, on_delete=models.CASCADE, related_name="mcp_connection"
    )
    url = models.CharField(max_length=500)
    """Of the server then: its tokens are for nowhere else."""
    issuer = models.CharField(max_length=500)
    revocation_endpoint = models.CharField(max_length=500, blank=True)
    scope = models.TextField(blank=True)
    """What was asked for and granted, as far as anybody said."""
    wanted_scope = models.TextField(blank=True)
    """What the server asked for on top since; empty: nothing."""
    steps = models.PositiveIntegerField(default=0)
    """How often it did."""
    created_at = models.DateTimeField(_("connected at"), auto_now_add=True)

    objects = McpConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("connection to an MCP server")
        verbose_name_plural = _("connections to MCP servers")
        constraints = [
            models.UniqueConstraint(
                fields=["server", "user", "organisation"], name="mcp_connection_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.server}"
