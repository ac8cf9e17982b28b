"""Every setting, in Django's order, read from the environment and `.env`.

The defaults are those of one machine on loopback. What a production installation must set is
checked in `agentsite.checks`, which also refuses an unsafe start.
"""

from __future__ import annotations

import secrets
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.templatetags.static import static

from agentsite import cors, environment, logs
from jobs.garbage import loading

loading.begin()  # until all apps are ready

env = environment.load()

BASE_DIR = environment.BASE_DIR

# --- The installation -----------------------------------------------------------------------------

AGENTSITE_ENV = env.str("AGENTSITE_ENV", default=environment.LOCAL)
"""`local`: one machine, loopback. `production`: an unsafe value refuses the start."""

AGENTSITE_BASE_URL = env.str("AGENTSITE_BASE_URL", default="").rstrip("/")
"""Where people reach this site; decides secure cookies and CSRF origins. Empty: as requested."""

AGENTSITE_DATA_DIR = (
    Path(env.str("AGENTSITE_DATA_DIR", default=str(BASE_DIR / "data"))).expanduser().resolve()
)
"""Database and workspaces of the one-machine installation."""

AGENTSITE_WORKSPACES_DIR = AGENTSITE_DATA_DIR / "workspaces"
"""One directory for each conversation."""

AGENTSITE_FILES_DIR = AGENTSITE_DATA_DIR / "files"
"""What programs upload, before it is copied into workspaces."""
AGENTSITE_FILE_BYTES = env.int("AGENTSITE_FILE_BYTES", default=500 * 1024 * 1024)
"""Bytes of one such file."""
AGENTSITE_FILES_BYTES = env.int("AGENTSITE_FILES_BYTES", default=5 * 1024**3)
"""Bytes of all such files of one person and her service accounts."""

AGENTSITE_VAULT_KEYS: list[str] = env.list("AGENTSITE_VAULT_KEY", default=[])
"""Fernet keys that seal provider keys: the first seals, all of them open (rotation)."""

AGENTSITE_PROVIDER_KEYS: dict[str, dict[str, str]] = {
    "anthropic": {
        "key": env.str("ANTHROPIC_API_KEY", default=""),
        "base_url": env.str("ANTHROPIC_BASE_URL", default=""),
    },
    "openai_compatible": {
        "key": env.str("OPENAI_API_KEY", default=""),
        "base_url": env.str("OPENAI_BASE_URL", default=""),
    },
}
"""The keys the operator gave in the environment; the widest scope of all."""

AGENTSITE_PRIVATE_PROVIDER_HOSTS: list[str] = env.list(
    "AGENTSITE_PRIVATE_PROVIDER_HOSTS",
    default=[]
    if AGENTSITE_ENV == environment.PRODUCTION
    else [
        f"{host}:{port}"
        for host in ("localhost", "127.0.0.1", "[::1]")
        for port in (11434, 1234)  # where Ollama and LM Studio listen
    ],
)
"""Hosts inside this network that people and organisations may send their requests to, each with its
port: `ollama.internal:11434`, under this very name or address. They are the deployment's, whatever key
is brought. A key for everybody may go anywhere but to metadata services."""

AGENTSITE_REDIS_URL = env.str("AGENTSITE_REDIS_URL", default="")
"""What several processes share that need not last: live text, hints, cache. Empty: one process."""
AGENTSITE_BROKER_URL = env.str("AGENTSITE_BROKER_URL", default="")
"""Where jobs are queued for Celery workers. Empty: they run in the process that asked for them."""

AGENTSITE_INVITATION_DAYS = env.int("AGENTSITE_INVITATION_DAYS", default=7)
AGENTSITE_MAX_OPEN_INVITATIONS = env.int("AGENTSITE_MAX_OPEN_INVITATIONS", default=200)
AGENTSITE_SETUP_HOURS = env.int("AGENTSITE_SETUP_HOURS", default=24)

