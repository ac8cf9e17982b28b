"""The addresses of the pages of MCP servers."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import accountviews, attachviews, questionviews, registryviews, views

app_name = "mcpservers"

of_server = [
    path("", views.show_server, name="server"),
    path("look/", views.look, name="server-look"),
    path("release/", views.release, name="server-release"),
    path("switch/", views.switch, name="server-switch"),
    path("remove/", views.remove, name="server-remove"),
    path("connect/", accountviews.connect, name="server-connect"),
    path("connected/", accountviews.come_back, name="server-connected"),
    path("disconnect/", accountviews.disconnect, name="server-disconnect"),
    path("client/", accountviews.set_client, name="server-client"),
]

of_conversation = [
    path("<id:server_uid>/resource/", attachviews.attach_a_resource, name="attach-resource"),
    path("<id:server_uid>/prompt/", attachviews.attach_a_prompt, name="attach-prompt"),
]

urlpatterns = [
    path("mcp-attachments/<id:uid>/", include(of_conversation)),
    path("settings/mcp-registry/", registryviews.search, name="registry"),
    path("settings/mcp-registry/server/", registryviews.show_registered, name="registered"),
    path("settings/mcp-servers/", views.show_servers, name="servers"),
    path("settings/mcp-servers/<id:uid>/", include(of_server)),
    path("mcp-questions/<id:uid>/", questionviews.show_question, name="question"),
    path("mcp-clients/<id:uid>.json", accountviews.show_document, name="client-document"),
]
