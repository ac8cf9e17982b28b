"""What staff find in the admin of conversations. Each page is made in `administration`."""

from __future__ import annotations

from django.contrib import admin

from .administration.defaults import DefaultsAdmin
from .administration.log import ConversationAdmin, EventAdmin
from .administration.runs import ActivationAdmin, ModelTraceAdmin, RunAdmin
from .models import Activation, Conversation, Defaults, Event, ModelTrace, Run

admin.site.register(Conversation, ConversationAdmin)
admin.site.register(Event, EventAdmin)
admin.site.register(Run, RunAdmin)
admin.site.register(Activation, ActivationAdmin)
admin.site.register(ModelTrace, ModelTraceAdmin)
admin.site.register(Defaults, DefaultsAdmin)