AGENTSITE_DATABASE_THREADS = env.int("AGENTSITE_DATABASE_THREADS", default=8)
"""Threads in which runs read and write tables; each holds one database connection."""
AGENTSITE_REQUEST_THREADS = env.int("AGENTSITE_REQUEST_THREADS", default=32)
"""Threads in which requests are answered, begun as they are needed; each holds one database connection.
More requests at once wait for their turn, one person's already past a quarter of them. Streams hold none."""
AGENTSITE_TOOL_THREADS = env.int("AGENTSITE_TOOL_THREADS", default=16)
"""Threads in which the plain tools of all runs work, apart from those that write the log."""
AGENTSITE_LEASE_SECONDS = env.int("AGENTSITE_LEASE_SECONDS", default=60)
"""How long a run keeps its conversation without a sign of life; renewed three times in that span."""
AGENTSITE_WORK_LEASE_SECONDS = env.int("AGENTSITE_WORK_LEASE_SECONDS", default=60)
"""How long a worker of a self-hosted environment keeps a work item without a sign of life."""
AGENTSITE_DELTA_MILLISECONDS = env.int("AGENTSITE_DELTA_MILLISECONDS", default=40)
"""Streaming text is sent on at most this often; the first piece of a block goes out at once."""
AGENTSITE_MESSAGE_CHARACTERS = env.int("AGENTSITE_MESSAGE_CHARACTERS", default=100_000)
"""Characters of one message; longer text belongs in a file."""
AGENTSITE_ATTACHMENTS = env.int("AGENTSITE_ATTACHMENTS", default=20)
"""Files that go with one message, at most."""
AGENTSITE_IMAGE_BYTES = env.int("AGENTSITE_IMAGE_BYTES", default=5 * 1024 * 1024)
"""Bytes of one picture that is shown to a model. The public APIs take no more."""
AGENTSITE_IMAGE_PIXELS = env.int("AGENTSITE_IMAGE_PIXELS", default=8_000)
"""Width or height of one, at most."""
AGENTSITE_MESSAGE_PIXELS = env.int("AGENTSITE_MESSAGE_PIXELS", default=115_000_000)
"""Width × height of all pictures that are sent together, at most: a hundred, which is what a request of a
public API may have, of the 1.15 million that its models look at (its guide to vision, “image limits”)."""
AGENTSITE_PDF_BYTES = env.int("AGENTSITE_PDF_BYTES", default=10 * 1024 * 1024)
"""Bytes of one PDF that is given to a model to read."""
AGENTSITE_PDF_PAGES = env.int("AGENTSITE_PDF_PAGES", default=100)
"""Pages of one."""
AGENTSITE_MEDIA_SECONDS = env.int("AGENTSITE_MEDIA_SECONDS", default=20)
"""How long it may take to open the pictures and PDFs of one message."""
AGENTSITE_SOCKET_FRAME_BYTES = env.int("AGENTSITE_SOCKET_FRAME_BYTES", default=512 * 1024)
"""Bytes of one frame a browser sends: room for the longest message in any script."""
AGENTSITE_QUEUED_MESSAGES = env.int("AGENTSITE_QUEUED_MESSAGES", default=20)
"""Messages of one conversation that may wait for their turn."""
AGENTSITE_MESSAGES_PER_MINUTE = env.int("AGENTSITE_MESSAGES_PER_MINUTE", default=60)
"""Messages that one person and her service accounts may send in all; 0: any number."""
AGENTSITE_RUNS_PER_PERSON = env.int("AGENTSITE_RUNS_PER_PERSON", default=100)
"""Conversations of one person and her service accounts that run at once; more wait for their turn. 0: any
number."""
AGENTSITE_RUNS_PER_ORGANISATION = env.int("AGENTSITE_RUNS_PER_ORGANISATION", default=0)
"""The same for all conversations of one organisation."""
AGENTSITE_PUBLIC_LINKS = env.bool("AGENTSITE_PUBLIC_LINKS", default=True)
"""Whether a conversation's owner may make links that open for everybody, and such links open."""
AGENTSITE_BUDGETS_ALLOW_UNPRICED = env.bool("AGENTSITE_BUDGETS_ALLOW_UNPRICED", default=False)
"""Whether a model without a price may be used under a budget in money, and then goes uncounted."""
AGENTSITE_SWEEP_SECONDS = env.int("AGENTSITE_SWEEP_SECONDS", default=15)
"""How often a process looks for conversations that somebody ought to run and nobody does; 0: never."""
AGENTSITE_SCHEDULE_SECONDS = env.int("AGENTSITE_SCHEDULE_SECONDS", default=5)
"""How often a process looks for schedules that are due; 0: never."""
AGENTSITE_SCHEDULE_GRACE_SECONDS = env.int("AGENTSITE_SCHEDULE_GRACE_SECONDS", default=300)
"""What is due for longer when somebody looks counts as missed: its schedule says what becomes of it."""
AGENTSITE_SCHEDULES = env.int("AGENTSITE_SCHEDULES", default=200)
"""Schedules that a person may have in one organisation."""
AGENTSITE_SCHEDULE_RUN_DAYS = env.int("AGENTSITE_SCHEDULE_RUN_DAYS", default=400)
"""How long the history of schedules keeps a run that has ended; its conversation stays."""
AGENTSITE_QUEUE_DEPTH = env.int("AGENTSITE_QUEUE_DEPTH", default=1)
"""How many follow-ups of an item in an agent's work queue may follow each other; 0: none is taken."""
AGENTSITE_INBOUND_MAIL = env.str("AGENTSITE_INBOUND_MAIL", default="")
"""Where mails that begin schedules are sent: an address, of which each schedule has one with a key behind a
`+`, or a domain as `@in.example.org`, of which all mails come in. Empty: none do."""
AGENTSITE_INBOUND_MAIL_SECRET = env.str("AGENTSITE_INBOUND_MAIL_SECRET", default="")
"""By which a mail service that posts mails to /hooks/mail shows itself; empty: nobody may."""
AGENTSITE_INBOUND_MAIL_BYTES = env.int("AGENTSITE_INBOUND_MAIL_BYTES", default=10 * 1024 * 1024)
"""What a mail that comes in may have, with its files."""
AGENTSITE_INBOUND_MAIL_SERVER = env.str("AGENTSITE_INBOUND_MAIL_SERVER", default="")
"""The name under which the server that takes mails in tells whether their sender is true (in the header
`Authentication-Results`). With it a mail begins something only where that says dmarc=pass; empty: what a mail
says of its sender is believed."""
AGENTSITE_INBOUND_MAILS = env.int("AGENTSITE_INBOUND_MAILS", default=20)
"""Mails that may begin one schedule in an hour."""
AGENTSITE_IMAP_URL = env.str("AGENTSITE_IMAP_URL", default="")
"""A mailbox to look into for mails that begin schedules: imaps://user:password@host/folder."""
AGENTSITE_IMAP_SECONDS = env.int("AGENTSITE_IMAP_SECONDS", default=60)
"""How often a process looks into that mailbox; 0: never."""
AGENTSITE_BRIEF_SECONDS = env.int("AGENTSITE_BRIEF_SECONDS", default=30)
"""How often a process looks whose daily brief is due; 0: never."""
AGENTSITE_BRIEF_DAYS = env.int("AGENTSITE_BRIEF_DAYS", default=90)
"""How long briefs are kept."""
AGENTSITE_BRIEF_MODELS: dict[str, str] = env.dict(
    "AGENTSITE_BRIEF_MODELS", default={"anthropic": "claude-haiku-5-5"}
)
"""The model of each service that writes the short text of a brief, for those who want one and choose no model
of their own."""
AGENTSITE_BRIEF_TOKENS_PER_DAY = env.int("AGENTSITE_BRIEF_TOKENS_PER_DAY", default=50_000)
"""Of one person, for the texts of all her briefs together; 0: none is written."""
AGENTSITE_EVAL_PARALLEL = env.int("AGENTSITE_EVAL_PARALLEL", default=4)
"""How many trials of one evaluation are under way at once, at most; each is a run like any other."""
AGENTSITE_EVAL_CACHE_DAYS = env.int("AGENTSITE_EVAL_CACHE_DAYS", default=30)
"""How long a model's reply to a trial answers the same question again; 0 keeps none."""
AGENTSITE_OTLP_ENDPOINT = env.str("AGENTSITE_OTLP_ENDPOINT", default="")
"""A collector of OpenTelemetry (OTLP over HTTP) that each turn is sent to when it has ended, such as
`http://127.0.0.1:4318`; empty: none is. It is told what took how long and how many tokens, never what was
said."""
AGENTSITE_OTLP_HEADERS = env.dict("AGENTSITE_OTLP_HEADERS", default={})
"""Headers of these requests, as in `authorization=Bearer abc,x-scope=team`."""
AGENTSITE_OTLP_SERVICE = env.str("AGENTSITE_OTLP_SERVICE", default="agentsite")
"""The `service.name` of these traces."""
AGENTSITE_TOOL_RULES = env.str("AGENTSITE_TOOL_RULES", default="[]")
"""Rules for tools that hold everywhere on this server, as a JSON list of what an agent's tool rules
look like: `[{"tool": "bash", "permission": "always_ask", "options": {"strict": true}}]`."""
AGENTSITE_LOST_RUNS = env.int("AGENTSITE_LOST_RUNS", default=3)
"""So many runs of one conversation that end with their process, one after another and without getting
anywhere, make a dead letter: then it is no longer tried by itself. A process that took runs of other
conversations along says little of one: it takes five times as many of those."""
AGENTSITE_REPLAYS_PER_LETTER = env.int("AGENTSITE_REPLAYS_PER_LETTER", default=5)
"""How often one dead letter may be replayed."""
AGENTSITE_REPLAYS_AT_ONCE = env.int("AGENTSITE_REPLAYS_AT_ONCE", default=50)
"""How many dead letters may be replayed in one go."""
AGENTSITE_JOURNAL_DAYS = env.int("AGENTSITE_JOURNAL_DAYS", default=30)
"""How long it is kept who claimed which conversation and how that ended."""
AGENTSITE_MCP_PRIVATE_HOSTS: list[str] = env.list("AGENTSITE_MCP_PRIVATE_HOSTS", default=[])
"""Hosts inside this network that MCP servers may be at, each with its port: `tools.internal:8080`. They may
be reached by plain http; all others by https only."""
AGENTSITE_MCP_REGISTRIES: list[str] = env.list("AGENTSITE_MCP_REGISTRIES", default=[])
"""Registries of MCP servers that people may search and add servers from, by their addresses; plain http,
and those inside this network, as AGENTSITE_MCP_PRIVATE_HOSTS lists them."""
AGENTSITE_MCP_PERSONAL = env.bool("AGENTSITE_MCP_PERSONAL", default=True)
"""Whether people may add MCP servers of their own, beside those of staff and managers."""
AGENTSITE_MCP_PROGRAMS = env.bool("AGENTSITE_MCP_PROGRAMS", default=True)
"""Whether MCP servers may be programs, which are started in the sandboxes of conversations."""
AGENTSITE_MCP_THROUGH_PROVIDER = env.bool("AGENTSITE_MCP_THROUGH_PROVIDER", default=False)
"""Whether model services may call MCP servers by themselves, with people's tokens, where agents and whoever
manages the server have it so. What they call asks nobody here."""
AGENTSITE_MCP_CLIENT_DOCUMENT = env.bool("AGENTSITE_MCP_CLIENT_DOCUMENT", default=True)
"""Authorisation servers of MCP servers can read from here who we are; off where they cannot reach it."""
AGENTSITE_MCP_OAUTH = env.bool("AGENTSITE_MCP_OAUTH", default=True)
"""Whether people may let clients in at `/mcp` that have no token of theirs (OAuth 2.1). Off: those that were
let in are shut out as well."""
AGENTSITE_MCP_REGISTRATION = env.bool("AGENTSITE_MCP_REGISTRATION", default=True)
"""Whether such clients may register themselves; off: only those with a document at an address of theirs."""
AGENTSITE_MCP_PROGRAM_SCHEMES = env.list(
    "AGENTSITE_MCP_PROGRAM_SCHEMES", default=["cursor", "vscode", "vscode-insiders"]
)
"""Schemes without a domain in them at which programs on people's machines may have answers sent, such as
`cursor` of `cursor://…`. Those with one (`com.example.notes`) always may."""
AGENTSITE_MCP_CLIENTS = env.int("AGENTSITE_MCP_CLIENTS", default=1_000)
"""Clients that registered themselves and that nobody let in; 0: any number."""
AGENTSITE_MCP_CLIENT_DAYS = env.int("AGENTSITE_MCP_CLIENT_DAYS", default=7)
"""After so many days without use a client's registration is forgotten."""
AGENTSITE_MCP_REGISTRATIONS_PER_HOUR = env.int("AGENTSITE_MCP_REGISTRATIONS_PER_HOUR", default=30)
"""From one address; 0: any number."""
AGENTSITE_MCP_EXCHANGES_PER_MINUTE = env.int("AGENTSITE_MCP_EXCHANGES_PER_MINUTE", default=120)
"""Requests for tokens, and to end them, from one address; 0: any number."""
AGENTSITE_MCP_SERVERS = env.int("AGENTSITE_MCP_SERVERS", default=20)
"""MCP servers of everybody, of one organisation, and of one person there."""
AGENTSITE_MCP_TOOLS_PER_SERVER = env.int("AGENTSITE_MCP_TOOLS_PER_SERVER", default=128)
"""Tools of one MCP server; what it has beyond is not looked at."""
AGENTSITE_MCP_TOOLS_SHARE = env.int("AGENTSITE_MCP_TOOLS_SHARE", default=10)
"""Percent of the model's window. Where tools of MCP servers are longer together, the model looks for them."""
AGENTSITE_MCP_ANSWER_BYTES = env.int("AGENTSITE_MCP_ANSWER_BYTES", default=5 * 1024 * 1024)
"""Bytes of one answer of an MCP server; a longer one is broken off."""
AGENTSITE_MCP_ANSWER_PARTS = env.int("AGENTSITE_MCP_ANSWER_PARTS", default=40_000)
"""Values, fields and lines of such an answer: what it costs to read, for which all runs wait."""
AGENTSITE_MCP_IDLE_SECONDS = env.int("AGENTSITE_MCP_IDLE_SECONDS", default=300)
"""Seconds after which a session with an MCP server is closed that nobody used."""
AGENTSITE_MCP_RELIST_SECONDS = env.int("AGENTSITE_MCP_RELIST_SECONDS", default=300)
"""Seconds after which a server is asked again, before a call, what tools it has."""
AGENTSITE_WEBHOOK_ALLOW_HTTP = env.bool("AGENTSITE_WEBHOOK_ALLOW_HTTP", default=False)
"""Whether webhooks may also go to plain http; else only to https."""
AGENTSITE_WEBHOOK_PRIVATE_HOSTS: list[str] = env.list("AGENTSITE_WEBHOOK_PRIVATE_HOSTS", default=[])
"""Hosts inside this network that webhooks may go to: names, addresses or networks, without a port.
Link-local addresses and metadata services are never among them."""
AGENTSITE_WEBHOOK_ENDPOINTS = env.int("AGENTSITE_WEBHOOK_ENDPOINTS", default=20)
"""Endpoints of one organisation."""
AGENTSITE_WEBHOOK_TIMEOUT = env.int("AGENTSITE_WEBHOOK_TIMEOUT", default=15)
"""Seconds from looking an endpoint's name up to its whole answer."""
AGENTSITE_WEBHOOK_CONCURRENCY = env.int("AGENTSITE_WEBHOOK_CONCURRENCY", default=20)
"""Deliveries that one process sends at once; at most a quarter of them to one endpoint."""
AGENTSITE_WEBHOOK_ATTEMPTS = env.int("AGENTSITE_WEBHOOK_ATTEMPTS", default=15)
"""Attempts at one delivery before it is given up: three within a minute, then ever later."""
AGENTSITE_WEBHOOK_LONGEST_DELAY = env.int("AGENTSITE_WEBHOOK_LONGEST_DELAY", default=6 * 3600)
"""Seconds between two attempts at most."""
AGENTSITE_WEBHOOK_FAILING_HOURS = env.int("AGENTSITE_WEBHOOK_FAILING_HOURS", default=72)
"""An endpoint of which no attempt succeeded for so long is switched off."""
AGENTSITE_WEBHOOK_LOG_DAYS = env.int("AGENTSITE_WEBHOOK_LOG_DAYS", default=30)
"""How long settled deliveries are kept."""
AGENTSITE_WEBHOOK_SECRET_HOURS = env.int("AGENTSITE_WEBHOOK_SECRET_HOURS", default=24)
"""How long a replaced secret signs beside its successor, unless somebody says otherwise."""
AGENTSITE_MAIL_SECONDS = env.int("AGENTSITE_MAIL_SECONDS", default=60)
"""How often a process looks for what waits for people so long that they are mailed; 0: never."""
AGENTSITE_PUSH_SECONDS = env.int("AGENTSITE_PUSH_SECONDS", default=30)
"""How often a process looks for what is to be pushed to people's browsers; 0: never, and none is offered."""
AGENTSITE_PUSH_KEY = env.str("AGENTSITE_PUSH_KEY", default="")
"""The private key by which push services know this server (VAPID): 32 bytes in URL-safe base64. Empty: one is
made and kept sealed. With another key every browser has to be signed up again."""
AGENTSITE_PUSH_DEVICES = env.int("AGENTSITE_PUSH_DEVICES", default=10)
"""Browsers of one person that take pushes."""
AGENTSITE_PUSH_PRIVATE_HOSTS: list[str] = env.list("AGENTSITE_PUSH_PRIVATE_HOSTS", default=[])
"""Hosts inside this network that push services may be at, each with its port: `push.internal:8080`. They may
be reached by plain http; all others by https only."""
AGENTSITE_CONCURRENT_RUNS = env.int("AGENTSITE_CONCURRENT_RUNS", default=200)
"""Runs that one process carries at once; they wait for model services most of their time. More wait
for their turn."""
AGENTSITE_DRAIN_SECONDS = env.int("AGENTSITE_DRAIN_SECONDS", default=20)
"""How long a process that is told to stop lets running steps come to their end."""
AGENTSITE_DATABASE_CONNECTIONS = env.int("AGENTSITE_DATABASE_CONNECTIONS", default=20)
"""PostgreSQL connections that one process holds at most; who needs one more waits for it."""
AGENTSITE_METRICS_TOKEN = env.str("AGENTSITE_METRICS_TOKEN", default="")
"""Whoever asks for /metrics, or for the details of /readyz, presents it as a bearer token; empty: nobody
may."""
AGENTSITE_METRICS_PORT = env.int("AGENTSITE_METRICS_PORT", default=0)
"""Where a worker, which serves no pages, answers probes and metrics; 0: nowhere."""
AGENTSITE_PROVIDER_TIMEOUT = env.int("AGENTSITE_PROVIDER_TIMEOUT", default=600)
"""Seconds a model service may stay silent before its request is given up."""
AGENTSITE_PROVIDER_REPLY_SECONDS = env.int("AGENTSITE_PROVIDER_REPLY_SECONDS", default=3600)
"""Seconds in which a reply must have ended, however steadily it trickles in."""

