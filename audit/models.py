"""The audit log: who asked, saw and decided what, and why. Rows are added and never changed.

`audit.record` adds them, in the transaction of what they tell. They name things by id and
people by name as well, so that they outlive what they tell of.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from accounts.reviewing import reviewed_organisations
from accounts.staff import has_staff_permission

VIEW_AUDIT = "audit.view_auditentry"


class AppendOnly(TypeError):
    """Somebody tried to change or delete what is only ever added to."""


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def visible_to(self, user: User) -> Self:
        """All for staff with the permission; else of organisations the person reviews, and what
        she did herself."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_AUDIT):
            return self
        return self.filter(Q(organisation__in=reviewed_organisations(user)) | Q(actor=user))

    def update(self, **_values: Any) -> NoReturn:
        raise AppendOnly("The audit log is only ever added to.")

    def delete(self) -> NoReturn:
        raise AppendOnly("The audit log is only ever added to.")

    def bulk_update(self, *_args: Any, **_values: Any) -> NoReturn:
        raise AppendOnly("The audit log is only ever added to.")


class AuditEntry(models.Model):
    class Action(models.TextChoices):
        ASKED = "asked", _("asked")
        SEEN = "seen", _("seen")
        ASSIGNED = "assigned", _("assigned")
        ALLOWED = "allowed", _("allowed")
        DENIED = "denied", _("denied")
        PUT_ASIDE = "put_aside", _("put aside")
        EXPIRED = "expired", _("expired")
        CANCELLED = "cancelled", _("no longer needed")
        REFUSED = "refused", _("answer refused")
        RULE_SAVED = "rule_saved", _("rule saved")
        RULE_REVOKED = "rule_revoked", _("rule revoked")
        KEY_MADE = "key_made", _("environment key made")
        KEY_REVOKED = "key_revoked", _("environment key revoked")
        VAULT_MADE = "vault_made", _("vault made")
        VAULT_ARCHIVED = "vault_archived", _("vault archived")
        VAULT_DELETED = "vault_deleted", _("vault deleted")
        SECRET_STORED = "secret_stored", _("secret stored")
        SECRET_REPLACED = "secret_replaced", _("secret replaced")
        SECRET_ARCHIVED = "secret_archived", _("secret archived")
        SECRET_DELETED = "secret_deleted", _("secret deleted")
        SHARED_RESTORED = "shared_restored", _("shared file restored")
        SHARED_REMOVED = "shared_removed", _("shared file taken away")
        CONVERSATION_SHARED = "conversation_shared", _("conversation shared")
        SHARE_ENDED = "share_ended", _("share of a conversation ended")
        LINK_MADE = "link_made", _("link to a conversation made")
        LINK_REVOKED = "link_revoked", _("link to a conversation revoked")
        RETENTION_SAVED = "retention_saved", _("retention rule saved")
        RETENTION_BEGUN = "retention_begun", _("retention rule put in force")
        RETENTION_LIFTED = "retention_lifted", _("retention rule lifted")
        RETENTION_DELETED = "retention_deleted", _("conversation deleted by a rule")
        CONTENT_REDACTED = "content_redacted", _("content of a conversation redacted")
        ORGANISATION_MADE = "organisation_made", _("organisation made")
        ORGANISATION_RENAMED = "organisation_renamed", _("organisation renamed")
        ORGANISATION_DELETED = "organisation_deleted", _("organisation deleted")
        REVIEWERS_SEE_SET = "reviewers_see_set", _("what reviewers see changed")
        MEMBER_JOINED = "member_joined", _("member joined")
        ROLE_CHANGED = "role_changed", _("role changed")
        MEMBER_REMOVED = "member_removed", _("member removed")
        INVITED = "invited", _("invited")
        INVITATION_WITHDRAWN = "invitation_withdrawn", _("invitation withdrawn")
        SERVICE_MADE = "service_made", _("service account made")
        SERVICE_REMOVED = "service_removed", _("service account removed")
        SERVICE_HANDED_ON = "service_handed_on", _("service account handed on")
        TOKEN_MADE = "token_made", _("token made")
        TOKEN_REPLACED = "token_replaced", _("token replaced")
        TOKEN_REVOKED = "token_revoked", _("token revoked")
        PROVIDER_KEY_STORED = "provider_key_stored", _("provider key stored")
        PROVIDER_KEY_REMOVED = "provider_key_removed", _("provider key removed")
        PASSWORD_CHANGED = "password_changed", _("password changed")
        PASSWORD_RESET = "password_reset", _("password reset")
        FACTOR_ADDED = "factor_added", _("second factor added")
        FACTOR_REMOVED = "factor_removed", _("second factor removed")
        ADDRESS_CHANGED = "address_changed", _("mail address changed")
        ACCOUNT_CHANGED = "account_changed", _("account changed")
        ACCOUNT_DELETED = "account_deleted", _("account deleted")
        DATA_EXPORTED = "data_exported", _("own data taken along")
        AGENT_MADE = "agent_made", _("agent made")
        AGENT_CHANGED = "agent_changed", _("agent changed")
        AGENT_ARCHIVED = "agent_archived", _("agent archived")
        AGENT_DELETED = "agent_deleted", _("agent deleted")
        REVIEW_ASKED = "review_asked", _("review of an agent asked for")
        REVIEW_WITHDRAWN = "review_withdrawn", _("review of an agent withdrawn")
        REVIEW_APPROVED = "review_approved", _("agent shared after a review")
        REVIEW_REFUSED = "review_refused", _("agent refused in a review")
        ENVIRONMENT_MADE = "environment_made", _("environment made")
        ENVIRONMENT_CHANGED = "environment_changed", _("environment changed")
        ENVIRONMENT_ARCHIVED = "environment_archived", _("environment archived")
        ENVIRONMENT_DELETED = "environment_deleted", _("environment deleted")
        SANDBOX_RULES_SET = "sandbox_rules_set", _("rules for sandboxes changed")
        BUDGET_SET = "budget_set", _("budget set")
        BUDGET_LIFTED = "budget_lifted", _("budget lifted")
        WEBHOOK_MADE = "webhook_made", _("webhook made")
        WEBHOOK_CHANGED = "webhook_changed", _("webhook changed")
        WEBHOOK_REMOVED = "webhook_removed", _("webhook removed")
        DEFAULTS_SET = "defaults_set", _("shared defaults changed")
        PRICE_SET = "price_set", _("price set")
        PRICE_REMOVED = "price_removed", _("price removed")
        PROMPT_CHANGED = "prompt_changed", _("prompt changed")
        PROMPT_MADE = "prompt_made", _("named prompt made")
        PROMPT_VERSION_ADDED = "prompt_version_added", _("version of a named prompt added")
        PROMPT_LABEL_MOVED = "prompt_label_moved", _("label of a named prompt moved")
        PROMPT_DELETED = "prompt_deleted", _("named prompt deleted")
        PROMPT_SOURCE_SET = "prompt_source_set", _("source of prompts added or changed")
        PROMPT_SOURCE_GONE = "prompt_source_gone", _("source of prompts taken away")
        HOOK_SAVED = "hook_saved", _("hook made or changed")
        HOOK_DELETED = "hook_deleted", _("hook deleted")
        FOLDER_CHANGED = "folder_changed", _("folder changed")
        FOLDER_SHARED = "folder_shared", _("folder shared")
        FOLDER_UNSHARED = "folder_unshared", _("folder no longer shared")
        FOLDER_DELETED = "folder_deleted", _("folder deleted")
        STEERING_CHANGED = "steering_changed", _("steering file changed")
        STEERING_TRUSTED = "steering_trusted", _("steering file of a workspace trusted")
        STEERING_DISTRUSTED = "steering_distrusted", _("steering file trusted no more")
        PIPELINE_SAVED = "pipeline_saved", _("version of a pipeline saved")
        PIPELINE_ARCHIVED = "pipeline_archived", _("pipeline put away or offered again")
        PIPELINE_DECIDED = "pipeline_decided", _("step of a pipeline decided")
        SUITE_MADE = "suite_made", _("suite of evals made")
        SUITE_CHANGED = "suite_changed", _("suite of evals changed")
        SUITE_DELETED = "suite_deleted", _("suite of evals deleted")
        EVALUATION_STARTED = "evaluation_started", _("evaluation started")
        EVALUATION_STOPPED = "evaluation_stopped", _("evaluation stopped")
        RELEASE_RULED = "release_ruled", _("what releases of an agent need changed")
        VERSION_RELEASED = "version_released", _("version of an agent released")
        VERSION_ROLLED_BACK = "version_rolled_back", _("agent rolled back to a version")
        CANARY_SET = "canary_set", _("version of an agent given to a share of conversations")
        CANARY_ROLLED_BACK = "canary_rolled_back", _("canary of an agent rolled back")
        MCP_SERVER_ADDED = "mcp_server_added", _("MCP server added")
        MCP_SERVER_CHANGED = "mcp_server_changed", _("MCP server changed")
        MCP_SERVER_REMOVED = "mcp_server_removed", _("MCP server taken away")
        MCP_TOOL_RELEASED = "mcp_tool_released", _("tool of an MCP server released")
        MCP_CLIENT_SET = "mcp_client_set", _("client for an MCP server registered")
        MCP_CONNECTED = "mcp_connected", _("MCP server connected by a person")
        MCP_DISCONNECTED = "mcp_disconnected", _("connection to an MCP server ended")
        MCP_CLIENT_BLOCKED = "mcp_client_blocked", _("client of /mcp blocked")
        MCP_CLIENT_UNBLOCKED = "mcp_client_unblocked", _("client of /mcp allowed again")
        MEMORY_STORE_MADE = "memory_store_made", _("memory store made")
        MEMORY_STORE_CHANGED = "memory_store_changed", _("memory store changed")
        MEMORY_STORE_ARCHIVED = "memory_archived", _("memory store archived")
        MEMORY_STORE_DELETED = "memory_store_deleted", _("memory store deleted")
        MEMORY_REDACTED = "memory_redacted", _("version of a memory taken out")
        MEMORY_FORGOTTEN = "memory_forgotten", _("memory forgotten")
        MEMORY_PROMOTED = "memory_promoted", _("memory shared")
        DECAY_SAVED = "decay_saved", _("rule for fading memories saved")
        DECAY_BEGUN = "decay_begun", _("rule for fading memories put in force")
        DECAY_LIFTED = "decay_lifted", _("rule for fading memories lifted")
        DECAY_DONE = "decay_done", _("memories faded by a rule")
        COLLECTION_MADE = "collection_made", _("collection of documents made")
        COLLECTION_DELETED = "collection_deleted", _("collection of documents deleted")
        DOCUMENT_ADDED = "document_added", _("document added")
        DOCUMENT_DELETED = "document_deleted", _("document deleted")
        SKILL_MADE = "skill_made", _("skill made")
        SKILL_CHANGED = "skill_changed", _("version of a skill added")
        SKILL_REVIEW_ASKED = "skill_review_asked", _("review of a skill asked for")
        SKILL_REVIEW_WITHDRAWN = "skill_review_undone", _("review of a skill withdrawn")
        SKILL_RELEASED = "skill_released", _("skill released")
        SKILL_REFUSED = "skill_refused", _("skill refused in a review")
        SKILL_CHANNEL_MOVED = "skill_channel_moved", _("channel of a skill moved")
        SKILL_DEPRECATED = "skill_deprecated", _("skill deprecated")
        SKILL_YANKED = "skill_yanked", _("version of a skill withdrawn")
        SKILL_STOPPED = "skill_stopped", _("skill stopped everywhere")
        SKILL_REVIVED = "skill_revived", _("skill allowed again")
        SKILL_DELETED = "skill_deleted", _("skill deleted")
        SKILL_SOURCE_ADDED = "skill_source_added", _("source of skills added")
        SKILL_SOURCE_CHANGED = "skill_source_moved", _("source of skills changed")
        SKILL_SOURCE_REMOVED = "skill_source_gone", _("source of skills taken away")
        SKILL_TRUSTED = "skill_trusted", _("skill of a workspace trusted")
        SKILL_DISTRUSTED = "skill_distrusted", _("skill of a workspace trusted no more")
        SCHEDULE_MADE = "schedule_made", _("schedule made")
        SCHEDULE_CHANGED = "schedule_changed", _("schedule changed")
        SCHEDULE_PAUSED = "schedule_paused", _("schedule paused")
        SCHEDULE_RESUMED = "schedule_resumed", _("schedule resumed")
        SCHEDULE_ARCHIVED = "schedule_archived", _("schedule archived")
        SCHEDULE_DELETED = "schedule_deleted", _("schedule deleted")
        SCHEDULE_HOOK_SET = "schedule_hook_set", _("webhook of a schedule set or taken away")

    at = models.DateTimeField(_("at"), default=timezone.now, editable=False)
    action = models.CharField(_("what happened"), max_length=20, choices=Action)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Empty for what nobody did: an agent asking, time running out."""
    actor_name = models.CharField(_("who"), max_length=300, blank=True)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    conversation_uid = models.CharField(_("conversation"), max_length=40, blank=True)
    approval_uid = models.CharField(_("approval"), max_length=40, blank=True)
    call_uid = models.CharField(_("call"), max_length=40, blank=True)
    rule_uid = models.CharField(_("rule"), max_length=40, blank=True)
    tool = models.CharField(_("tool"), max_length=128, blank=True)
    input_sha256 = models.CharField(max_length=64, blank=True)
    reason = models.TextField(_("why"), blank=True)
    details = models.JSONField(_("details"), default=dict)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit log")
        indexes = [
            models.Index(fields=["organisation", "-at"], name="audit_organisation"),
            models.Index(fields=["approval_uid"], name="audit_approval"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.action} {self.tool}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly("The audit log is only ever added to.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise AppendOnly("The audit log is only ever added to.")
