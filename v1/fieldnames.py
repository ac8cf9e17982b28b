"""What this wire calls the parts that the actions know by other names (`wire.fieldnames`)."""

from __future__ import annotations

_ROSTER = dict.fromkeys(("roster", "roster_agents", "roster_advisor"), "multiagent")
AGENT = {"instructions": "system", "custom_tools": "tools", "provider": "model", **_ROSTER}
ENVIRONMENT = {"policy": "config.networking", "backend": "config.type"}
SESSION = {
    "environment": "environment_id",
    "features": "x_features",
    "content": "initial_events",
    "path": "resources",
    "name": "resources",
    "file": "resources",
    "files": "resources",
    "limit": "budget.max_list_cost",
    **{ours: f"agent.{theirs}" for ours, theirs in AGENT.items()},
    "tools": "agent.tools",
    "mcp_servers": "agent.mcp_servers",
    "model": "agent.model",
}
EVENTS = {
    "checks": "x_checks",
    "read_to": "x_read_to",
    "edited_input": "x_edited_input",
    "reason": "deny_message",
}
DEPLOYMENT = {
    **SESSION,
    "name": "name",
    "dates": "x_dates",
    "missed": "x_missed",
    "most_missed": "x_most_missed",
    "overlap": "x_overlap",
    "jitter": "x_jitter_seconds",
    "failures_to_pause": "x_failures_to_pause",
    "idle_to_pause": "x_idle_to_pause",
    "approvers": "x_approver_ids",
}
RESOURCE = {"path": "mount_path", "name": "mount_path", "file": "file_id", "files": "file_id"}
CREDENTIAL = {
    "mcp_server_url": "auth.mcp_server_url",
    "expires_at": "auth.expires_at",
    **{
        name: f"auth.refresh.{name}"
        for name in ("refresh_token", "client_id", "scope", "resource", "token_endpoint")
    },
    "token": "auth.token",
    "client_secret": "auth.refresh.token_endpoint_auth.client_secret",
}
