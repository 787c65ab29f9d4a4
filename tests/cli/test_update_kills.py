"""A killed update or correction leaves the old state or the new one; benchmarks/update_kills.py kills 200."""

from __future__ import annotations

import random

import pytest

from .update_kills import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("kills"))


def test_a_killed_update_leaves_the_old_model_or_the_new_one(run):
    rng = random.Random(1)
    assert {run.kill_update(rng) for _ in range(2)} <= {"old", "new"}


def test_a_killed_correction_is_whole_or_not_there(run):
    rng = random.Random(2)
    assert sum(run.kill_corrections(rng) for _ in range(3)) > 0