AGENTSITE_RETENTION_SECONDS = env.int("AGENTSITE_RETENTION_SECONDS", default=600)
"""How often a process deletes what organisations' rules no longer keep; 0: never."""
AGENTSITE_DECAY_SECONDS = env.int("AGENTSITE_DECAY_SECONDS", default=3600)
"""How often memories fade by the rules of their stores; 0: never."""
AGENTSITE_OWN_ACCOUNT_DELETION = env.bool("AGENTSITE_OWN_ACCOUNT_DELETION", default=True)
"""Whether people may delete their own accounts."""

AGENTSITE_TITLE_MODELS: dict[str, str] = env.dict(
    "AGENTSITE_TITLE_MODELS", default={"anthropic": "claude-haiku-5-5"}
)
"""The model of each service that names conversations. Empty, or without the service: their first words do."""
AGENTSITE_TITLE_TOKENS_PER_DAY = env.int("AGENTSITE_TITLE_TOKENS_PER_DAY", default=50_000)
"""Of one person, for all titles together."""

AGENTSITE_LEARNING_MODELS: dict[str, str] = env.dict("AGENTSITE_LEARNING_MODELS", default={})
"""The model of each service that reads conversations, once they rest, for what is to be remembered. Empty, or
without the service: agents alone remember."""
AGENTSITE_LEARNING_TOKENS_PER_DAY = env.int("AGENTSITE_LEARNING_TOKENS_PER_DAY", default=200_000)
"""Of one person, for all of that together; 0: none is read."""
AGENTSITE_LEARNING_CHARACTERS = env.int("AGENTSITE_LEARNING_CHARACTERS", default=1_000)
"""So much has to be new in a conversation before it is read on."""

