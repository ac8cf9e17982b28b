"""`python -m tests.bytecode`: compiles this checkout on all processors, tests as pytest rewrites them.

Each process of the tests imports all of them, and would compile them for itself in a fresh checkout. What is
not compiled here, or what another pytest keeps in another way, is compiled when it is imported, as ever.
"""

from __future__ import annotations

import compileall
import re
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from _pytest.assertion import AssertionState, rewrite
from _pytest.config import get_config

ROOT = Path(__file__).parents[1]
OTHERS = re.compile(r"/(\.[^/]*|node_modules)/")


@cache
def _config() -> pytest.Config:
    config = get_config()
    config.parse([])
    return config


def rewritten(path: Path) -> None:
    folder = rewrite.get_cache_dir(path)
    folder.mkdir(exist_ok=True)
    source, code = rewrite._rewrite_test(path, _config())
    state = AssertionState(_config(), "rewrite")
    rewrite._write_pyc(state, code, source, folder / f"{path.stem}{rewrite.PYC_TAIL}")


def main() -> None:
    compileall.compile_dir(str(ROOT), quiet=1, workers=0, rx=OTHERS)
    with ProcessPoolExecutor() as processes:
        tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")]
        for _ in processes.map(rewritten, tests, chunksize=20):
            pass


if __name__ == "__main__":
    main()
