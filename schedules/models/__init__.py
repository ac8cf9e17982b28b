"""The tables of standing orders and of what became of their due times."""

from .item import QueueItem
from .order import StandingOrder
from .run import OrderRun

__all__ = ["OrderRun", "QueueItem", "StandingOrder"]
