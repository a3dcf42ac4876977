"""dbt's own suites for adapters pass: each class of dbt-tests-adapter is a class here, unless suites.py says why not."""

from tests.integration.dbt.overrides import OWN
from tests.integration.dbt.suites import LEFT_OUT, suites, why_left_out

_ALL = dict(suites())

for _name, _suite in _ALL.items():
    if why_left_out(_name) is None:
        _class = f"Test_{_name.replace('.', '_')}"
        globals()[_class] = type(_class, (OWN.get(_suite, _suite),), {"__module__": __name__})


def test_what_is_left_out_exists() -> None:
    assert not [start for start in LEFT_OUT if not any(name.startswith(start) for name in _ALL)]


def test_each_of_our_own_suites_stands_for_one_of_dbt() -> None:
    bases = {base for suite in _ALL.values() for base in suite.__mro__}
    assert set(OWN) <= bases
