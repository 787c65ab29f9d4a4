"""Tables of the results page, generated from results/*.json when the docs are built: no value is copied by hand."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"
BITS = (12, 24, 32, 48)
_COLUMNS = ("learned", "network", "new")
_KEYS = ("map_expected", "map_network", "map_new")  # the same in files of runs


def read(name: str) -> Any:
    """Return the content of a JSON file of results."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(values: Sequence[float]) -> str:
    """Return the mean over runs and the standard deviation, without a line break: .9799 ± .0033."""
    mean = f"{statistics.fmean(values):.4f}".removeprefix("0")
    return (
        mean if len(values) < 2 else f"{mean}\u00a0±\u00a0{statistics.stdev(values):.4f}".replace("\u00a00.", "\u00a0.")
    )


def summaries() -> str:
    """Return a table for each results/*/summary.json: MAP by bits of every recipe, learned and by the network."""
    parts = []
    for path in sorted(RESULTS.glob("*/summary.json")):
        name = path.parent.name
        parts += [f"### {name}", summary(read(f"{name}/summary.json")), f"From [{name}/summary.json]({_link(path)})."]
    return "\n\n".join(parts)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the table of one file; runs that differ only in their seed are one row, with three values per cell."""
    groups: dict[tuple[str, ...], dict[int, list[dict[str, Any]]]] = {}
    protocols = sorted({row["protocol"] for row in rows})
    for row in rows:
        label = [f"`{row[key]}`" for key in ("method", "preset", "network") if row.get(key) and row[key] != "adsh"]
        label += [f"{row['size']} px"] if row.get("size") else []
        label += [f"protocol `{row['protocol']}`"] if len(protocols) > 1 else []
        label += ["compiled"] if row.get("compile") else []
        label += [f"MAP over the first {row['k']:,}"] if row.get("k") else []
        groups.setdefault(tuple(label), {}).setdefault(row["bits"], []).append(row)
    lines = []
    for label, by_bits in groups.items():
        seconds = [run["seconds"] for runs in by_bits.values() for run in runs]
        splits = max(len({run["seed"] for run in runs}) for runs in by_bits.values())
        cells = [_three(by_bits[b]) if b in by_bits else "" for b in BITS]
        duration = f"{statistics.fmean(seconds):.0f}\u00a0s"
        lines.append([", ".join(label), "learned<br>network<br>new items", *cells, duration, splits])
    text = table(["run", "codes", *(f"{b} bits" for b in BITS), "training", "splits"], lines)
    return text if len(protocols) > 1 else f"Protocol `{protocols[0]}`:\n\n{text}"


def _three(runs: list[dict[str, Any]]) -> str:
    """Return MAP with learned database codes, below it MAP with those of the network, then that among new items."""
    scores = [[run[key] for run in runs if run.get(key) is not None] for key in _KEYS]
    return "<br>".join(figure(values) if values else "–" for values in scores)


def methods() -> str:
    """Return a table for each results/*/table1.json: MAP by bits of the methods that `adsh reproduce` ran."""
    parts = []
    for folder in sorted(path.parent for path in RESULTS.glob("*/table1.json")):
        rows = [row for name in ("table1", "table2") for row in read(f"{folder.name}/{name}.json")]
        groups: dict[tuple[str, str], dict[int, dict[int, dict[str, Any]]]] = {}
        for row in rows:  # ADSH is in both tables
            learner = f"`{row['network']}`" if row["network"] else row["options"].get("hash_function", "")
            groups.setdefault((row["method"], learner), {}).setdefault(row["bits"], {})[row["seed"]] = row
        lines = []
        for (method, learner), by_bits in groups.items():
            cells = [_with_paper(list(by_bits[b].values())) if b in by_bits else "" for b in BITS]
            longest = by_bits[max(by_bits)].values()
            others = [[row[key] for row in longest if row.get(key) is not None] for key in _KEYS[1:]]
            lines.append([f"`{method}`", learner, *cells, *(figure(values) if values else "–" for values in others)])
        head = ["method", "with", *(f"{b} bits" for b in BITS), "hashed, longest", "new items, longest"]
        parts += [f"### {folder.name}: the paper's methods", table(head, lines)]
    return "\n\n".join(parts)


