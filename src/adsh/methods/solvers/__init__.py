"""Solvers and hash functions that several methods share."""
