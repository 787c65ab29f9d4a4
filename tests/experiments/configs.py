"""Experiments small enough for a test."""

from __future__ import annotations

from dataclasses import replace

from adsh.experiments import ExperimentConfig

DIGITS = ExperimentConfig("digits", bits=(8, 12), outer=1, size=32, hash_function="ridge", max_points=100_000)
CHEAP = replace(DIGITS, methods=("itq", "sdh_d", "adsh"))
