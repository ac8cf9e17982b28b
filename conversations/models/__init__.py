"""The tables of conversations. A package of models re-exports at its root: Django looks here."""

from .activation import Activation
from .background import BackgroundCommand
from .checkpoint import Checkpoint
from .conversation import Conversation
from .event import Event
from .foreign import ForeignMark
from .link import Link
from .partial import PartialBlock
from .preference import Defaults, Preference
from .removal import Removal
from .request_key import RequestKey
from .run import Run
from .search_entry import SearchEntry
from .seat import SeatWait
from .sent_message import SentMessage
from .session_vault import SessionVault
from .share import Share, ShareRole
from .stored_file import FileResource, OutputFile, StoredFile
from .ticket import SocketTicket
from .trace import ModelTrace
from .wake import Wake

__all__ = [
    "Activation",
    "BackgroundCommand",
    "Checkpoint",
    "Conversation",
    "Defaults",
    "Event",
    "FileResource",
    "ForeignMark",
    "Link",
    "ModelTrace",
    "OutputFile",
    "PartialBlock",
    "Preference",
    "Removal",
    "RequestKey",
    "Run",
    "SearchEntry",
    "SeatWait",
    "SentMessage",
    "SessionVault",
    "Share",
    "ShareRole",
    "SocketTicket",
    "StoredFile",
    "Wake",
]
