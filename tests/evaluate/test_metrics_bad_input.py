"""What the metrics refuse, and how they say it."""

import numpy as np
import pytest

import adsh
from adsh import metrics


def refused(match, *arguments, **options):
    with pytest.raises(adsh.errors.InputError, match=match) as caught:
        metrics.mean_average_precision(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_bad_input_is_refused_with_both_numbers():
    def codes(n, width):
        return np.zeros((n, width), dtype=np.uint8)

    labels = [0, 1]
    refused("query codes have 6 bytes a row and database codes 8", codes(2, 6), codes(2, 8), labels, labels, bits=48)
    refused(
        "query codes have 6 bytes a row, but bits=64 needs 8: pass bits=48",
        codes(2, 6),
        codes(2, 6),
        labels,
        labels,
        bits=64,
    )
    refused("query codes have 12 bytes a row, but bits=12 needs 2", codes(2, 12), codes(2, 12), labels, labels, bits=12)
    odd = codes(2, 2)
    odd[1, 1] = 1
    refused(
        "database codes have a 1 among the 4 padding bits of row 1, but bits=12",
        codes(2, 2),
        odd,
        labels,
        labels,
        bits=12,
    )
    refused("3 query labels for 2 query codes", codes(2, 6), codes(2, 6), [0, 1, 1], labels, bits=48)
    refused("3 database labels for 2 database codes", codes(2, 6), codes(2, 6), labels, [0, 1, 1], bits=48)
    refused("0 query codes and 2 database codes", codes(0, 6), codes(2, 6), labels, labels, bits=48)
    refused("2 query codes and 0 database codes", codes(2, 6), codes(0, 6), labels, labels, bits=48)
    refused("int64 and shape .2, 48.", np.ones((2, 48), int), codes(2, 6), labels, labels, bits=48)
    refused("uint8 and shape .6,.", np.zeros(6, np.uint8), codes(2, 6), labels, labels, bits=48)
    refused("bits=0", codes(2, 6), codes(2, 6), labels, labels, bits=0)
    refused("bits=1025", codes(2, 6), codes(2, 6), labels, labels, bits=1025)
    refused("labels are missing", codes(2, 6), codes(2, 6), labels, bits=48)
    refused("both given", codes(2, 6), codes(2, 6), labels, labels, bits=48, relevance=np.ones((2, 2)))
    refused(
        "shape .2, 3., but there are 2 query codes and 2", codes(2, 6), codes(2, 6), bits=48, relevance=np.ones((2, 3))
    )
    refused("relevance holds -1.*pass S > 0", codes(2, 6), codes(2, 6), bits=48, relevance=-np.ones((2, 2), int))
    refused("relevance holds 0.5", codes(2, 6), codes(2, 6), bits=48, relevance=np.full((2, 2), 0.5))
    refused("relevance holds nan", codes(2, 6), codes(2, 6), bits=48, relevance=np.full((2, 2), np.nan))
    refused("relevance is of type <U1", codes(2, 6), codes(2, 6), bits=48, relevance=np.full((2, 2), "a"))
    refused(
        "ties='random': give 'expected' or 'stable'", codes(2, 6), codes(2, 6), labels, labels, bits=48, ties="random"
    )
    refused(
        "divisor='all': give 'retrieved' or 'min'", codes(2, 6), codes(2, 6), labels, labels, bits=48, divisor="all"
    )
    refused("device='nowhere' cannot be used", codes(2, 6), codes(2, 6), labels, labels, bits=48, device="nowhere")


def test_a_number_of_threads_below_one_is_refused():
    codes = np.zeros((2, 1), dtype=np.uint8)
    refused("threads=0", codes, codes, [0, 1], [0, 1], bits=8, threads=0)


def test_multi_hot_labels_of_other_widths_are_refused_with_both_numbers():
    codes = np.zeros((3, 2), np.uint8)
    with pytest.raises(adsh.errors.InputError, match="3 columns, but database labels have 4"):
        metrics.mean_average_precision(codes[:2], codes, np.eye(3)[:2], np.eye(4)[:3], bits=12)
