import numpy as np
import pytest
import torch

from adsh import LabelSets
from adsh.errors import InputError
from adsh.labels import check_columns


def tags_of_each(labels) -> list[set]:
    sets = LabelSets.of(labels)
    assert sets.sizes.sum() == len(sets)
    return [set(sets.names_of(int(i))) for i in sets.ids]


def test_integers_strings_multi_hot_and_tags_all_name_the_same_sets():
    assert tags_of_each(np.array([2, 0, 2])) == [{2}, {0}, {2}]
    assert tags_of_each([2, 0, 2]) == [{2}, {0}, {2}]
    assert tags_of_each(["cat", "ant", "cat"]) == [{"cat"}, {"ant"}, {"cat"}]
    assert tags_of_each(np.array(["cat", "ant"])) == [{"cat"}, {"ant"}]
    assert tags_of_each(np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])) == [{0, 2}, {1}, {0, 2}]
    assert tags_of_each([["cat", "ant"], ("cat",), {"ant", "cat"}]) == [{"cat", "ant"}, {"cat"}, {"cat", "ant"}]
    assert tags_of_each(torch.tensor([1, 0])) == [{1}, {0}]
    assert tags_of_each(LabelSets(np.array([1, 0, 1]), [["a"], ["a", "b"]])) == [{"a", "b"}, {"a"}, {"a", "b"}]
    assert tags_of_each(LabelSets([1, 0], np.array([[1, 1], [0, 1]]))) == [{1}, {0, 1}]


def test_no_label_is_minus_one_none_or_empty():
    assert tags_of_each(np.array([-1, 3, 0])) == [set(), {3}, {0}]
    assert tags_of_each([None, "a", ""]) == [set(), {"a"}, set()]
    assert tags_of_each([0, None, 1]) == [{0}, set(), {1}]
    assert tags_of_each(np.array([0, None, 1], dtype=object)) == [{0}, set(), {1}]
    assert tags_of_each(np.array([2, -1, 0], dtype=np.int8)) == [{2}, set(), {0}]
    assert tags_of_each(np.array([5_000_000_000, -1])) == [{5_000_000_000}, set()]
    assert tags_of_each([[], ["a"], None]) == [set(), {"a"}, set()]
    assert tags_of_each(np.array([[0, 0], [0, 1]])) == [set(), {1}]


def test_classes_numbered_from_zero_are_used_uncopied():
    labels = np.array([0, 2, 1, 2], dtype=np.uint8)
    assert LabelSets.of(labels).ids is labels


