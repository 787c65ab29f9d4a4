"""`adsh compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import Json
from .show import as_json, table

EXAMPLE = "adsh compare digits-12bits/report digits-24bits/report --out comparison"


def command(
    reports: Annotated[list[Path], typer.Argument(help="Two or more folders of reports.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder for the comparison.")] = Path("comparison"),
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    json: Json = False,
) -> None:
    """Overlay several reports in one."""
    from ..errors import InputError
    from ..evaluate import read_report, write_report
    from ..evaluate.report import HEADINGS
    from ..evaluate.report import table as rows

    if len(reports) < 2:
        raise InputError(f"only {reports[0]} is given: name at least two reports to compare")
    evaluations = [evaluation for report in reports for evaluation in read_report(report)]
    page = write_report(evaluations, out, title=title)
    rows_by_heading = [dict(zip(HEADINGS, row, strict=True)) for row in rows(evaluations)]
    if json:
        as_json({"report": str(page), "rows": rows_by_heading})
        return
    table(HEADINGS, rows(evaluations))
    print(f"report  {page}")
