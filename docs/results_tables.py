"""Tables of the results page, read from results/*.json when the docs are built: no figure is copied by hand."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"
BITS = (12, 24, 32, 48)


def read(name: str) -> Any:
    """A file of results, from JSON."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(values: Sequence[float]) -> str:
    """A mean over runs and its spread, as in the literature and on one line: .9799 ± .0033."""
    mean = f"{statistics.fmean(values):.4f}".removeprefix("0")
    return (
        mean if len(values) < 2 else f"{mean}\u00a0±\u00a0{statistics.stdev(values):.4f}".replace("\u00a00.", "\u00a0.")
    )


def summaries() -> str:
    """MAP by bits in both columns, for every recipe that was run, a table for each results/*/summary.json."""
    parts = []
    for path in sorted(RESULTS.glob("*/summary.json")):
        name = path.parent.name
        parts += [f"### {name}", summary(read(f"{name}/summary.json")), f"From [{name}/summary.json]({_link(path)})."]
    return "\n\n".join(parts)


def summary(rows: list[dict[str, Any]]) -> str:
    """One such table; runs that differ in their seed alone are one row, with both columns in each cell."""
    groups: dict[tuple[str, ...], dict[int, list[dict[str, Any]]]] = {}
    protocols = sorted({row["protocol"] for row in rows})
    for row in rows:
        about = [f"`{row[key]}`" for key in ("method", "preset", "network") if row.get(key) and row[key] != "adsh"]
        about += [f"{row['size']} px"] if row.get("size") else []
        about += [f"protocol `{row['protocol']}`"] if len(protocols) > 1 else []
        about += ["compiled"] if row.get("compile") else []
        about += [f"MAP over the first {row['k']:,}"] if row.get("k") else []
        groups.setdefault(tuple(about), {}).setdefault(row["bits"], []).append(row)
    shown = []
    for what, by_bits in groups.items():
        seconds = [one["seconds"] for some in by_bits.values() for one in some]
        splits = max(len({one["seed"] for one in some}) for some in by_bits.values())
        cells = [_both(by_bits[b]) if b in by_bits else "" for b in BITS]
        shown.append([", ".join(what), "learned<br>network", *cells, f"{statistics.fmean(seconds):.0f}\u00a0s", splits])
    made = table(["run", "codes", *(f"{b} bits" for b in BITS), "training", "splits"], shown)
    return made if len(protocols) > 1 else f"Protocol `{protocols[0]}`:\n\n{made}"


def _both(runs: list[dict[str, Any]]) -> str:
    """MAP against the database's codes as learned, and below it against those by the network."""
    columns = [[one[key] for one in runs if one.get(key) is not None] for key in ("map_expected", "map_network")]
    return "<br>".join(figure(values) if values else "" for values in columns)


def methods() -> str:
    """MAP by bits of the methods that `adsh reproduce` ran: the tables of the paper, for each results/*/table1.json."""
    parts = []
    for folder in sorted(path.parent for path in RESULTS.glob("*/table1.json")):
        rows = [row for name in ("table1", "table2") for row in read(f"{folder.name}/{name}.json")]
        groups: dict[tuple[str, str], dict[int, dict[int, dict[str, Any]]]] = {}
        for row in rows:  # ADSH is in both tables
            learner = f"`{row['network']}`" if row["network"] else row["options"].get("hash_function", "")
            groups.setdefault((row["method"], learner), {}).setdefault(row["bits"], {})[row["seed"]] = row
        shown = []
        for (method, learner), by_bits in groups.items():
            found = [_beside(list(by_bits[b].values())) if b in by_bits else "" for b in BITS]
            alike = figure([row["map_network"] for row in by_bits[max(by_bits)].values()])
            shown.append([f"`{method}`", learner, *found, alike])
        head = ["method", "with", *(f"{b} bits" for b in BITS), "coded alike, longest"]
        parts += [f"### {folder.name}: the paper's methods", table(head, shown)]
    return "\n\n".join(parts)


def _beside(rows: list[dict[str, Any]]) -> str:
    """Ours, and the paper's in brackets, where it has one."""
    ours, paper = figure([row["map_expected"] for row in rows]), rows[0]["paper"]
    return f"{ours}\u00a0({_short(paper)})" if paper else ours


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def files() -> str:
    """Every file of results, as links."""
    paths = sorted(p for p in RESULTS.rglob("*") if p.suffix in (".json", ".jsonl", ".md") and "cells" not in p.parts)
    return "\n".join(f"- [{path.relative_to(RESULTS)}]({_link(path)})" for path in paths)


def _link(path: Path) -> str:
    """As it is written on a page that lies in docs/ itself."""
    return f"../results/{path.relative_to(RESULTS)}"


