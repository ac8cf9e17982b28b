"""What staff find in the admin of spending. Each page is made in `administration`."""

from __future__ import annotations

from django.contrib import admin

from .administration.budgets import BudgetAdmin
from .administration.prices import ModelPriceAdmin
from .administration.usage import UsageAdmin
from .models import Budget, ModelPrice, Usage

admin.site.register(Budget, BudgetAdmin)
admin.site.register(ModelPrice, ModelPriceAdmin)
admin.site.register(Usage, UsageAdmin)
