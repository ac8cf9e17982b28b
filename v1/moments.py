"""Moments in bodies: with their offset, and not near the ends of time, where no clock shows them and no sum
with them comes out (`reading.moments`). Those of a query are `paging`'s.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

from reading.moments import is_moment


def _is_moment(moment: datetime) -> datetime:
    if not is_moment(moment):
        raise ValueError("times near the ends of the calendar are not taken")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_is_moment)]
