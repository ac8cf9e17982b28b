from agentsite.sqlite3 import base
from tests.killing.commits import Counting


class DatabaseWrapper(Counting, base.DatabaseWrapper):
    pass