def cpu() -> str:
    """MAP on CIFAR-10 from features, trained on two cores."""
    told = read("cifar10/cpu.json")
    rows = []
    for network in ("linear", "mlp"):
        runs = [r for r in told["rows"] if r["network"] == network and "map_expected" in r]
        seconds = statistics.median(r["seconds"] for r in runs)
        rows.append([
            f"`{network}`", figure([r["map_expected"] for r in runs]), figure([r["map_network"] for r in runs]),
            f"{seconds:.0f} s", len(runs),
        ])  # fmt: skip
    head = ["network", "codes as learned", "codes by the network", "training (median)", "splits"]
    return f"{told['bits']} bits, {told['machine']}:\n\n{table(head, rows)}"


def partly_labelled() -> str:
    """What it costs that nine tenths of the database have no label."""
    runs = [r for r in read("cifar10/cpu.json")["rows"] if "map_unlabelled" in r]
    parts = (("labelled", "map_labelled"), ("without a label", "map_unlabelled"), ("all together", "map_all"))
    return table(["items of the database", "MAP"], [[name, figure([r[key] for r in runs])] for name, key in parts])


def new_items() -> str:
    """MAP over items that were added after training."""
    told = read("benchmarks/new_items.json")["figures"]
    rows = [[name, figure([one[name] for one in told["splits"]])] for name in told["mean"]]
    return table(["the new items are coded", "MAP"], rows)


def classifier() -> str:
    """ADSH beside a softmax classifier, in both columns, on the same features."""
    rows = read("cifar10/baselines.json")
    rows = rows["rows"] if isinstance(rows, dict) else rows
    shown = []
    for method, name in (("adsh", "ADSH"), ("classifier_d", "softmax classifier, its class's code looked up")):
        for column, key in (("as learned", "map_expected"), ("by the network", "map_network")):
            found = {b: [r[key] for r in rows if _is(r, method) and r["bits"] == b] for b in BITS}
            shown.append([name, column, *(figure(found[b]) if found[b] else "" for b in BITS)])
    return table(["", "database codes", *(f"{b} bits" for b in BITS)], shown)


def _is(row: dict[str, Any], method: str) -> bool:
    return bool(row["method"] == method and row.get("network", "mlp") == "mlp")


def scale() -> str:
    """What an update of all codes costs as n grows."""
    rows = read("benchmarks/scale.json")["figures"]["update"]
    shown = [[r["setting"], f"{r['n']:,}", f"{r['update_ms']:.1f} ms", f"{r['update_ratio']:.2f}"] for r in rows]
    return table(["label sets", "points", "one update of all codes", "ratio"], shown)


def search() -> str:
    """Exact search of ten million codes, beside faiss."""
    shown = []
    for name in ("search_adsh", "search_random"):
        for r in read(f"benchmarks/{name}.json")["figures"]:
            distinct = f"{r['distinct']:,}" if r["distinct"] else "nearly all"
            shown.append([
                f"{r['items']:,} of {r['bits']} bits", distinct, _seconds(r["one_query_index_s"]),
                _seconds(r["one_query_faiss_s"]), f"{r['one_query_times_faster']:,.0f}",
            ])  # fmt: skip
    return table(["items", "distinct codes", "one query", "faiss, flat", "times faster"], shown)


def ranking() -> str:
    """Order among equals on coco17."""
    rows = read("benchmarks/ranking.json")["figures"]
    shown = []
    for column in ("learned", "network"):
        some = [r for r in rows if r["column"] == column]
        cells = [figure([r[f"ndcg_{way}"] for r in some]) for way in ("hamming", "reranked", "asymmetric")]
        shown.append([f"codes {'as learned' if column == 'learned' else 'by the network'}", *cells])
    return table(["coco17, NDCG at 100", "Hamming", "ties by features", "asymmetric"], shown)


def serve() -> str:
    """How fast the service answers."""
    told = read("benchmarks/serve.json")["figures"]
    shown = []
    for name, r in told["codes"].items():
        if isinstance(r, dict):
            distinct = "all distinct" if name == "random" else name
            shown.append([f"by code, {told['codes']['items']:,} items, {distinct}", f"{r['per_second']:,.0f}",
                          f"{r['p50_ms']:.1f} ms", f"{r['p99_ms']:.1f} ms"])  # fmt: skip
    return table(["asked", "a second", "half within", "99 % within"], shown)


def kills() -> str:
    """What was lost when processes were killed while they wrote."""
    index, postgres = read("benchmarks/kill.json")["figures"], read("benchmarks/postgres.json")["figures"]["kills"]
    return table(
        ["killed while writing", "kills", "acknowledged", "lost"],
        [
            ["a folder's index", index["kills"], f"{index['acknowledged_calls']:,} calls", index["lost_or_wrong"]],
            ["PostgreSQL", postgres["kills"], f"{postgres['acknowledged_items']:,} items", postgres["lost"]],
        ],
    )


def _seconds(value: float) -> str:
    return f"{value * 1e6:.0f} µs" if value < 1e-3 else f"{value * 1e3:.1f} ms"


TABLES: dict[str, Callable[[], str]] = {
    one.__name__: one
    for one in (
        summaries,
        methods,
        files,
        cpu,
        partly_labelled,
        new_items,
        classifier,
        scale,
        search,
        ranking,
        serve,
        kills,
    )
}
