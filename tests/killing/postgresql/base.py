from django.db.backends.postgresql import base

from tests.killing.commits import Counting


class DatabaseWrapper(Counting, base.DatabaseWrapper):
    pass
