"""Policy rules: what may run, kept in a table at the levels above and below an agent's own.

`actions.rules` and `actions.approvals` make them, `approvals.policyrules` hands them to runs; how
they weigh is `harness.policy`.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from accounts.reviewing import reviewed_organisations
from accounts.staff import has_staff_permission
from agents.models.agent import Agent
from conversations.models.conversation import Conversation
from harness.agentconfig import AskOptions, ToolRule
from harness.ids import new_id
from harness.patterns import When
from harness.rules import Grant, Level, LevelledRule, level_named

from .approval import Approval

VIEW_RULES = "approvals.view_policyrule"
CHANGE_RULES = "approvals.change_policyrule"


def new_rule_uid() -> str:
    return new_id("rule")


class PolicyRuleQuerySet(models.QuerySet["PolicyRule"]):
    def active(self) -> Self:
        return self.filter(revoked_at=None)

    def visible_to(self, user: User) -> Self:
        """All for staff with the permission; else the server's and those of one's organisations,
        except what was allowed in somebody else's conversations, which its reviewers see as well."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_RULES) or has_staff_permission(user, CHANGE_RULES):
            return self
        mine = Organisation.objects.filter(memberships__user=user)
        general = Q(for_user=None, conversation=None) & (
            Q(organisation__in=mine)
            | Q(organisation=None, agent=None)
            | Q(organisation=None, agent__in=Agent.objects.visible_to(user))
        )
        own = Q(organisation__in=mine) & (Q(for_user=user) | Q(conversation__owner=user))
        return self.filter(general | own | Q(organisation__in=reviewed_organisations(user)))


class PolicyRule(models.Model):
    class Scope(models.TextChoices):
        DEPLOYMENT = "deployment", _("this server")
        ORGANISATION = "organisation", _("an organisation")
        AGENT = "agent", _("an agent")
        CONVERSATION = "conversation", _("a conversation")
        RUN = "run", _("one run")

    class Permission(models.TextChoices):
        ALLOW = "always_allow", _("allow")
        ASK = "always_ask", _("ask first")
        DENY = "always_deny", _("deny")

    uid = models.CharField(max_length=40, unique=True, default=new_rule_uid, editable=False)
    scope = models.CharField(_("level"), max_length=12, choices=Scope)
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="policy_rules",
        verbose_name=_("organisation"),
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="policy_rules",
        verbose_name=_("agent"),
    )
    """With an organisation: in its conversations only."""
    conversation = models.ForeignKey(
        Conversation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="policy_rules",
        verbose_name=_("conversation"),
    )
    turn_uid = models.CharField(max_length=40, blank=True, editable=False)
    for_user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("for work of"),
    )
    """Only in conversations of this person; empty: of everybody."""
    tool = models.CharField(_("tool or pattern"), max_length=128)
    when = models.JSONField(_("only when"), null=True, blank=True)
    """A `harness.patterns.When`."""
    permission = models.CharField(_("permission"), max_length=12, choices=Permission)
    options = models.JSONField(_("options"), default=dict, blank=True)
    """A `harness.agentconfig.AskOptions`."""
    grant = models.JSONField(null=True, blank=True, editable=False)
    """What it may settle, when it was saved through an approval: see `harness.rules.Grant`. And `givers`: the
    key of each `account` that allowed it and of all `persons` behind it then, kept here since the approval
    may go with its conversation."""
    note = models.CharField(_("note"), max_length=500, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(_("made at"), auto_now_add=True)
    made_from = models.ForeignKey(
        Approval, on_delete=models.SET_NULL, null=True, related_name="saved_rules"
    )
    revoked_at = models.DateTimeField(_("revoked at"), null=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    objects = PolicyRuleQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("policy rule")
        verbose_name_plural = _("policy rules")
        constraints = [
            models.CheckConstraint(
                name="policy_rule_place",
                condition=(
                    Q(scope="deployment", organisation=None, agent=None, conversation=None)
                    | Q(scope="organisation", organisation__isnull=False, agent=None)
                    & Q(conversation=None)
                    | Q(scope="agent", agent__isnull=False, conversation=None)
                    | Q(scope__in=["conversation", "run"], organisation__isnull=False)
                    & Q(conversation__isnull=False)
                ),
            )
        ]
        indexes = [
            models.Index(
                fields=["organisation", "scope"],
                condition=Q(revoked_at=None),
                name="policy_rule_active",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.permission} {self.value.words()}"

    @property
    def value(self) -> ToolRule:
        return ToolRule(
            tool=self.tool,
            permission=self.permission,
            when=None if self.when is None else When.model_validate(self.when),
            options=AskOptions.model_validate(self.options),
        )

    @property
    def level(self) -> Level:
        return level_named(self.scope)

    @property
    def givers(self) -> dict[int, frozenset[int]]:
        """The keys of the accounts that allowed it, each with those of the persons behind it then."""
        found = (self.grant or {}).get("givers", [])
        return {one["account"]: frozenset(one["persons"]) for one in found}

    def levelled(self) -> LevelledRule:
        grant = None
        if self.grant is not None:
            held = {name: value for name, value in self.grant.items() if name != "givers"}
            grant = Grant(level=level_named(held.pop("level")), turn=self.turn_uid, **held)
        return LevelledRule(self.value, self.level, self.uid, grant)
