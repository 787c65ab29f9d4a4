import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adsh.errors import InputError
from adsh.hamming.bits import as_octets, as_words, bytes_for, check_bits, check_codes, distinct, pack, unpack
from adsh.utils.arrays import unique_rows


@given(st.integers(1, 200), st.integers(0, 20), st.integers(0, 1000))
def test_pack_then_unpack_is_the_identity(bits, n, seed):
    signs = np.random.default_rng(seed).choice([-1, 1], size=(n, bits)).astype(np.int8)
    packed = pack(signs)
    assert packed.dtype == np.uint8
    assert packed.shape == (n, bytes_for(bits))
    assert np.array_equal(unpack(packed, bits), signs)
    for code, row in zip(packed, signs, strict=True):  # one by one
        assert np.array_equal(pack(row), code)
        assert np.array_equal(unpack(code, bits), row)


def test_the_first_bit_is_the_highest_of_the_first_byte_and_padding_is_zero():
    assert pack(np.array([[1, -1, -1, -1, -1, -1, -1, -1, 1, 1, -1, 1]])).tolist() == [[0b10000000, 0b11010000]]


def test_an_output_of_exactly_zero_is_a_plus_one():
    assert unpack(pack(np.array([[0.0, -0.1, 0.1]])), 3).tolist() == [[1, -1, 1]]


@given(st.integers(1, 150), st.integers(1, 30), st.integers(0, 1000))
def test_unique_rows_give_back_every_row_and_its_count(bits, n, seed):
    rng = np.random.default_rng(seed)
    codes = pack(rng.choice([-1, 1], size=(3, bits)))[rng.integers(0, 3, n)]
    values, position, counts = unique_rows(codes)
    assert np.array_equal(values[position], codes)
    assert len({v.tobytes() for v in values}) == len(values)
    assert counts.tolist() == np.bincount(position).tolist()


def test_codes_equal_in_their_first_word_alone_are_distinct():
    signs = np.ones((3, 130))
    signs[1, 64] = signs[2, 129] = -1
    codes = pack(signs)[[2, 0, 1, 0]]
    values, position, counts = unique_rows(codes)
    assert len(values) == 3
    assert np.array_equal(values[position], codes)
    assert counts[position].tolist() == [1, 2, 1, 2]
    assert distinct is unique_rows  # its documented name


def test_words_are_equal_where_codes_are():
    codes = np.arange(36, dtype=np.uint8).reshape(3, 12)
    words = as_words(codes)
    assert words.shape == (3, 2)
    assert len(np.unique(words, axis=0)) == 3
    assert np.bitwise_count(words).sum() == np.bitwise_count(codes).sum()


@pytest.mark.parametrize("bits", [1, 1024, np.int64(48)])
def test_a_code_length_from_1_to_1024_is_taken(bits):
    assert check_bits(bits) == bits
    assert type(check_bits(bits)) is int


@pytest.mark.parametrize("bits", [0, -3, 1025, 12.0, True, "12", None])
def test_a_code_length_outside_1_to_1024_is_refused(bits):
    with pytest.raises(InputError, match="1 to 1024"):
        check_bits(bits)


@pytest.mark.parametrize("bits", [1, 12, 64, 65, 200])
def test_words_give_back_the_bytes_they_were_built_from(bits):
    codes = pack(np.random.default_rng(0).choice([-1, 1], size=(5, bits)))
    assert np.array_equal(as_octets(as_words(codes), bits), codes)
    assert np.array_equal(as_octets(as_words(codes)[::2], bits), codes[::2])


def test_a_one_among_the_padding_is_refused_and_its_row_named():
    codes = np.full((4, 3), 255, dtype=np.uint8)
    assert check_codes(codes, 24) is codes
    codes[:, 2] = 0b11110000
    assert check_codes(codes, 20) is codes
    for padding in range(4):
        wrong = codes.copy()
        wrong[2:, 2] |= 1 << padding
        said = "some have a 1 among the 4 padding bits of row 2, but bits=20 uses only 20 of 24 bits"
        with pytest.raises(InputError, match=said):
            check_codes(wrong, 20, "some")


def test_codes_of_another_length_or_type_are_refused():
    codes = np.zeros((4, 3), dtype=np.uint8)
    with pytest.raises(
        InputError, match="some have 3 bytes a row, but bits=12 needs 2: pass bits=24, or encode with a 12"
    ):
        check_codes(codes, 12, "some")
    for wrong in (codes.astype(np.int8), codes[0], codes[None]):
        with pytest.raises(InputError, match="some have type"):
            check_codes(wrong, 24, "some")
    assert np.array_equal(check_codes(torch.tensor(codes), 24), codes)
    assert np.array_equal(check_codes(OnADevice(codes), 24), codes)


class OnADevice:
    """What a tensor on a GPU has: no way to NumPy but over the CPU."""

    def __init__(self, codes):
        self.codes = codes

    def detach(self):
        return self

    def cpu(self):
        return self.codes
