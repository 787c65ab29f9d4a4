"""What every supervised method owes its user, whatever it learns."""

from __future__ import annotations

import numpy as np
import pytest

from adsh.errors import InputError, NotFittedError
from adsh.hamming.bits import pack
from adsh.methods import DEEP, METHODS, create

SUPERVISED = [name for name in METHODS if name not in ("lsh", "itq", *DEEP)]
QUICK = {
    "sdh": {"anchors": 50},
    "cosdish": {"hash_function": "ridge"},
    "lfh": {"hash_function": "ridge"},
    "lfh_decay": {"hash_function": "ridge"},
    "fasth": {"hash_function": "ridge"},
}


def quick(name: str, bits: int = 8, **options):
    return create(name, bits=bits, **QUICK.get(name.removesuffix("_d"), {}), **options)


@pytest.mark.parametrize("name", SUPERVISED)
class TestEach:
    def test_any_kind_of_label_gives_the_same_codes(self, name, blobs):
        Y, labels = blobs
        expected = quick(name).fit(Y, labels).database_codes_
        for same in (np.eye(3, dtype=int)[labels], np.array(["a", "b", "c"])[labels], [["abc"[i]] for i in labels]):
            np.testing.assert_array_equal(quick(name).fit(Y, same).database_codes_, expected)

    def test_items_of_several_labels_fit(self, name, blobs):
        Y, labels = blobs
        hot = np.eye(4, dtype=int)[labels]
        hot[::5, 3] = 1
        method = quick(name).fit(Y, hot)
        assert method.database_codes_.shape == (300, 1)
        assert method.history_[-1]["seconds"] >= 0

    def test_a_class_with_one_member_fits(self, name, blobs):
        Y, labels = blobs
        labels = labels.copy()
        labels[7] = 9
        assert len(quick(name).fit(Y, labels).database_codes_) == 300

    def test_items_without_a_label_are_coded_by_the_hash_function(self, name, blobs):
        Y, labels = blobs
        labels = np.where(np.arange(300) < 100, -1, labels)
        method = quick(name).fit(Y, labels)
        function = method.database_hash_ or method.hash_
        np.testing.assert_array_equal(method.database_codes_[:100], pack(function.outputs(Y[:100].astype(np.float32))))

    def test_the_seed_decides(self, name, blobs):
        first, again = quick(name, seed=5).fit(*blobs), quick(name, seed=5).fit(*blobs)
        np.testing.assert_array_equal(first.database_codes_, again.database_codes_)
        np.testing.assert_array_equal(first.encode(blobs[0]), again.encode(blobs[0]))

    def test_missing_labels_are_refused(self, name, blobs):
        with pytest.raises(InputError, match="learns from labels, and none are given"):
            quick(name).fit(blobs[0])

    def test_too_few_labels_are_refused(self, name, blobs):
        with pytest.raises(InputError, match="299 labels are given for 300 items"):
            quick(name).fit(blobs[0], blobs[1][1:])

    @pytest.mark.parametrize("label", [-1, 0])
    def test_a_single_class_is_refused(self, name, blobs, label):
        with pytest.raises(InputError, match="no two different labels"):
            quick(name).fit(blobs[0], np.full(300, label))

    def test_use_before_fit_is_refused(self, name, blobs):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            quick(name).encode(blobs[0])


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match="choose one of lsh, itq"):
        create("nothing", bits=8)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(InputError, match="method 'sdh_d' has no such option.*'anchor'"):
        create("sdh_d", bits=8, anchor=3)
