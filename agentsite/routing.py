"""The addresses of sockets, beside `urls.py` for pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from api.consumers import ChatConsumer
from chat.consumers import ConversationConsumer

websocket_urlpatterns: list[URLPattern] = [
    path(
        "ws/conversations/<str:uid>/",
        ConversationConsumer.as_asgi(),
        name="conversation-socket",
    ),
    path("api/chat/<str:uid>/ws", ChatConsumer.as_asgi(), name="api-chat-socket"),
]