def test_classes_numbered_otherwise_keep_their_names():
    labels = np.array([7, 3, 7, 1_000_000_007])
    sets = LabelSets.of(labels)
    assert sets.set_count == 3
    assert tags_of_each(labels) == [{7}, {3}, {7}, {1_000_000_007}]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.array([0.5, 1.0]), "integers, strings"),
        (np.array([-2, 1]), "-1 for no label"),
        (np.array([[0, 2], [1, 0]]), "labels hold 2: give 0 and 1 only"),
        (np.zeros((2, 2, 2)), "shape"),
        ([], "empty"),
        (np.array([], dtype=int), "empty"),
        (np.array([], dtype=str), "empty"),
        ([1, "a"], "labels hold 1: give all integers, all strings, or a collection of tags each"),
        ([[0, 1, 0], [1, 0, 0]], "numpy.array"),
        ([[1.5], [2.5]], "strings or integers"),
        ("cat", "'cat': give one label a point"),
        (5, "5: give one label a point"),
        (np.array([b"a", b"b"]), "integers, strings"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_in_words(labels, said):
    with pytest.raises(InputError, match=said):
        LabelSets.of(labels)


def test_an_id_beyond_the_table_names_both_numbers():
    with pytest.raises(InputError, match="ids hold 3, but the table has 2 sets, numbered 0 to 1$"):
        LabelSets(np.array([0, 3]), [["a"], ["b"]])


def test_a_table_of_sets_takes_single_tags_and_refuses_what_it_would_have_to_guess():
    sets = LabelSets([0, 1, 1], ["cat", "rat"])
    assert [sets.names_of(k) for k in (0, 1)] == [("cat",), ("rat",)]
    with pytest.raises(InputError, match=r"numpy\.array\(sets\)"):
        LabelSets([0, 1], [[1, 0, 0], [0, 1, 1]])
    with pytest.raises(InputError, match="sets hold 1.5: give a collection of tags each"):
        LabelSets([0], [1.5])
    for ids in (np.zeros((1, 1), int), np.zeros(1), 0):
        with pytest.raises(InputError, match="give .n,. integers"):
            LabelSets(ids, ["cat"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64, ">i2"])
def test_classes_of_any_integer_type_are_counted_and_renumbered(dtype):
    values = np.random.default_rng(0).choice([3, 5, 100], size=500)
    sets = LabelSets.of(values.astype(dtype))
    assert sets.names == (3, 5, 100)
    assert np.array_equal(np.array([3, 5, 100])[sets.ids], values)
    assert sets.sizes.tolist() == [(values == v).sum() for v in (3, 5, 100)]


def test_labels_may_be_called_by_other_names_and_put_over_other_points():
    labels = LabelSets.of(np.array([[1, 0], [1, 1], [0, 0]])).with_names(["cat", "dog"])
    assert [labels.names_of(int(i)) for i in labels.ids] == [("cat",), ("cat", "dog"), ()]
    assert (LabelSets.called, LabelSets.over) == (LabelSets.with_names, LabelSets.with_ids)  # the earlier names
    again = labels.with_ids(labels.ids[[2, 2, 0]])
    assert [again.names_of(int(i)) for i in again.ids] == [(), (), ("cat",)]
    assert again.sizes.sum() == 3
    with pytest.raises(InputError, match="1 names are given for 2 tags"):
        labels.with_names(["cat"])
    with pytest.raises(InputError, match="ids hold 3"):
        labels.with_ids(np.array([3]))


def test_the_last_set_of_a_table_may_be_empty_and_used_by_nobody():
    sets = LabelSets([0, 0], np.array([[0, 1], [1, 0], [0, 0]]))
    assert sets.sizes.tolist() == [2, 0, 0]
    assert sets.empty.tolist() == [False, False, True]
    assert tags_of_each(np.array(["", ""])) == [set(), set()]


def test_some_points_keep_the_table_of_sets_and_a_table_needs_no_points():
    labels = LabelSets.of([["a"], ["b", "a"], [], ["b"]])
    some = labels.take([3, 1, 1])
    assert [some.names_of(int(i)) for i in some.ids] == [("b",), ("a", "b"), ("a", "b")]
    assert some.sizes.sum() == len(some) == 3
    table = LabelSets.table([0, 1, 3], [1, 0, 1], ["a", "b"])
    assert [table.names_of(k) for k in range(2)] == [("b",), ("a", "b")]
    assert table.sizes.tolist() == [0, 0]
    assert table.ids.dtype == np.uint8
    assert len(table) == 0


def test_tags_of_several_types_are_distinguished_and_numpy_ones_are_plain():
    sets = LabelSets.of([[np.int64(3), "b"], [1, np.str_("a")], {3}])
    assert sets.names == (1, 3, "a", "b")
    assert sets.ids.dtype == np.uint8
    assert tags_of_each([[np.int64(3), "b"], [3]]) == [{3, "b"}, {3}]


def test_multi_hot_sets_are_a_matrix_of_numbers():
    for wrong in (np.zeros(3), np.array([["a"]]), np.array("a")):
        with pytest.raises(InputError, match="multi-hot is .n, L. of 0 and 1"):
            LabelSets([0], wrong)
    assert tags_of_each(np.zeros((2, 3), dtype=int)) == [set(), set()]


def test_a_tag_that_no_set_has_is_held_by_none():
    starts, sets = LabelSets.table([0, 1, 3], [1, 0, 1], ["a", "b", "c"]).holders()
    assert [sorted(sets[starts[t] : starts[t + 1]].tolist()) for t in range(3)] == [[1], [0, 1], []]


def test_multi_hot_labels_of_other_columns_are_refused_and_other_labels_are_not():
    for labels in (np.zeros((2, 3)), np.zeros(4), [1, 2], [["a"], []]):
        check_columns(labels, "labels", 3, "the model's")
    with pytest.raises(InputError, match="labels are multi-hot of 4 columns, but the model's 3"):
        check_columns(np.zeros((2, 4)), "labels", 3, "the model's")


def test_points_of_all_blocks_are_counted_and_renumbered(monkeypatch):
    monkeypatch.setattr("adsh.labels._BLOCK", 7)
    values = np.random.default_rng(0).choice([3, 5, 9], size=50)
    sets = LabelSets.of(values)
    again = sets.with_ids(sets.ids)
    for counted in (sets.sizes, again.sizes):
        assert counted.dtype == np.int64
        assert counted.tolist() == [(values == value).sum() for value in (3, 5, 9)]
    assert tags_of_each(values) == [{value} for value in values.tolist()]


def test_vocabularies_that_both_mix_strings_and_numbers_are_compared_name_by_name():
    sets = LabelSets.of([[1, "a"], ["b"], [2]])
    assert sets.names == (1, 2, "a", "b")
    assert sets.tags_in(("b", 7, 1)).tolist() == [2, -1, 0, -1]


def test_a_table_of_no_labels_is_refused():
    with pytest.raises(InputError, match=r"labels have shape \(3, 0\)"):
        LabelSets.of(np.zeros((3, 0), dtype=bool))


def test_labels_are_indexed_as_a_list_of_tags_or_as_an_array():
    labels = LabelSets.of([["cat", "indoor"], [], ["dog"], ["cat", "indoor"]])
    assert [labels[0], labels[1], labels[-1]] == [("cat", "indoor"), (), ("cat", "indoor")]
    assert labels[np.int64(2)] == ("dog",)
    assert list(labels) == [labels[i] for i in range(4)]
    for chosen in (slice(1, 3), [1, 2], np.array([1, 2]), np.array([False, True, True, False])):
        some = labels[chosen]
        assert isinstance(some, LabelSets)
        assert list(some) == [(), ("dog",)]
        assert some.sizes.sum() == 2
    assert len(labels[[]]) == 0
    with pytest.raises(IndexError):
        labels[4]
    with pytest.raises(InputError, match="give one index"):
        labels[np.zeros((2, 2), dtype=int)]
