"""The rules of torch's operators over traced arrays: one row for each operator, by family.

A rule is found by the operator with its overload, or else without: ``aten.add.Tensor``, ``aten.add``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from mind_mlir.models.torch.rules import random, recurrent
from mind_mlir.models.torch.rules.lists import rule_of_lists
from mind_mlir.support.families import families
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import Rule

#: Every rule, by what torch calls the operator.
RULES: Mapping[str, Rule] = FrozenDict(
    {name: rule for rules in families(__name__, "RULES") for name, rule in rules.items()}
)
_DRAWS = frozenset(random.RULES)


def find_rule(operator: str) -> Rule | None:
    """Return the rule of an operator; None where there is none."""
    found = RULES.get(operator) or RULES.get(operator.rpartition(".")[0])
    return found or rule_of_lists(operator, find_rule)


def takes(rule: Rule, *args: object, **kwargs: object) -> bool:
    """Return whether a rule can be called with arguments: other overloads of its operator may have others."""
    try:
        _signature(rule).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


_signature = lru_cache(maxsize=1024)(inspect.signature)


def draws(operator: str, kwargs: Mapping[str, object], args: tuple[object, ...]) -> bool:
    """Return whether a use of an operator draws random numbers."""
    rate = 0.0
    if "scaled_dot_product" in operator:
        rates = [each for each in (*args[3:5], kwargs.get("dropout_p", 0.0)) if isinstance(each, float)]
        rate = max(rates, default=0.0)
    drops = rate > 0 or recurrent.draws(operator, args)
    return drops or operator.rpartition(".")[0] in _DRAWS
