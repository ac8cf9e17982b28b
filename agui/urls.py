"""The address of AG-UI clients, without a slash at the end as they are given it."""

from __future__ import annotations

from django.urls import path

from .door import run_agent

app_name = "agui"

urlpatterns = [path("agui", run_agent, name="run")]
