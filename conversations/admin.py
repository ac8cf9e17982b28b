"""What staff find in the admin, and under which model. Each page is made in `administration`."""

from __future__ import annotations

from django.contrib import admin

from conversations import models
from conversations.administration.agents import AgentAdmin
from conversations.administration.approvals import (
    ApprovalAdmin,
    AuditEntryAdmin,
    PolicyRuleAdmin,
)
from conversations.administration.budgets import BudgetAdmin
from conversations.administration.deadletters import ActivationAdmin, DeadLetterAdmin
from conversations.administration.defaults import DefaultsAdmin
from conversations.administration.environments import EnvironmentAdmin, SandboxRulesAdmin
from conversations.administration.log import ConversationAdmin, EventAdmin
from conversations.administration.prices import ModelPriceAdmin
from conversations.administration.prompts import PromptAdmin
from conversations.administration.runs import ModelTraceAdmin, RunAdmin
from conversations.administration.shared_files import SharedVersionAdmin
from conversations.administration.usage import UsageAdmin
from conversations.administration.vaults import VaultAdmin, VaultCredentialAdmin
from conversations.administration.webhooks import WebhookDeliveryAdmin, WebhookEndpointAdmin
from conversations.administration.work import EnvironmentKeyAdmin, WorkItemAdmin

admin.site.register(models.Agent, AgentAdmin)
admin.site.register(models.Environment, EnvironmentAdmin)
admin.site.register(models.Defaults, DefaultsAdmin)
admin.site.register(models.SandboxRules, SandboxRulesAdmin)
admin.site.register(models.EnvironmentKey, EnvironmentKeyAdmin)
admin.site.register(models.WorkItem, WorkItemAdmin)
admin.site.register(models.SharedVersion, SharedVersionAdmin)
admin.site.register(models.Prompt, PromptAdmin)
admin.site.register(models.ModelPrice, ModelPriceAdmin)
admin.site.register(models.Conversation, ConversationAdmin)
admin.site.register(models.Event, EventAdmin)
admin.site.register(models.Approval, ApprovalAdmin)
admin.site.register(models.PolicyRule, PolicyRuleAdmin)
admin.site.register(models.AuditEntry, AuditEntryAdmin)
admin.site.register(models.Run, RunAdmin)
admin.site.register(models.DeadLetter, DeadLetterAdmin)
admin.site.register(models.Activation, ActivationAdmin)
admin.site.register(models.Usage, UsageAdmin)
admin.site.register(models.Budget, BudgetAdmin)
admin.site.register(models.ModelTrace, ModelTraceAdmin)
admin.site.register(models.WebhookEndpoint, WebhookEndpointAdmin)
admin.site.register(models.WebhookDelivery, WebhookDeliveryAdmin)
admin.site.register(models.Vault, VaultAdmin)
admin.site.register(models.VaultCredential, VaultCredentialAdmin)
