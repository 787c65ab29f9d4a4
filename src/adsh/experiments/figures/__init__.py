"""One module per table or figure.

Each has a `TITLE`, `cells(config)` that lists its cells, and `render(config, results)` that makes its tables and
figures from their records; one whose cells need a measurement of their own has `measure(cell, data)` too.
"""
