"""What staff find in the admin of agents. Each page is made in `administration`."""

from __future__ import annotations

from django.contrib import admin

from .administration.agents import AgentAdmin
from .administration.environments import EnvironmentAdmin, SandboxRulesAdmin
from .administration.prompts import PromptAdmin
from .models import Agent, Environment, Prompt, SandboxRules

admin.site.register(Agent, AgentAdmin)
admin.site.register(Environment, EnvironmentAdmin)
admin.site.register(SandboxRules, SandboxRulesAdmin)
admin.site.register(Prompt, PromptAdmin)
