#!/usr/bin/env python
"""The command line. Before Django reads its settings, a missing local `.env` is written."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from agentsite import environment


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    try:
        environment.ensure_secrets()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as refusal:
        sys.exit(f"The settings are wrong: {refusal}")


if __name__ == "__main__":
    main()
