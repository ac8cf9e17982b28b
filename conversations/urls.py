"""The addresses of the pages."""

from __future__ import annotations

from django.urls import include, path

from . import converters  # noqa: F401 - registers `id`
from .views import (
    approvals,
    audit,
    budgets,
    changes,
    conversation,
    creation,
    exports,
    files,
    lists,
    messages,
    operations,
    outside,
    preferences,
    rules,
    simulation,
    usage,
    vaults,
    webhooks,
    workers,
)

app_name = "conversations"

of_conversation = [
    path("", conversation.show, name="conversation"),
    path("older/", conversation.older, name="older"),
    path("messages/", messages.post, name="message"),
    path("messages/<id:message_uid>/withdraw/", messages.withdraw, name="withdraw"),
    path("messages/<id:message_uid>/edit/", messages.edit, name="edit-message"),
    path("messages/<id:message_uid>/steer/", messages.steer, name="steer-message"),
    path("events/<id:event_uid>/set-aside/", messages.leave_out, name="set-aside"),
    path("stop/", messages.stop, name="stop"),
    path("retry/", messages.retry, name="retry"),
    path("calls/<id:call_uid>/decide/", messages.decide, name="decide"),
    path("calls/answer/", outside.answer, name="answer"),
    path("feature/", changes.feature, name="feature"),
    path("budget/", budgets.conversation_budget, name="budget"),
    path("rename/", changes.rename, name="rename"),
    path("pin/", changes.pin, name="pin"),
    path("archive/", changes.archive, name="archive"),
    path("delete/", changes.delete, name="delete"),
    # The path of a file is a parameter: it may hold what an address may not.
    path("files/", files.list_files, name="files"),
    path("files/view/", files.show_file, name="file"),
    path("files/download/", files.download, name="download"),
    path("files/upload/", files.upload, name="upload"),
    path("export/markdown/", exports.export_markdown, name="export-markdown"),
    path("export/json/", exports.export_json, name="export-json"),
]

of_operations = [
    path("", operations.show, name="operations"),
    path("figures/", operations.figures, name="operations-figures"),
    path("letters/replay/", operations.replay, name="operations-replay"),
    path("letters/discard/", operations.discard, name="operations-discard"),
    path("wakes/cancel/", operations.cancel, name="operations-cancel"),
    *(
        path(f"{section}/", operations.show, {"section": section}, name=f"operations-{section}")
        for section in operations.LABELS
    ),
]

of_approvals = [
    path("", approvals.show_queue, name="approvals"),
    path("mine/", approvals.show_queue, {"view": "mine"}, name="approvals-mine"),
    path("decided/", approvals.show_queue, {"view": "decided"}, name="approvals-decided"),
    path("live/", approvals.live, name="approvals-live"),
    path("badge/", approvals.badge, name="approvals-badge"),
    path("decide/", approvals.decide_many, name="approvals-decide"),
    path("audit/", audit.show_audit, name="audit"),
    path("audit/export/", audit.export_audit, name="audit-export"),
    path("<id:uid>/assign/", approvals.assign, name="approval-assign"),
    path("rules/", rules.show_rules, name="rules"),
    path("rules/add/", rules.add_rule, name="rule-add"),
    path("rules/<id:uid>/revoke/", rules.revoke_rule, name="rule-revoke"),
    path("simulate/", simulation.simulate, name="simulate"),
    path("calls/<id:call_uid>/", approvals.show_of_call, name="call-approval"),
    path("<id:uid>/", approvals.show_approval, name="approval"),
    path("<id:uid>/decide/", approvals.decide, name="approval-decide"),
]

of_webhook = [
    path("", webhooks.endpoint, name="webhook"),
    path("rotate/", webhooks.rotate, name="webhook-rotate"),
    path("switch/", webhooks.switch, name="webhook-switch"),
    path("remove/", webhooks.remove, name="webhook-remove"),
    path("test/", webhooks.test, name="webhook-test"),
    path("redeliver/", webhooks.redeliver_dead, name="webhook-redeliver-dead"),
    path("deliveries/<id:event_uid>/", webhooks.delivery, name="webhook-delivery"),
    path("deliveries/<id:event_uid>/redeliver/", webhooks.redeliver, name="webhook-redeliver"),
]

of_vault = [
    path("", vaults.show_vault, name="vault"),
    path("archive/", vaults.archive_vault, name="vault-archive"),
    path("delete/", vaults.delete_vault, name="vault-delete"),
    path("credentials/<id:credential_uid>/replace/", vaults.replace_secret, name="vault-replace"),
    path(
        "credentials/<id:credential_uid>/archive/",
        vaults.archive_credential,
        name="vault-credential-archive",
    ),
    path(
        "credentials/<id:credential_uid>/delete/",
        vaults.delete_credential,
        name="vault-credential-delete",
    ),
]

urlpatterns = [
    path("", lists.show_list, name="list"),
    path("new/", creation.new, name="new"),
    path("settings/", preferences.settings, name="settings"),
    path("settings/mails/", preferences.mails, name="settings-mails"),
    path("settings/organisation/", preferences.organisation_defaults, name="settings-organisation"),
    path("settings/vaults/", vaults.show_vaults, name="vaults"),
    path("settings/vaults/<id:uid>/", include(of_vault)),
    path("settings/workers/", workers.show_workers, name="workers"),
    path("settings/workers/<id:uid>/revoke/", workers.revoke, name="worker-key-revoke"),
    path("theme/", preferences.theme, name="theme"),
    path("usage/", usage.show_usage, name="usage"),
    path("usage/export/", usage.export_usage, name="usage-export"),
    path("usage/budgets/", budgets.budgets, name="budgets"),
    path("usage/budgets/<id:uid>/remove/", budgets.remove, name="budget-remove"),
    path("c/<id:uid>/", include(of_conversation)),
    path("operations/", include(of_operations)),
    path("organisation/webhooks/", webhooks.webhooks, name="webhooks"),
    path("organisation/webhooks/<id:uid>/", include(of_webhook)),
    path("approvals/", include(of_approvals)),
]