AGENTSITE_SANDBOXES: list[str] = env.list("AGENTSITE_SANDBOXES", default=["bubblewrap", "process"])
"""The sandboxes this server uses, in the order in which they are tried: bubblewrap, process, docker,
openshell. A command runs in the first that can hold its policy, or not at all."""
AGENTSITE_SANDBOX_UNCONFINED = env.bool("AGENTSITE_SANDBOX_UNCONFINED", default=False)
"""Whether environments may ask for commands without any sandbox. Whoever may use such an environment
can do what this server can."""
AGENTSITE_SANDBOX_UNRESTRICTED = env.bool("AGENTSITE_SANDBOX_UNRESTRICTED", default=False)
"""Whether environments may open every public host (`unrestricted` on /v1, the host `*` in a policy).
Addresses inside stay closed. An agent can then send what it read to anybody."""
AGENTSITE_SANDBOX_ENVIRONMENT: list[str] = env.list("AGENTSITE_SANDBOX_ENVIRONMENT", default=[])
"""Names of this server's environment variables that policies may hand to commands (`env_allow`), besides
LANG, LC_ALL, TERM and TZ. What looks like a secret never is."""
AGENTSITE_MOUNT_ROOTS: list[str] = env.list("AGENTSITE_MOUNT_ROOTS", default=[])
"""Folders of this host below which the policies of environments may open what they name
(`filesystem_policy`), besides the system's programs. What is the server's own is never opened, and where it
takes skills and documents from, nothing is written."""
AGENTSITE_ENV_FILE_PATH = environment.env_file()
AGENTSITE_DOCKER_IMAGE = env.str("AGENTSITE_DOCKER_IMAGE", default="debian:12")
"""The image of the sandbox `docker`, on the engine already. `debian@sha256:…` stays the same; what a tag
names when a process first looks is used for as long as the engine has it."""
AGENTSITE_OPENSHELL_ENDPOINT = env.str("AGENTSITE_OPENSHELL_ENDPOINT", default="")
AGENTSITE_SHELLS = env.int("AGENTSITE_SHELLS", default=200)
"""Shells that one process keeps open; the one that was idle longest makes room."""
AGENTSITE_SHELL_IDLE_SECONDS = env.int("AGENTSITE_SHELL_IDLE_SECONDS", default=900)
"""A shell that was not used for so long is closed, with all it left running."""
AGENTSITE_WORKSPACE_MEGABYTES = env.int("AGENTSITE_WORKSPACE_MEGABYTES", default=2048)
"""What one conversation's workspace may hold, whoever fills it; 0: any amount."""
AGENTSITE_CHECKPOINT_MEGABYTES = env.int("AGENTSITE_CHECKPOINT_MEGABYTES", default=256)
"""A workspace that holds more is not kept before a turn changes it, and going back leaves its files as
they are; 0: none is ever kept."""
AGENTSITE_CHECKPOINT_FILES = env.int("AGENTSITE_CHECKPOINT_FILES", default=20_000)
"""The same for how many files, folders and links it holds."""
AGENTSITE_CHECKPOINTS_MEGABYTES = env.int("AGENTSITE_CHECKPOINTS_MEGABYTES", default=1024)
"""What all checkpoints of one conversation may take together; past it the oldest ones go."""
AGENTSITE_BACKGROUND_COMMANDS = env.int("AGENTSITE_BACKGROUND_COMMANDS", default=5)
"""Background commands of one conversation that run at once."""
AGENTSITE_SUBAGENT_DEPTH = env.int("AGENTSITE_SUBAGENT_DEPTH", default=1)
"""How deep subagents may be nested below the conversation of a person; 0: there are none."""
AGENTSITE_SUBAGENTS_AT_ONCE = env.int("AGENTSITE_SUBAGENTS_AT_ONCE", default=10)
"""Subagents that work at once below one conversation of a person."""
AGENTSITE_SUBAGENTS_IN_ALL = env.int("AGENTSITE_SUBAGENTS_IN_ALL", default=200)
"""How often agents of one such tree may ask a subagent."""
AGENTSITE_SUBAGENTS_ASK_ABOVE = env.float("AGENTSITE_SUBAGENTS_ASK_ABOVE", default=5.0)
"""US dollars that subagents begun together may cost at most without a person being asked; 0: nobody is."""

AGENTSITE_SEARCH_PROVIDER = env.str("AGENTSITE_SEARCH_PROVIDER", default="").strip().lower()
"""What web_search asks: `searxng`, `ddgs`, or empty for nothing. Its host must be listed in the
network_policies of the environments that may search."""
AGENTSITE_SEARXNG_URL = env.str("AGENTSITE_SEARXNG_URL", default="")
"""The address of a SearXNG server that offers JSON, for that provider."""

_https = urlsplit(AGENTSITE_BASE_URL).scheme == "https"
_base_host = urlsplit(AGENTSITE_BASE_URL).hostname

# --- Security -------------------------------------------------------------------------------------

UNSET_SECRET_KEY = "unset:"  # noqa: S105 - a mark, not a secret
SECRET_KEY = env.str("AGENTSITE_SECRET_KEY", default="") or (
    UNSET_SECRET_KEY + secrets.token_urlsafe(50)
)
"""Unset, it is random for this process only, and a production start is refused."""
SECRET_KEY_FALLBACKS: list[str] = env.list("AGENTSITE_SECRET_KEY_FALLBACKS", default=[])

DEBUG = env.bool("AGENTSITE_DEBUG", default=False)