def _with_paper(rows: list[dict[str, Any]]) -> str:
    """Return our MAP, followed by the paper's in brackets if there is one."""
    ours, paper = figure([row["map_expected"] for row in rows]), rows[0]["paper"]
    return f"{ours}\u00a0({_short(paper)})" if paper else ours


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def files() -> str:
    """Return links to all files of results."""
    paths = sorted(p for p in RESULTS.rglob("*") if p.suffix in (".json", ".jsonl", ".md") and "cells" not in p.parts)
    return "\n".join(f"- [{path.relative_to(RESULTS)}]({_link(path)})" for path in paths)


def _link(path: Path) -> str:
    """Return the link to a file from a page in docs/."""
    return f"../results/{path.relative_to(RESULTS)}"


def cpu() -> str:
    """Return MAP on CIFAR-10 from features, trained on two cores."""
    content = read("cifar10/cpu.json")
    rows = []
    for network in ("linear", "mlp"):
        runs = [r for r in content["rows"] if r["network"] == network and "map_expected" in r]
        seconds = statistics.median(r["seconds"] for r in runs)
        scores = (figure([r[key] for r in runs if key in r]) for key in _KEYS)
        rows.append([f"`{network}`", *scores, f"{seconds:.0f} s", len(runs)])
    head = ["network", "codes as learned", "codes by the network", "new items", "training (median)", "splits"]
    return f"{content['bits']} bits, {content['machine']}:\n\n{table(head, rows)}"


def partly_labelled() -> str:
    """Return MAP where nine tenths of the database have no label."""
    runs = [r for r in read("cifar10/cpu.json")["rows"] if "map_unlabelled" in r]
    parts = (("labelled", "map_labelled"), ("without a label", "map_unlabelled"), ("all together", "map_all"))
    return table(["items of the database", "MAP"], [[name, figure([r[key] for r in runs])] for name, key in parts])


def new_items() -> str:
    """Return MAP over items that were added after training."""
    figures = read("benchmarks/new_items.json")["figures"]
    rows = [[name, figure([split[name] for split in figures["splits"]])] for name in figures["mean"]]
    return table(["new items are encoded", "MAP"], rows)


_FOLDERS = {
    "cifar10": "10 classes of CIFAR-10",
    "caltech": "20 classes of Caltech-101",
    "cub": "30 species of birds",
}


def small_folders() -> str:
    """Return MAP of codes and of the float vectors they are made of, for sets of the size of a folder."""
    return _of_folders("MAP")


def unseen_classes() -> str:
    """Return how many of the ten nearest items are of a class that was not trained."""
    return _of_folders("P@10 of a class that was not trained")


def _of_folders(measured: str) -> str:
    sets = read("benchmarks/small_folders.json")["figures"]["sets"]
    columns = list(sets["cifar10"][measured][0])
    rows = [
        [name, *(figure([run[column] for run in sets[key][measured]]) for column in columns)]
        for key, name in _FOLDERS.items()
    ]
    return table([measured, *columns], rows)


def classifier() -> str:
    """Return MAP of ADSH and of a softmax classifier on the same features, learned and by the network."""
    rows = read("cifar10/baselines.json")
    rows = rows["rows"] if isinstance(rows, dict) else rows
    lines = []
    for method, name in (("adsh", "ADSH"), ("classifier_d", "softmax classifier, its class's code looked up")):
        for column, key in (("as learned", "map_expected"), ("by the network", "map_network")):
            scores = {b: [r[key] for r in rows if _is(r, method) and r["bits"] == b] for b in BITS}
            lines.append([name, column, *(figure(scores[b]) if scores[b] else "" for b in BITS)])
    return table(["", "database codes", *(f"{b} bits" for b in BITS)], lines)


