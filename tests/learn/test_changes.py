"""What the database is after an update."""

import numpy as np
import pytest

from adsh import LabelSets
from adsh.errors import InputError
from adsh.learn.changes import Changes, change_database
from adsh.learn.learned_codes import NO_SET, LearnedCodes


def database(tags):
    """Codes of items with these tags, a code a label set; an empty collection is an item without a label."""
    labels = LabelSets.of([list(each) for each in tags])
    sets = np.where(labels.empty, NO_SET, np.arange(labels.set_count))
    codes = np.arange(labels.set_count, dtype=np.uint8)[:, None]
    return LearnedCodes(8, sets, codes, labels.sizes, labels.ids), labels


def names(changed):
    return [set(changed.labels[i]) for i in range(len(changed.labels))]


CAT, DOG, FISH = {"cat"}, {"dog"}, {"fish"}


def test_new_items_come_after_those_that_stay():
    learned, labels = database([CAT, DOG, CAT, set()])
    changed = change_database(learned, labels, Changes(remove=[0]), LabelSets.of(["fish", "dog"]))
    assert names(changed) == [DOG, CAT, set(), FISH, DOG]
    assert changed.kept.tolist() == [1, 2, 3]
    assert changed.untouched.all()
    sets = [changed.inherits[changed.labels.ids[i]] for i in range(5)]
    assert sets[3] == NO_SET
    assert sets[4] == sets[0] == learned.label_set[learned.row_numbers[1]]


def test_a_renamed_class_is_untouched_and_merged_ones_take_the_code_of_the_larger():
    learned, labels = database([CAT, DOG, DOG, FISH])
    renamed = change_database(learned, labels, Changes(rename={"fish": "guppy"}), None)
    assert names(renamed) == [CAT, DOG, DOG, {"guppy"}]
    assert renamed.untouched.all()
    merged = change_database(learned, labels, Changes(rename={"cat": "pet", "dog": "pet"}), None)
    assert names(merged) == [{"pet"}, {"pet"}, {"pet"}, FISH]
    assert merged.untouched.tolist() == [False, True, True, True]
    assert merged.inherits[merged.labels.ids[0]] == learned.label_set[learned.row_numbers[1]]


def test_relabelled_items_are_touched_unless_their_labels_are_what_they_were():
    learned, labels = database([CAT, DOG, FISH])
    changed = change_database(learned, labels, Changes(relabel={0: "dog", 1: ["dog"], 2: ["fish", "red"]}), None)
    assert names(changed) == [DOG, DOG, {"fish", "red"}]
    assert changed.untouched.tolist() == [False, True, False]


def test_items_left_without_a_label_go_and_those_without_one_before_stay():
    learned, labels = database([CAT, DOG, set(), {"cat", "dog"}])
    changed = change_database(learned, labels, Changes(rename={"cat": None}), None)
    assert changed.kept.tolist() == [1, 2, 3]
    assert names(changed) == [DOG, set(), DOG]
    saved = change_database(learned, labels, Changes(rename={"cat": None}, relabel={0: "dog"}), None)
    assert saved.kept.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("changes", "new", "said"),
    [
        (Changes(remove=[7]), None, "remove names item 7: give positions in the database, 0 to 2"),
        (Changes(relabel={-1: "cat"}), None, "relabel names item -1"),
        (Changes(rename={"bird": "cat"}), None, "rename names 'bird', which no item of the model has"),
        (Changes(), LabelSets.of([3, 4]), "some labels are text"),
    ],
)
def test_mistakes_are_said_in_a_line(changes, new, said):
    learned, labels = database([CAT, DOG, FISH])
    with pytest.raises(InputError) as problem:
        change_database(learned, labels, changes, new)
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)
