"""The tables of standing orders, of what became of their due times, and of mails to and from them."""

from .arrival import Arrival
from .delivery import Delivery
from .item import QueueItem
from .order import StandingOrder
from .run import OrderRun

__all__ = ["Arrival", "Delivery", "OrderRun", "QueueItem", "StandingOrder"]