ALLOWED_HOSTS: list[str] = env.list(
    "AGENTSITE_ALLOWED_HOSTS",
    default=["127.0.0.1", "localhost", "[::1]"] if AGENTSITE_ENV == environment.LOCAL else [],
)
if _base_host and _base_host not in ALLOWED_HOSTS:
    ALLOWED_HOSTS = [*ALLOWED_HOSTS, _base_host]

_origin = f"{urlsplit(AGENTSITE_BASE_URL).scheme}://{urlsplit(AGENTSITE_BASE_URL).netloc}"
CSRF_TRUSTED_ORIGINS: list[str] = env.list(
    "AGENTSITE_CSRF_TRUSTED_ORIGINS", default=[_origin] if AGENTSITE_BASE_URL else []
)

SESSION_COOKIE_SECURE = env.bool("AGENTSITE_SECURE_COOKIES", default=_https)
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
SESSION_COOKIE_NAME = "agentsite_session"
CSRF_COOKIE_NAME = "agentsite_csrf"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

SECURE_SSL_REDIRECT = env.bool("AGENTSITE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = env.int("AGENTSITE_HSTS_SECONDS", default=31_536_000 if _https else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("AGENTSITE_HSTS_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = False
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # whether subdomains are https only, their owner knows
    "security.W008",  # the proxy that ends TLS redirects
    "security.W021",  # a browser's preload list is joined on purpose
]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

AGENTSITE_BEHIND_PROXY = env.bool("AGENTSITE_BEHIND_PROXY", default=False)
"""Whether a proxy of ours sets X-Forwarded-Proto and -For; else they are not believed."""
AGENTSITE_PROXY_COUNT = env.int("AGENTSITE_PROXY_COUNT", default=1)
"""How many proxies of ours a request passes: so many entries of X-Forwarded-For, from the right, are
theirs."""
AGENTSITE_TRUSTED_PROXIES: list[str] = env.list(
    "AGENTSITE_TRUSTED_PROXIES",
    default=[
        "127.0.0.0/8",
        "::1/128",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "fc00::/7",
        "fe80::/10",
    ],
)
"""From where the innermost of them calls this server: addresses or networks. Nobody else is believed."""

AGENTSITE_ANONYMOUS_BODY_BYTES = env.int("AGENTSITE_ANONYMOUS_BODY_BYTES", default=64 * 1024)
"""Bytes of a request's body that shows no valid session or token."""
AGENTSITE_HEAD_SECONDS = env.int("AGENTSITE_HEAD_SECONDS", default=20)
"""From a request's first byte, or its connection, to the end of its headers."""
AGENTSITE_BODY_SECONDS = env.int("AGENTSITE_BODY_SECONDS", default=30)
"""How long a body may take; one that shows a valid session or token, so long and its length at 8 kB
a second."""
AGENTSITE_CONNECTIONS_PER_ADDRESS = env.int("AGENTSITE_CONNECTIONS_PER_ADDRESS", default=1000)
"""Connections that one address may have open to one process; 0: any number. Not counted behind a
proxy."""
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
DATA_UPLOAD_MAX_NUMBER_FILES = 100

_oidc_server = env.str("AGENTSITE_OIDC_SERVER_URL", default="")
AGENTSITE_OIDC_ORIGINS: list[str] = env.list(
    "AGENTSITE_OIDC_ORIGINS",
    default=[f"{urlsplit(_oidc_server).scheme}://{urlsplit(_oidc_server).netloc}"]
    if _oidc_server
    else [],
)
"""Where single sign-on sends a browser, if that differs from where its server is."""

CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [
            SELF,
            *(
                [f"{'wss' if _https else 'ws'}://{urlsplit(AGENTSITE_BASE_URL).netloc}"]
                if _base_host
                else []
            ),
        ],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        # A browser holds the redirect after a posted form to this too.
        "form-action": [SELF, *AGENTSITE_OIDC_ORIGINS],
    },
}

# --- Apps -----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "daphne",
    "agentsite.adminsite.UnfoldConfig",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "corsheaders",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "axes",
    "jobs",
    "accounts",
    "webhooks",
    "audit",
    "mcpclients",
    "owndata",
    "tools_app",
    "vaults",
    "agents",
    "memory",
    "decay",
    "documents",
    "skills_app",
    "conversations",
    "keeping",
    "notices",
    "chat",
    "approvals",
    "spending",
    "tryouts",
    "workers",
    "deadletters",
    "folders",
    "hooks",
    "mcpservers",
    "prompts",
    "recall",
    "retention",
    "sharedfiles",
    "skillsets",
    "schedules",
    "steering",
    "timelines",
    "subagents",
    "brief",
    "comparisons",
    "evals",
    "learning",
    "pipelines",
    "receipts",
    "teams_app",
    "timers",
    "titles",
    "terminal",
    "agentsite",
]

AGENTSITE_PAGES: tuple[str, ...] = (
    "chat",
    "notices",
    "agents",
    "tryouts",
    "audit",  # before `approvals`, below whose addresses its own are
    "approvals",
    "operations",
    "brief",
    "folders",
    "schedules",
    "hooks",
    "mcpclients",
    "mcpservers",
    "prompts",
    "learning",  # before `recall`, below whose addresses one of its own is
    "recall",
    "decay",
    "documents",
    "owndata",
    "retention",
    "skills_app",
    "skillsets",
    "comparisons",
    "evals",
    "pipelines",
    "receipts",
    "spending",
    "steering",
    "timelines",
    "teams_app",
    "subagents",
    "timers",
    "vaults",
    "webhooks",
    "workers",
)
"""Packages whose `urls` are pages at the root of the site."""

# --- memory ---------------------------------------------------------------------------------------

AGENTSITE_MEMORY_STORES = env.int("AGENTSITE_MEMORY_STORES", default=100)
"""Memory stores in force of one person in an organisation, and of the organisation with its agents."""
AGENTSITE_MEMORY_PROMPT = env.int("AGENTSITE_MEMORY_PROMPT", default=4_000)
"""Characters of a prompt in which an agent is told what was recalled."""
AGENTSITE_MEMORIES = env.int("AGENTSITE_MEMORIES", default=2_000)
"""Memories of one store."""
AGENTSITE_EMBEDDINGS = env.str("AGENTSITE_EMBEDDINGS", default="").strip()
"""What makes vectors of memories and documents, which are then found by them as well: minilm (by meaning,
English, offline), letters (what is spelt otherwise), or the address of a service up to where `/embeddings`
follows, such as https://api.openai.com/v1. Empty: they are found by words alone."""
AGENTSITE_EMBEDDING_MODEL = env.str("AGENTSITE_EMBEDDING_MODEL", default="")
"""Of a service of embeddings, the model that is asked."""
AGENTSITE_EMBEDDING_KEY = env.str("AGENTSITE_EMBEDDING_KEY", default="")
"""Its key; empty: it wants none."""
AGENTSITE_EMBEDDING_DIMENSIONS = env.int("AGENTSITE_EMBEDDING_DIMENSIONS", default=0)
"""Dimensions of its vectors that are asked for; 0: as many as the model has."""
AGENTSITE_EMBEDDING_SECONDS = env.int("AGENTSITE_EMBEDDING_SECONDS", default=60)
"""How often a process looks for texts without a vector, beside those that are just written; 0: never."""

# --- documents ------------------------------------------------------------------------------------

AGENTSITE_COLLECTIONS = env.int("AGENTSITE_COLLECTIONS", default=100)
"""Collections of documents of one person with her service accounts in an organisation, and of those that all
its members share."""
AGENTSITE_DOCUMENTS = env.int("AGENTSITE_DOCUMENTS", default=2_000)
"""Documents of one collection."""
AGENTSITE_DOCUMENT_BYTES = env.int("AGENTSITE_DOCUMENT_BYTES", default=20 * 1024 * 1024)
"""Bytes of one document, and of the files of one upload together."""

