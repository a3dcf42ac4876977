"""The rules of a commit, one function each: it plays the scene that a rule is for and asserts what the rule promises.

Each takes an empty file store and can be played on any. The tests play them on the engine as it is, where they must pass, and
on an engine with a planted bug, where the one that guards the rule must fail.

"Paused" means: while one writer stands at a call of its store, others run to completion on handles of their own.
"""

from tests.support.commitrules import (
    checking,
    compacting,
    history,
    keeping,
    numbering,
    publishing,
    repeating,
    replaying,
    vectors,
)
from tests.support.commitrules.scenes import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "checking",
    "compacting",
    "history",
    "keeping",
    "numbering",
    "publishing",
    "repeating",
    "replaying",
    "vectors",
]
