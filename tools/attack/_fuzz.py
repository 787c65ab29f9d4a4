"""One parser under coverage-guided fuzzing: python -m tools.attack._fuzz NAME FOLDER [options of libFuzzer …]."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from pathlib import Path

import atheris


def main() -> None:
    """Fuzz until the number of runs or the time is reached; the first finding ends the process with another status."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore")
    with ExitStack() as stack:
        with atheris.instrument_imports(include=["adsh"]):  # what a parser needs, too
            from adsh.errors import AdshError
            from adsh.serve.engine.problems import Problem

            from . import _parsers

            parse, examples = stack.enter_context(_parsers.parser(name))
        corpus = folder / "corpus"
        corpus.mkdir(exist_ok=True)
        for number, example in enumerate(examples):
            (corpus / f"example {number}").write_bytes(example)

        def one(data: bytes) -> None:
            try:
                parse(data)
            except (AdshError, Problem) as problem:
                if "\n" in str(problem):
                    raise AssertionError(f"more than one line: {problem}") from problem

        atheris.Setup([sys.argv[0], *sys.argv[3:], str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
