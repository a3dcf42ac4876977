"""Chooses names of tablestore's own that no text uses.

A query that is made of a user's may need a name for a relation or a column. What the user wrote may hold any name, as the name of
a column, as a value, in a comment; so the name grows until it stands nowhere.
"""

import re


def fresh_name(preferred: str, *texts: str) -> str:
    """The name ``preferred`` with so many underscores behind it that no text contains it, in any case. Passes once over each."""
    ends = re.compile(rf"{re.escape(preferred)}(_*)", re.IGNORECASE)
    longest = max((len(end[1]) for text in texts for end in ends.finditer(text)), default=-1)
    return preferred + "_" * (longest + 1)
