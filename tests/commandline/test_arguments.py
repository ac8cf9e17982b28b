"""Wrong numbers behind options are refused by every command in words, before anything is done."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, load_command_class

NUMBERS = {
    ("agentsite", "up"): "--port",
    ("agentsite", "serve"): "--workers",
    ("agentsite", "up_scaled"): "--web",
    ("terminal", "make_token"): "--days",
}


@pytest.mark.parametrize("wrong", ["x", "", "0", "-1", "1.5", "9" * 400, "²"])
@pytest.mark.parametrize("command", NUMBERS, ids=lambda command: command[1])
def test_a_wrong_number_is_refused_by_its_option_and_rule(command, wrong):
    option = NUMBERS[command]
    parser = load_command_class(*command).create_parser("manage.py", command[1])
    parser.called_from_command_line = False

    with pytest.raises(CommandError, match=f"{option}: give a whole number from 1 to"):
        parser.parse_args([f"{option}={wrong}"])
