"""The tables of conversations. The only package whose root re-exports: Django looks here."""

from .activation import Activation
from .agent import Agent, AgentVersion
from .approval import Approval, ApprovalDecision
from .audit import AuditEntry
from .background import BackgroundCommand
from .budget import Budget, BudgetPeriod, BudgetStop, Reservation
from .conversation import Conversation
from .deadletter import DeadLetter
from .environment import Environment, SandboxRules
from .event import Event
from .foreign import ForeignMark
from .notice import Seen, WaitNotice
from .partial import PartialBlock
from .policyrule import PolicyRule
from .preference import Defaults, Preference
from .prompt import Prompt
from .removal import Removal
from .request_key import RequestKey
from .run import Run
from .search_entry import SearchEntry
from .seat import SeatWait
from .sharedfile import SharedDraft, SharedVersion
from .stored_file import FileResource, OutputFile, StoredFile
from .ticket import SocketTicket
from .trace import ModelTrace
from .usage import ModelPrice, Usage
from .vault import SessionVault, Vault, VaultCredential
from .wake import Wake
from .webhook import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookSecret
from .work import EnvironmentKey, HandedCall, WorkItem

__all__ = [
    "Activation",
    "Agent",
    "AgentVersion",
    "Approval",
    "ApprovalDecision",
    "AuditEntry",
    "BackgroundCommand",
    "Budget",
    "BudgetPeriod",
    "BudgetStop",
    "Conversation",
    "DeadLetter",
    "Defaults",
    "Environment",
    "EnvironmentKey",
    "Event",
    "FileResource",
    "ForeignMark",
    "HandedCall",
    "ModelPrice",
    "ModelTrace",
    "OutputFile",
    "PartialBlock",
    "PolicyRule",
    "Preference",
    "Prompt",
    "Removal",
    "RequestKey",
    "Reservation",
    "Run",
    "SandboxRules",
    "SearchEntry",
    "SeatWait",
    "Seen",
    "SessionVault",
    "SharedDraft",
    "SharedVersion",
    "SocketTicket",
    "StoredFile",
    "Usage",
    "Vault",
    "VaultCredential",
    "WaitNotice",
    "Wake",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookSecret",
    "WorkItem",
]
