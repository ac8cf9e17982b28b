"""The numbers a process counts while it works, for /metrics. What tables know is asked there instead.

Names and labels are a contract with people's dashboards. Labels take few values: no ids, no people.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

RUNS_AT_WORK = Gauge(
    "agentsite_runs_at_work", "Runs that this process carries.", multiprocess_mode="livesum"
)
RUNS_LOST = Counter("agentsite_runs_lost", "Runs whose process was gone or silent too long.")
SOCKETS_OPEN = Gauge(
    "agentsite_sockets_open",
    "Sockets of browsers and programs that follow a conversation.",
    multiprocess_mode="livesum",
)
APPEND_SECONDS = Histogram(
    "agentsite_event_append_seconds",
    "From asking to store events to their commit.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5),
)
MODEL_CALLS = Counter(
    "agentsite_model_calls", "Model requests that ended.", ["provider", "model", "purpose", "end"]
)
TOKENS = Counter("agentsite_tokens", "Tokens of model requests.", ["provider", "model", "kind"])
ERRORS = Counter("agentsite_errors", "Errors that conversations ran into, by code.", ["code"])
WEBHOOK_ATTEMPTS = Counter(
    "agentsite_webhook_attempts", "Attempts at deliveries of webhooks, by how they ended.", ["end"]
)
WEBHOOK_SECONDS = Histogram(
    "agentsite_webhook_attempt_seconds",
    "What one attempt at a delivery took.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20),
)
WEBHOOKS_DISABLED = Counter(
    "agentsite_webhooks_disabled", "Webhook endpoints switched off by themselves.", ["reason"]
)
MAILS = Counter("agentsite_mails", "Mails to people, by how sending ended.", ["kind", "end"])
PUSHES = Counter("agentsite_pushes", "Pushes to browsers, by how sending ended.", ["kind", "end"])
