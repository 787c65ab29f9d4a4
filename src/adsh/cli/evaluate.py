"""`adsh evaluate`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..utils.progress import ProgressLine
from .flags import Device, Json, Labels, Model, Root
from .show import as_json, table

EXAMPLE = "adsh evaluate photos-48bits --out photos-48bits/report"
_SHOWN = 3  # confusions on the screen


def command(
    model: Model,
    data: Annotated[str | None, typer.Option(help="A source.  [default: the one it was trained on]")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The report's folder.  [default: MODEL/report]")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Draw this split.  [default: that of the run]")] = None,
    split_seed: Annotated[int | None, typer.Option(help="The seed of the split.")] = None,
    root: Root = None,
    labels: Labels = None,
    k: Annotated[int | None, typer.Option("-k", "--k", help="MAP over the first k, not over all.")] = None,
    divisor: Annotated[str, typer.Option(help="With -k: retrieved or min.")] = "retrieved",
    cases: Annotated[int, typer.Option(help="Queries to show with their results.")] = 5,
    baselines: Annotated[
        bool, typer.Option(help="Also evaluate float cosine and a linear classifier on the same features.")
    ] = True,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Fit again without each of N folds, whose items are then new; 0 for none.  [default: 5 where the "
            "held-out part is small and a fit takes seconds]",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the report calls the model.")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Evaluate a model on queries that it was not trained on.

    In three columns: against the learned codes of the database, against its codes by the network, and among new items,
    the queries themselves; next to float cosine and a linear classifier on the same features, where it takes features.
    A report inside the model's folder also goes into its card, README.md. Without --data and --protocol, on the source
    and the split of its own run.
    """
    from ..evaluate import write_report
    from ..evaluate.class_section import confusions
    from ..evaluate.comparison_section import baseline_notes, comparison
    from ..evaluate.in_words import headline
    from ..evaluate.report import HEADINGS, cross_fit_notes
    from ..evaluate.report import table as rows
    from ..runs.accuracy import write_accuracy
    from ..runs.evaluate import evaluate, load_run
    from ..utils.files import check_writable

    into_card = out is None
    out = out or model / "report"
    check_writable(out, 20_000_000)
    inputs = load_run(
        model, data=data, root=root, labels=labels, protocol=protocol, split_seed=split_seed, device=device
    )
    with closing(ProgressLine("folds")) as progress:
        evaluation = evaluate(
            inputs, name=name, k=k, divisor=divisor, cases=cases, baselines=baselines, folds=folds, on_fold=progress  # type: ignore[arg-type]  # checked there
        )  # fmt: skip
    page = write_report(evaluation, out)
    if into_card and inputs.is_own_split:
        write_accuracy(model, evaluation)
    if json:
        figures = (
            "map_expected", "map_stable", "map_lowest", "map_highest", "map_interval", "map_classes", "chance", "ndcg",
            "distinct_codes",
        )  # fmt: skip
        columns = {
            column: {figure: getattr(values, figure) for figure in figures}
            for column, values in evaluation.columns.items()
        }
        as_json(
            {
                "report": str(page), "name": evaluation.name, "bits": evaluation.bits, "queries": evaluation.queries,
                "database": evaluation.database, "k": evaluation.k, **columns,
                "baselines": [baseline.to_json() for baseline in evaluation.baselines],
                "cross_fit": None if evaluation.cross_fit is None else asdict(evaluation.cross_fit),
                "confusions": [vars(one) for one in confusions(evaluation)], "about": evaluation.about,
            }
        )  # fmt: skip
        return
    print(headline(evaluation))
    print(f"{evaluation.queries:,} queries against {evaluation.database:,} items of {evaluation.about['data']}")
    table(HEADINGS, rows([evaluation]))
    headings, compared = comparison([evaluation])
    if compared:
        print()
        table(headings, compared)
    for note in (*cross_fit_notes([evaluation]), *baseline_notes([evaluation])):
        print(note)
    taken = [f"{one.name} for {one.taken_for} {one.share:.0%}" for one in confusions(evaluation)[:_SHOWN]]
    if taken:
        print(f"taken for another: {', '.join(taken)}")
    print(f"report  {page}")
