"""The addresses of the pages."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import (
    attachments,
    branches,
    changed,
    changes,
    choosing,
    commands,
    conversation,
    creation,
    exports,
    files,
    keyboard,
    links,
    lists,
    messages,
    outside,
    preferences,
    previews,
    selected,
    sharing,
    tags,
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
    path("events/<id:event_uid>/resend/", branches.resend, name="resend"),
    path("events/<id:event_uid>/regenerate/", branches.regenerate, name="regenerate"),
    path("events/<id:event_uid>/rewind/", branches.rewind, name="rewind"),
    path("events/<id:event_uid>/fork/", branches.fork, name="fork"),
    path("events/<id:event_uid>/branch/", branches.switch, name="branch"),
    path("events/<id:event_uid>/feedback/", branches.feedback, name="feedback"),
    path("stop/", messages.stop, name="stop"),
    path("retry/", messages.retry, name="retry"),
    path("calls/<id:call_uid>/decide/", messages.decide, name="decide"),
    path("calls/answer/", outside.answer, name="answer"),
    path("feature/", changes.feature, name="feature"),
    path("model/", choosing.model, name="model"),
    path("share/", sharing.share, name="share"),
    path("link/", links.link, name="link"),
    path("shares/<id:share>/remove/", sharing.unshare, name="unshare"),
    path("rename/", changes.rename, name="rename"),
    path("pin/", changes.pin, name="pin"),
    path("tags/", tags.tags, name="tags"),
    path("archive/", changes.archive, name="archive"),
    path("delete/", changes.delete, name="delete"),
    # The path of a file is a parameter: it may hold what an address may not.
    path("files/", files.list_files, name="files"),
    path("files/names/", files.name_files, name="file-names"),
    path("commands/", commands.list_commands, name="commands"),
    path("files/view/", files.show_file, name="file"),
    path("files/download/", files.download, name="download"),
    path("files/picture/", previews.picture, name="file-picture"),
    path("files/page/", previews.page, name="file-page"),
    path("files/upload/", files.upload, name="upload"),
    path("changes/", changed.list_changes, name="changes"),
    path("changes/file/", changed.show_change, name="change"),
    path("changes/revert/", changed.revert, name="revert"),
    path("export/markdown/", exports.export_markdown, name="export-markdown"),
    path("export/json/", exports.export_json, name="export-json"),
]

urlpatterns = [
    path("", lists.show_list, name="list"),
    path("events/<id:event_uid>/", branches.show, name="event"),
    path("selected/", selected.selected, name="selected"),
    path("recent/", lists.beside, name="recent"),
    path("new/", creation.new, name="new"),
    path("models/", choosing.for_new, name="models"),
    path("attachments/", attachments.attach, name="attach"),
    path("attachments/<id:file_uid>/remove/", attachments.remove, name="remove-attachment"),
    path("settings/", preferences.settings, name="settings"),
    path("settings/links/", links.links, name="links"),
    path("settings/links/<id:uid>/revoke/", links.revoke, name="revoke-link"),
    path("shared/<id:token>/", links.shared, name="shared-link"),
    path("settings/mails/", preferences.mails, name="settings-mails"),
    path("settings/organisation/", preferences.organisation_defaults, name="settings-organisation"),
    path("first-steps/put-away/", preferences.put_away, name="first-steps-put-away"),
    path("go/", keyboard.go, name="go"),
    path("keyboard/", keyboard.keyboard, name="keyboard"),
    path("theme/", preferences.theme, name="theme"),
    path("c/<id:uid>/", include(of_conversation)),
]
