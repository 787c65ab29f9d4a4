"""Attacks on adsh as it runs: real processes, this machine alone, each bounded in count and time.

    python -m tools.attack [NAME …] [--minutes N] [--count N] [--seed N] [--out FILE]

A module here without a leading underscore is an attack. It has a docstring, whose first line says what is attacked,
and a function `run(settings) -> dict` whose result says whether adsh held: {"held": bool, …figures}.
"""
