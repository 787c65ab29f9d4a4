"""mutmut with fewer kinds of mutants and the tests of the module alone: docs/decisions/0014-mutation-testing.md.

python tools/mutants.py run --max-children 2 "adsh.learn.sweep*"      all of mutmut's commands, and
python tools/mutants.py table                                         the figures of each module, as Markdown
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from mutmut.__main__ import cli
from mutmut.mutation import mutators
from mutmut.stats import status_by_exit_code
from mutmut.workers.isolation import ForkRunner

# mutmut 3.8 reads a name that pytest 9.2 no longer has.
pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]

ROOT = Path("mutants/src/adsh")
TABLE = ("tests/learn/test_code_table.py", "tests/learn/test_table_state.py", "tests/learn/test_objective.py")
LOOP = ("tests/train/test_loop.py", "tests/train/test_step.py")
CODES = ("tests/hamming/", "tests/evaluate/test_counting.py")
TESTS = {  # a module's mutants meet these alone: all that reach it would take a minute each
    "learn.sweep": ("tests/learn/test_sweep.py", *TABLE),
    "learn.code_table": TABLE,
    "learn.rows": TABLE,
    "learn.similarity": TABLE,
    "learn.objective": TABLE,
    "labels": ("tests/test_labels.py", *TABLE),
    "learn.learned_codes": ("tests/learn/test_learned_codes.py",),
    "train.loop": LOOP,
    "train.step": LOOP,
    "train.optimizer": LOOP,
    "hamming": CODES,
    "evaluate.metrics": ("tests/evaluate/test_metrics.py",),
}


def argument_left_out(node: cst.Call) -> Iterator[cst.Call]:
    """f(a, b) -> f(b), f(a)."""
    if len(node.args) > 1:
        for i in range(len(node.args)):
            yield node.with_changes(args=[*node.args[:i], *node.args[i + 1 :]])


def fewer_kinds() -> None:
    """Leaves out what fails at once (x = None, f(None)) and the wording of strings."""
    left_out = (mutators.operator_assignment, mutators.operator_arg_removal, mutators.operator_string)
    kept = [(kind, change) for kind, change in mutators.mutation_operators if change not in left_out]
    mutators.mutation_operators[:] = [*kept, (cst.Call, argument_left_out)]


def own_tests(mutant: str, tests: list[str]) -> list[str]:
    """Those of the tests that reach a mutant which are its module's own."""
    module = mutant.removeprefix("adsh.").split(".x")[0]
    files = TESTS.get(module) or TESTS.get(module.split(".")[0]) or ("",)
    return [test for test in tests if test.startswith(files)]


def table() -> None:
    """Prints mutants, killed, timed out and survived of each module."""
    print("| module | mutants | killed | timed out | survived | not reached | not run |\n" + "| --- " * 7 + "|")
    for path in sorted(ROOT.rglob("*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"].values()
        found = Counter(status_by_exit_code[code] for code in codes)
        shown = [found.pop(status, 0) for status in ("killed", "timeout", "survived", "no tests", "not checked")]
        if codes:
            module = path.relative_to(ROOT).as_posix().removesuffix(".meta")
            print(f"| {module} | {len(codes)} | {' | '.join(map(str, shown))} |", *(found.items()))


def main() -> None:
    """The commands of mutmut, and `table`."""
    if sys.argv[1:] == ["table"]:
        return table()
    fewer_kinds()
    submit = ForkRunner.submit

    def submit_own(runner: Any, mutant: str, tests: list[str], *limits: Any) -> None:
        submit(runner, mutant, own_tests(mutant, tests), *limits)

    ForkRunner.submit = submit_own  # type: ignore[method-assign]
    return cli()


if __name__ == "__main__":
    main()