AGENTSITE_WATCHED_DOCUMENTS: dict[str, str] = env.dict("AGENTSITE_WATCHED_DOCUMENTS", default={})
"""Directories of this machine whose files are documents of a collection, by the collection's id:
coll_…=/srv/handbooks. What is changed there is read anew, what is deleted is forgotten."""
AGENTSITE_WATCH_SECONDS = env.int("AGENTSITE_WATCH_SECONDS", default=60)
"""How often these directories are looked at; 0: never."""

# --- skills ---------------------------------------------------------------------------------------

AGENTSITE_SKILLS = env.int("AGENTSITE_SKILLS", default=500)
"""Skills of an organisation, of the server, and of one person there."""
AGENTSITE_SKILL_VERSIONS = env.int("AGENTSITE_SKILL_VERSIONS", default=200)
"""Versions of one skill."""
AGENTSITE_SKILL_FILES = env.int("AGENTSITE_SKILL_FILES", default=200)
"""Files of one version."""
AGENTSITE_SKILL_BYTES = env.int("AGENTSITE_SKILL_BYTES", default=10 * 1024 * 1024)
"""Bytes of one version."""
AGENTSITE_SKILLS_BYTES = env.int("AGENTSITE_SKILLS_BYTES", default=1024 * 1024 * 1024)
"""Bytes of all versions of an organisation's skills together."""
AGENTSITE_SKILLS_PROMPT = env.int("AGENTSITE_SKILLS_PROMPT", default=8_000)
"""Characters of every prompt in which an agent's skills are named."""
AGENTSITE_SKILLS_PUBLIC = env.bool("AGENTSITE_SKILLS_PUBLIC", default=False)
"""Whether anybody may install the server's own skills from `/.well-known/agent-skills/`."""
AGENTSITE_SKILLS_PRIVATE_HOSTS: list[str] = env.list("AGENTSITE_SKILLS_PRIVATE_HOSTS", default=[])
"""Hosts and networks inside, with their ports, from which skills may be installed all the same."""
AGENTSITE_SKILLS_INDEX = env.str("AGENTSITE_SKILLS_INDEX", default="")
"""The index from which Python packages that skills need are installed, an address (https://…/simple/), or a
folder with wheels; empty: none are."""
AGENTSITE_SKILLS_INDEX_HOSTS: list[str] = env.list("AGENTSITE_SKILLS_INDEX_HOSTS", default=[])
"""Hosts beside the index's own on which its files lie."""
AGENTSITE_SKILLS_PACKAGES_MB = env.int("AGENTSITE_SKILLS_PACKAGES_MB", default=500)
"""Megabytes of the packages of one skill."""
AGENTSITE_SKILLS_PACKAGES_TOTAL_MB = env.int("AGENTSITE_SKILLS_PACKAGES_TOTAL_MB", default=5_000)
"""Megabytes of the packages of all skills together; those of one organisation take half of them at most."""
AGENTSITE_PROMPT_SOURCE_SECONDS = env.int("AGENTSITE_PROMPT_SOURCE_SECONDS", default=300)
"""How many seconds apart sources of prompts are asked what they have; 0: only when somebody says so."""
AGENTSITE_PROMPTS_PRIVATE_HOSTS: list[str] = env.list("AGENTSITE_PROMPTS_PRIVATE_HOSTS", default=[])
"""Hosts and networks inside, with their ports, from which prompts may be fetched all the same."""
AGENTSITE_STRANDS_DIR = env.str("AGENTSITE_STRANDS_DIR", default=str(BASE_DIR / ".venv-strands"))
"""The environment that `make strands` makes, in which pipelines with `engine: strands` are driven."""
AGENTSITE_SKILLS_DIR = env.str("AGENTSITE_SKILLS_DIR", default="")
"""A folder with skills, each in one of its own, whose edits become draft versions; empty: none is watched."""
AGENTSITE_SKILLS_DIR_SECONDS = env.int(
    "AGENTSITE_SKILLS_DIR_SECONDS", default=1 if AGENTSITE_SKILLS_DIR else 0
)
"""How many seconds apart that folder is looked at; 0: never."""
AGENTSITE_SKILLS_FOLDERS: list[str] = env.list("AGENTSITE_SKILLS_FOLDERS", default=[])
"""Folders of this machine from which, or from below which, staff may have skills installed."""

# --- tasks and teams ------------------------------------------------------------------------------

AGENTSITE_BOARD_TASKS = env.int("AGENTSITE_BOARD_TASKS", default=1_000)
"""Tasks of one board."""
AGENTSITE_TEAMMATES = env.int("AGENTSITE_TEAMMATES", default=5)
"""Teammates that one conversation leads at once; 0: no conversation works as a team."""
AGENTSITE_TEAM_MESSAGES = env.int("AGENTSITE_TEAM_MESSAGES", default=200)
"""Messages that the agents of a team write to each other before a person speaks again."""
AGENTSITE_TEAMMATE_IDLE_SECONDS = env.int("AGENTSITE_TEAMMATE_IDLE_SECONDS", default=86_400)
"""How long a teammate may be idle before it is dismissed."""
AGENTSITE_TEAM_REQUEST_SECONDS = env.int("AGENTSITE_TEAM_REQUEST_SECONDS", default=86_400)
"""After so long a request in a team that nobody answered expires."""
AGENTSITE_TEAM_SECONDS = env.int("AGENTSITE_TEAM_SECONDS", default=30)
"""How often teams are looked after without anything having happened; 0: never."""

# --- programs in the pages of other sites ---------------------------------------------------------

AGENTSITE_CORS_ORIGINS: list[str] = env.list("AGENTSITE_CORS_ORIGINS", default=[])
"""Sites whose pages may use the doors for programs, with tokens. Empty: none."""
CORS_ALLOW_ALL_ORIGINS = "*" in AGENTSITE_CORS_ORIGINS
CORS_ALLOWED_ORIGINS = [origin for origin in AGENTSITE_CORS_ORIGINS if origin != "*"]
CORS_URLS_REGEX = cors.TOKEN_DOORS if AGENTSITE_CORS_ORIGINS else cors.NO_DOOR
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CORS_ALLOW_HEADERS = cors.ALLOWED_HEADERS
CORS_EXPOSE_HEADERS = cors.EXPOSED_HEADERS

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "agentsite.csp.ContentSecurityPolicyMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "agentsite.foreignpages.ForeignPagesMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.suspendedforms.SuspendedFormsMiddleware",
    "accounts.middleware.LanguageMiddleware",
    "accounts.middleware.OrganisationMiddleware",
    "agentsite.drawing.DrawingMiddleware",
    "axes.middleware.AxesMiddleware",
    "agentsite.nul.NulMiddleware",
    "agentsite.declined.DeclinedMiddleware",
]
AGENTSITE_MIDDLEWARE_OF_PAGES = frozenset(
    {
        "agentsite.csp.ContentSecurityPolicyMiddleware",
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django_htmx.middleware.HtmxMiddleware",
        "allauth.account.middleware.AccountMiddleware",
        "accounts.suspendedforms.SuspendedFormsMiddleware",
        "accounts.middleware.LanguageMiddleware",
        "accounts.middleware.OrganisationMiddleware",
        "agentsite.drawing.DrawingMiddleware",
        "axes.middleware.AxesMiddleware",
        "agentsite.nul.NulMiddleware",
        "agentsite.declined.DeclinedMiddleware",
    }
)
"""Of these, such as are for whoever is signed in by a cookie, or for addresses with parameters: nothing to
whoever shows a token at the one address of `/mcp` (`agentsite.doors`)."""

