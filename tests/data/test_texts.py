from hypothesis import given
from hypothesis import strategies as st

from adsh.data.texts import Texts

ANY = st.text(st.characters(), max_size=6)  # surrogates too


@given(st.lists(st.lists(ANY, max_size=4), max_size=4))
def test_texts_come_back_as_they_were(blocks):
    held, plain = Texts(), [text for block in blocks for text in block]
    for block in blocks:
        held.extend(block)
    assert list(held) == plain
    assert held[::-2] == plain[::-2]
    held.append("end")
    assert held[-1] == "end"
    assert len(held) == len(plain) + 1
