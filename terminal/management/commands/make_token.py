"""`manage.py make_token NAME`: an API token for a person, where there is no browser to make one in.

The secret goes to standard output, once and alone; what is said about it to standard error.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from harness.errors import AgentError
from reading.arguments import whole_number
from terminal.local import find_organisation, find_person

LONGEST_DAYS = 3_650


class Command(BaseCommand):
    help = "Make an API token for a person and print its secret, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what it is for, as the list of tokens shows it")
        parser.add_argument("--user", default="", help="whose: name or e-mail")
        parser.add_argument("--organisation", default="", help="in which one of hers")
        parser.add_argument(
            "--scope",
            action="append",
            default=[],
            choices=TokenScope.values,
            help="what it may be used for; may be repeated",
        )
        parser.add_argument(
            "--days",
            type=whole_number(1, LONGEST_DAYS),
            help="until it expires; left out: it does not",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["scope"]:
            raise CommandError(
                f"A token needs a scope. Give --scope; there are: {', '.join(TokenScope.values)}."
            )
        days = options["days"]
        try:
            person = find_person(options["user"])
            issued = create_token(
                actor=person,
                organisation=find_organisation(person, options["organisation"]),
                name=options["name"],
                scopes=options["scope"],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
            )
        except AgentError as problem:
            raise CommandError(problem.words) from problem
        token = issued.token
        until = f"until {token.expiry:%Y-%m-%d %H:%M %Z}" if token.expiry else "without an end"
        self.stderr.write(
            f"A token of {person} in {token.organisation}, {until}: {', '.join(token.scopes)}. "
            "It is shown only now."
        )
        self.stdout.write(issued.secret)