ROOT_URLCONF = "agentsite.urls"
ASGI_APPLICATION = "agentsite.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.context_processors.organisations",
                "approvals.context_processors.approvals",
                "conversations.context_processors.commands",
            ],
        },
    },
]

# --- Data -----------------------------------------------------------------------------------------

_database_url = env.str("AGENTSITE_DATABASE_URL", default="")
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db_url_config(_database_url)
    if _database_url
    else {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": AGENTSITE_DATA_DIR / "db.sqlite3",
    },
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    AGENTSITE_DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    DATABASES["default"]["ENGINE"] = "agentsite.sqlite3"
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # A turn has more than the usual 128, and one that is not kept is compiled anew: 70 µs each.
        "cached_statements": 512,
        # Folding the write-ahead log into the file costs every commit of a busy log less when it comes
        # at 32 MB than at the usual 4.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        " PRAGMA wal_autocheckpoint=8000;",
    }
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    # Every thread gives its connection back when its work is done, and the pool bounds how many
    # there are, whatever the load. The backend looks after those that a restart broke.
    DATABASES["default"]["ENGINE"] = "agentsite.postgresql"
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": AGENTSITE_DATABASE_CONNECTIONS,
        "timeout": 30,
        "max_idle": 120,
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "agentsite.cache.LenientRedisCache",
        "LOCATION": AGENTSITE_REDIS_URL,
        "KEY_PREFIX": "agentsite:cache",
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
    if AGENTSITE_REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # Of Django's own 300 a sweep alone needs more: counted guesses would be forgotten for them.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        # A reader waits as long as nothing is said; the client's own limit would close its socket.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": AGENTSITE_REDIS_URL, "socket_timeout": None}]},
    }
    if AGENTSITE_REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 2000}},
}
"""For rare control messages only; events and streaming text take their own road."""

# --- People ---------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "accounts.backends.PeopleBackend",
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

SESSION_ENGINE = "accounts.sessionstore"

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "account_login"

# --- E-mail ---------------------------------------------------------------------------------------

_email_url = env.str("AGENTSITE_EMAIL_URL", default="")
AGENTSITE_EMAIL_CONFIGURED = bool(_email_url)
"""Whether mails really go out; without, they are printed to the console."""
_email = env.email_url_config(_email_url or "consolemail://")
EMAIL_BACKEND = _email["EMAIL_BACKEND"]
EMAIL_HOST = _email.get("EMAIL_HOST") or "localhost"
EMAIL_PORT = _email.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = _email.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _email.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = _email.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _email.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.str("AGENTSITE_FROM_EMAIL", default="Agentsite <agentsite@localhost>")
SERVER_EMAIL = parseaddr(DEFAULT_FROM_EMAIL)[1]

# --- Sign-in (allauth, axes) ----------------------------------------------------------------------

ACCOUNT_ADAPTER = "accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "accounts.signinforms.LoginForm",
    "signup": "accounts.signinforms.SignupForm",
    "add_email": "accounts.signinforms.AddEmailForm",
    "change_password": "accounts.signinforms.ChangePasswordForm",
    "set_password": "accounts.signinforms.SetPasswordForm",
    "reset_password": "accounts.signinforms.ResetPasswordForm",
    "reset_password_from_key": "accounts.signinforms.ResetPasswordKeyForm",
    "reauthenticate": "accounts.signinforms.ReauthenticateForm",
}
ACCOUNT_LOGIN_METHODS = {"email", "username"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if AGENTSITE_EMAIL_CONFIGURED else "optional"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Agentsite] "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if _https else "http"
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_USER_DISPLAY = "accounts.adapters.display_name"
ACCOUNT_RATE_LIMITS = {"login_failed": "30/m/ip,10/300s/key"}
"""Of passwords by address, and of TOTP codes by account too: who gets that far knows the password.
An account's own count is `accounts.lockout`'s, which nobody else can fill up for her."""
ALLAUTH_RATE_LIMIT_IPV6_PREFIX = 64

MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Agentsite"
MFA_TOTP_TOLERANCE = 1
MFA_FORMS = {
    "authenticate": "accounts.signinforms.SecondFactorForm",
    "reauthenticate": "accounts.signinforms.SecondFactorAgainForm",
    "activate_totp": "accounts.signinforms.ActivateTOTPForm",
    "deactivate_totp": "accounts.signinforms.DeactivateTOTPForm",
    "generate_recovery_codes": "accounts.signinforms.GenerateRecoveryCodesForm",
}
MFA_ADAPTER = "accounts.adapters.MFAAdapter"

SOCIALACCOUNT_FORMS = {
    "signup": "accounts.signinforms.SocialSignupForm",
    "disconnect": "accounts.signinforms.DisconnectForm",
}
SOCIALACCOUNT_ADAPTER = "accounts.adapters.SocialAccountAdapter"
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_LOGIN_ON_GET = False
AGENTSITE_OIDC_SIGNUP = env.bool("AGENTSITE_OIDC_SIGNUP", default=False)
"""Whether whoever the identity provider lets in may create an account without an invitation."""
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = (
    {
        "openid_connect": {
            "APPS": [
                {
                    "provider_id": env.str("AGENTSITE_OIDC_ID", default="oidc"),
                    "name": env.str("AGENTSITE_OIDC_NAME", default="Single sign-on"),
                    "client_id": env.str("AGENTSITE_OIDC_CLIENT_ID", default=""),
                    "secret": env.str("AGENTSITE_OIDC_CLIENT_SECRET", default=""),
                    # Without it a code that leaked signs in whoever has it, in her own browser.
                    "settings": {"server_url": _oidc_server, "oauth_pkce_enabled": True},
                }
            ],
        }
    }
    if _oidc_server
    else {}
)

AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = env.int("AGENTSITE_LOGIN_FAILURES", default=5)
AXES_COOLOFF_TIME = env.int("AGENTSITE_LOGIN_COOLOFF_MINUTES", default=15) / 60
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "accounts/locked_out.html"
AXES_USERNAME_CALLABLE = "accounts.lockout.username_of"
AXES_CLIENT_IP_CALLABLE = "accounts.lockout.address_of"
AXES_HANDLER = "accounts.lockout.AccountHandler"
AXES_VERBOSE = False

