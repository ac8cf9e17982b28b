"""The address of MCP clients, without a slash at the end as they are given it."""

from __future__ import annotations

from django.urls import path

from .door import serve

app_name = "mcpdoor"

urlpatterns = [path("mcp", serve, name="serve")]