def _is(row: dict[str, Any], method: str) -> bool:
    return bool(row["method"] == method and row.get("network", "mlp") == "mlp")


def scale() -> str:
    """Return the time of an update of all codes by n."""
    rows = read("benchmarks/scale.json")["figures"]["update"]
    lines = [[r["setting"], f"{r['n']:,}", f"{r['update_ms']:.1f} ms", f"{r['update_ratio']:.2f}"] for r in rows]
    return table(["label sets", "points", "one update of all codes", "ratio"], lines)


def label_sets() -> str:
    """Return the time and the memory of an update of all codes by K, the number of distinct label sets."""
    rows = read("benchmarks/label_sets.json")["figures"]["update"]
    lines = [
        [
            row["labels"], f"{row['label_sets']:,}", f"{row['sampled_sets']:,}", f"{row['products_ms']:,.1f} ms",
            f"{row['update_ms']:,.1f} ms", f"{row['rows']:,}", f"{row['peak_mib']:,} MiB",
        ]
        for row in rows
    ]  # fmt: skip
    head = ["labels", "K", "k", "V'V and SV", "one update of all codes", "rows", "peak memory"]
    return table(head, lines)


def search() -> str:
    """Return the time of an exact search of ten million codes, compared with faiss."""
    lines = []
    for name in ("search_adsh", "search_random"):
        for r in read(f"benchmarks/{name}.json")["figures"]:
            distinct = f"{r['distinct']:,}" if r["distinct"] else "nearly all"
            lines.append([
                f"{r['items']:,} of {r['bits']} bits", distinct, _seconds(r["one_query_index_s"]),
                _seconds(r["one_query_faiss_s"]), f"{r['one_query_times_faster']:,.0f}",
            ])  # fmt: skip
    return table(["items", "distinct codes", "one query", "faiss, flat", "times faster"], lines)


def ranking() -> str:
    """Return NDCG on coco17 by the order of items at equal distance."""
    rows = read("benchmarks/ranking.json")["figures"]
    lines = []
    for column in ("learned", "network"):
        runs = [r for r in rows if r["column"] == column]
        cells = [figure([r[f"ndcg_{order}"] for r in runs]) for order in ("hamming", "reranked", "asymmetric")]
        lines.append([f"codes {'as learned' if column == 'learned' else 'by the network'}", *cells])
    return table(["coco17, NDCG at 100", "Hamming", "ties by features", "asymmetric"], lines)


def serve() -> str:
    """Return the throughput and latency of the service."""
    codes = read("benchmarks/serve.json")["figures"]["codes"]
    lines = []
    for name, r in codes.items():
        if isinstance(r, dict):
            distinct = "all distinct" if name == "random" else name
            lines.append([f"by code, {codes['items']:,} items, {distinct}", f"{r['per_second']:,.0f}",
                          f"{r['p50_ms']:.1f} ms", f"{r['p99_ms']:.1f} ms"])  # fmt: skip
    return table(["queries", "per second", "median", "99th percentile"], lines)


def kills() -> str:
    """Return what was lost when processes were killed while writing."""
    index, postgres = read("benchmarks/kill.json")["figures"], read("benchmarks/postgres.json")["figures"]["kills"]
    return table(
        ["killed while writing", "kills", "acknowledged", "lost"],
        [
            ["a folder's index", index["kills"], f"{index['acknowledged_calls']:,} calls", index["lost_or_wrong"]],
            ["PostgreSQL", postgres["kills"], f"{postgres['acknowledged_items']:,} items", postgres["lost"]],
        ],
    )


def attacks() -> str:
    """Return what each attack on indexes, models and parsers did, how often, and whether adsh held."""
    lines = []
    for name, result in read("attacks/storage.json").items():
        figures = {
            key: value for key, value in result.items() if type(value) is int and key not in ("seed", "more memory")
        }
        done = ", ".join(f"{value:,} {key}" for key, value in figures.items())
        lines.append([f"`{name}`", result["attack"].rstrip("."), done, "yes" if result["held"] else "no"])
    return table(["attack", "what is done", "figures", "held"], lines)