# --- Programs -------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.scopes.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.api.throttling.TokenThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
"""Programs show a token; a browser's session opens none of their doors."""

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Agentsite",
    "DESCRIPTION": "Everything a person can do on a page, a program can do with a token.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SORT_OPERATIONS": True,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ConversationStatus": ["idle", "running", "rescheduling", "terminated"],
        "HealthStatus": ["ok", "unavailable"],
        "DeletedStatus": ["deleted"],
        "ShareRole": ["viewer", "writer", "decider"],
        "EffortLevel": ["low", "medium", "high", "xhigh", "max"],
        "ToolPermission": ["always_allow", "always_ask"],
        "DeliveryState": ["pending", "delivered", "failed", "dead"],
        "WorkState": ["queued", "starting", "active", "stopping", "stopped"],
        "McpServerScope": ["deployment", "organisation", "agent", "person", "conversation"],
        "NewMcpServerScope": ["deployment", "organisation", "person"],
        "SkillScope": ["own", "organisation", "server"],
        "NewSkillScope": ["own", "organisation"],
        "SharedScope": ["organisation", "server"],
        "PromptSourceKind": ["langfuse", "site", "git"],
        "SkillSourceKind": ["server", "index", "git", "clawhub", "plugin", "folder"],
        "EvaluationState": ["running", "done", "stopped"],
        "PipelineRunState": ["running", "done", "failed", "stopped"],
        "PipelineRunStanding": ["running", "waits", "done", "failed", "stopped"],
        "ComparisonStanding": ["running", "waits", "done", "stopped"],
        "ComparisonEntryState": ["running", "waits", "judging", "done", "failed", "stopped"],
        "ComparisonWonBy": ["quality", "tokens", "alone", "tie"],
        "PipelineStepState": ["running", "waits", "asking", "done", "failed", "stopped"],
        "RosterSwitch": ["enabled", "disabled"],
        "SkillVersionState": ["draft", "waiting", "released", "refused", "yanked"],
        "TaskStatus": ["pending", "in_progress", "completed", "cancelled"],
        "TaskOwnerKind": ["person", "agent"],
        "TeammateStatus": ["working", "waiting", "idle", "stopped", "dismissed"],
        "TeamRequestKind": ["shutdown", "plan", "handover", "question"],
        "TeamRequestState": ["pending", "approved", "rejected", "expired"],
        "TeamMessageKind": ["message", "broadcast", "request", "person", "notice"],
        "TaskLinkKind": ["conversation", "run", "file"],
        "TokenEndpointSignIn": ["client_secret_basic", "client_secret_post"],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Links within the buttons that unfold an operation would be reached by no screen reader.
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": False,
        "validatorUrl": None,
        "filter": True,
        "docExpansion": "none",
        "defaultModelsExpandDepth": 0,
    },
    "TAGS": [
        {"name": "Conversations", "description": "/api: begin, send, stop, read, search"},
        {"name": "Catalogue", "description": "/api: tools, presets, defaults"},
        {"name": "Tasks", "description": "/api: boards of tasks, and teams of agents"},
        {"name": "Approvals", "description": "/api: what waits for a person, and answering it"},
        {"name": "Files", "description": "/api: files of a conversation's workspace"},
        {
            "name": "Folders",
            "description": "/api: conversations kept together, and what they are told and given",
        },
        {"name": "Collections", "description": "/api: documents that agents search and cite"},
        {
            "name": "Memory",
            "description": "/api: what agents remember of a person, and her word on it",
        },
        {
            "name": "Schedules",
            "description": "/api: work that begins by itself, work queues, timers, briefs",
        },
        {"name": "MCP servers", "description": "/api: whose tools agents use"},
        {"name": "Evals", "description": "/api: suites, their evaluations, what does worse"},
        {"name": "Pipelines", "description": "/api: agents that work one after another"},
        {"name": "Prompts", "description": "/api: named texts that agents are given, in versions"},
        {"name": "Skills", "description": "/api: what agents are taught, its versions and reviews"},
        {"name": "Webhooks", "description": "/api: what programs elsewhere are told"},
        {"name": "Agents", "description": "/api: agents of one's own, sharing and reviews"},
        {"name": "Who", "description": "/api: whose token it is, and how one signs in"},
        {"name": "agents", "description": "/v1, for the official SDK: agents and their versions"},
        {"name": "environments", "description": "/v1: where tools run"},
        {"name": "sessions", "description": "/v1: conversations"},
        {"name": "events", "description": "/v1: a session's log, and its stream"},
        {"name": "threads", "description": "/v1: what agents within a session did"},
        {"name": "files", "description": "/v1: files to mount into sessions"},
        {"name": "memory stores", "description": "/v1: what agents remember, in versions"},
        {
            "name": "deployments",
            "description": "/v1: sessions that begin by themselves, and their runs",
        },
        {"name": "models", "description": "/v1: what is known of models"},
        {"name": "skills", "description": "/v1: what agents are taught, in versions"},
        {"name": "vaults", "description": "/v1: secrets for other services"},
        {"name": "work", "description": "/v1: calls for workers of an environment"},
        {"name": "agui", "description": "AG-UI: a run as its events"},
    ],
}
"""The OpenAPI document of all doors; its page loads nothing from elsewhere."""

KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105 - the name of a table
MIGRATION_MODULES = {"knox": None}
"""Its own migrations would make the table that ours stands in for, which nobody fills or empties."""
REST_KNOX = {"TOKEN_PREFIX": "ags_", "AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": None}

AGENTSITE_TOKENS_PER_PERSON = env.int("AGENTSITE_TOKENS_PER_PERSON", default=50)
"""Valid tokens that one person and her service accounts may have in one organisation."""
AGENTSITE_SERVICE_ACCOUNTS_PER_ORGANISATION = env.int(
    "AGENTSITE_SERVICE_ACCOUNTS_PER_ORGANISATION", default=20
)
"""Service accounts that one organisation may have; 0: none."""
AGENTSITE_ORGANISATIONS_PER_PERSON = env.int("AGENTSITE_ORGANISATIONS_PER_PERSON", default=10)
"""Organisations that one person may make or own, beside her personal one, before she can make no more;
0: only administrators of the server make any. Those are never held to it."""
AGENTSITE_API_READS_PER_MINUTE = env.int("AGENTSITE_API_READS_PER_MINUTE", default=1200)
"""Requests with one token that only read; 0: any number."""
AGENTSITE_API_WRITES_PER_MINUTE = env.int("AGENTSITE_API_WRITES_PER_MINUTE", default=300)
"""Requests with one token that change something; 0: any number."""
AGENTSITE_API_REQUESTS_PER_DAY = env.int("AGENTSITE_API_REQUESTS_PER_DAY", default=0)
"""All requests with one token from midnight to midnight UTC; 0: any number."""

# --- Language and time ----------------------------------------------------------------------------

LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("ar", "العربية")]
"""Each in its own words: whoever looks for one reads no other. Their words stand in `locale/`."""
LANGUAGE_CODE = "en"
"""Spoken where nobody is asked: what agents are told and logs keep, and to browsers that ask for none."""
AGENTSITE_LANGUAGE = env.str("AGENTSITE_LANGUAGE", default=LANGUAGE_CODE)
"""Of mails to people who chose none."""
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.str("AGENTSITE_TIME_ZONE", default="UTC")
USE_I18N = True
FORMAT_MODULE_PATH = ["agentsite.formats"]
USE_TZ = True

# --- Static files ---------------------------------------------------------------------------------

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = env.bool(
    "AGENTSITE_STATIC_FROM_FINDERS", default=AGENTSITE_ENV == environment.LOCAL
)
"""Serve static files from where they lie; off where `collectstatic` is part of a release."""
STATIC_ROOT = None if WHITENOISE_USE_FINDERS else BASE_DIR / "staticfiles"
WHITENOISE_AUTOREFRESH = DEBUG

# --- Admin ----------------------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Agentsite",
    "SITE_HEADER": "Agentsite",
    "SITE_SYMBOL": "forum",
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("img/favicon.svg")},
    ],
    "STYLES": [lambda request: static("css/admin.css")],
    "SIDEBAR": {"show_search": True, "navigation": "agentsite.sidebar.navigation"},
    "DASHBOARD_CALLBACK": "operations.home.with_panels",
    "COLORS": {
        "primary": {
            "50": "#eef3fe",
            "100": "#dfe8fd",
            "200": "#c3d3fb",
            "300": "#a9c0fb",
            "400": "#9db8fd",
            "500": "#8faefb",
            "600": "#2f5bd0",
            "700": "#254bb0",
            "800": "#203f90",
            "900": "#1d3672",
            "950": "#142347",
        },
    },
}
"""The admin's theme. Words on it are drawn with 600 by day and 500 by night, so those two have contrast."""

# --- Logging --------------------------------------------------------------------------------------

LOGGING = logs.configuration(
    level=env.str("AGENTSITE_LOG_LEVEL", default="INFO").upper(),
    form=env.str("AGENTSITE_LOG_FORMAT", default="text").lower(),
)
