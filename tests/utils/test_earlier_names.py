import pytest

from adsh.utils.earlier_names import accepts_earlier


@accepts_earlier(choose="tune")
def reproduce(what, *, tune=False):
    return what, tune


def test_an_earlier_name_is_taken_for_todays():
    assert reproduce("table1", choose=True) == reproduce("table1", tune=True) == ("table1", True)
    assert reproduce("table1") == ("table1", False)


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="choose is the earlier name of tune: give one of them"):
        reproduce("table1", choose=True, tune=True)
