"""The shared cache, without which everything still works: an unreachable Redis is an empty cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


def _lenient(name: str, missing: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: LenientRedisCache, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(super(LenientRedisCache, self), name)(*args, **kwargs)
        except (RedisError, OSError) as problem:
            logger.warning("the cache is out of reach (%s): %s", name, problem)
            return missing(*args, **kwargs)

    method.__name__ = name
    return method


class LenientRedisCache(RedisCache):
    """Nothing is found while Redis is out of reach, and nothing kept. What counts in the cache (rate
    limits) then counts nothing; what must hold is in the database."""

    add = _lenient("add", lambda *_args, **_kwargs: True)
    get = _lenient("get", lambda _key, default=None, version=None: default)
    set = _lenient("set", lambda *_args, **_kwargs: None)
    touch = _lenient("touch", lambda *_args, **_kwargs: False)
    delete = _lenient("delete", lambda *_args, **_kwargs: False)
    get_many = _lenient("get_many", lambda *_args, **_kwargs: {})
    has_key = _lenient("has_key", lambda *_args, **_kwargs: False)
    incr = _lenient("incr", lambda _key, delta=1, version=None: delta)
    set_many = _lenient("set_many", lambda data, *_args, **_kwargs: list(data))
    delete_many = _lenient("delete_many", lambda *_args, **_kwargs: None)
    clear = _lenient("clear", lambda: False)