_GROUPS = {"image": "to searches by image", "filter": "to searches with a filter"}


def attacks_on_the_service() -> str:
    """Return what others noticed while the service was attacked."""
    lines = []
    rows: list[tuple[str, dict[str, Any]]] = []
    for name, result in read("attacks/service.json").items():
        rows.append((f"`{name}`", result))
        rows += [(f"`{name}`, {_GROUPS[group]}", figures) for group, figures in result.get("others", {}).items()]
    for name, result in rows:
        sent = result.get("sent", {}).get("requests") or result.get("connections") or result.get("hostile_requests")
        rate = result.get("rate")
        slowest = result.get("slowest_by_usual_p99")
        lines.append(
            [
                name, "–" if sent is None else f"{sent:,}", "–" if rate is None else f"{rate:.2f}",
                f"{result['worst_turn']:.2f}" if "worst_turn" in result else "–",
                "–" if slowest is None else f"{slowest:.1f}",
                f"{result['memory_grown_mib']} MiB" if "memory_grown_mib" in result else "–",
                _stop(result), "yes" if result["held"] else "no",
            ]
        )  # fmt: skip
    headings = [
        "attack",
        "sent",
        "rate kept",
        "in the worst turn",
        "slowest, in usual p99",
        "more memory",
        "a stop took",
        "held",
    ]
    return table(headings, lines)


def _stop(result: dict[str, Any]) -> str:
    seconds = result.get("longest_seconds", result.get("stop_seconds"))
    return "–" if seconds is None else f"{seconds} s"


def many_classes() -> str:
    """Return MAP of learned codes, trained items and new items where classes are many or unequal."""
    lines = (RESULTS / "benchmarks/many_classes.jsonl").read_text(encoding="utf-8").splitlines()
    groups: dict[tuple[str, int], dict[str, list[Any]]] = {}
    for line in lines:
        row = json.loads(line)
        groups.setdefault((row["data"], row["bits"]), {}).setdefault(row["method"], []).append(row)
    methods = {
        "adsh": "ADSH", "adsh-bits": "with a head of bits", "classifier_d": "classifier-D", "sdh_d": "SDH-D",
        "logistic": "linear classifier, no codes",
    }  # fmt: skip
    shown = []
    for (data, bits), by_method in sorted(groups.items()):
        splits = {len(by_method[method]) for method in methods if method in by_method}
        cells = [
            " / ".join(_mean_share(by_method[method], column, data) for column in _COLUMNS)
            if by_method.get(method)
            else "–"
            for method in methods
        ]
        shown.append([data, bits, *cells, "–".join(str(count) for count in sorted({min(splits), max(splits)}))])
    return table(["data", "bits", *methods.values(), "splits"], shown)


def _mean_share(rows: list[dict[str, Any]], column: str, data: str) -> str:
    """Return the mean over the splits; over classes where their sizes are the point."""
    values = [row[column]["over_classes" if data == "unequal" else "map"] for row in rows if column in row]
    return _share(statistics.fmean(values)) if values else "–"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def rare_filter() -> str:
    """Return the seconds of filters that few items meet, before and after there were columns of numbers."""
    figures = read("benchmarks/rare_filter_5000000.json")["figures"]
    lines = []
    for case in ("learned", "distinct"):
        for row in figures[case]["filters"]:
            where = json.dumps(row["where"]).replace("|", "&#124;")
            codes = "50 codes" if case == "learned" else "all distinct"
            before, now = f"{row['seconds before']:.1f} s", f"{row['seconds'] * 1e3:.0f} ms"
            lines.append([f"`{where}`", codes, before, now, f"{row['times']:,}"])
    return table(["filter", "codes", "before", "now", "times faster"], lines)


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
        small_folders,
        unseen_classes,
        classifier,
        scale,
        label_sets,
        search,
        ranking,
        serve,
        kills,
        attacks,
        attacks_on_the_service,
        many_classes,
        rare_filter,
    )
}
