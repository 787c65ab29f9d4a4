"""Write the rows of results/cifar10/baselines.json as tables into docs/reference/methods.md, between its two marks.

python runs/methods_page.py
"""

import json
from pathlib import Path

from adsh.experiments.paper import MAP

START, END = "<!-- figures: runs/methods_page.py -->", "<!-- end of figures -->"
PLAIN = (
    "lsh", "itq", "lin_lin", "fasth", "lfh", "lfh_decay", "sdh", "cosdish", "dsh", "dhn", "dpsh", "dpsh_batch",
    "classifier",
)  # fmt: skip
WHOLE = (
    "lin_v", "lfh_d", "lfh_decay_d", "sdh_d", "cosdish_d", "dsh_d", "dhn_d", "dpsh_d", "dpsh_batch_d", "classifier_d",
    "adsh",
)  # fmt: skip
BITS = (12, 24, 32, 48)
EXTRA_VARIANTS = (("ridge", None), (None, "linear"))  # not in the paper
PAPER = MAP["cifar10"]


def format_score(value):
    return "-" if value is None else f"{value:.4f}"[1:]


def lines(rows, names):
    """Return a line per method and variant: MAP at each code length here, and in the paper."""
    for name in names:
        variants = {(row["hash_function"], row["network"]) for row in rows if row["method"] == name}
        for hash_function, network in sorted(variants, key=str, reverse=True):
            by_bits = {
                row["bits"]: row
                for row in rows
                if (row["method"], row["hash_function"], row["network"]) == (name, hash_function, network)
            }
            ours = [format_score(by_bits[bits]["map_expected"] if bits in by_bits else None) for bits in BITS]
            longest = by_bits[max(by_bits)]
            paper = (
                [format_score(value) for value in PAPER.get(name, (None,) * 4)]
                if (hash_function, network) not in EXTRA_VARIANTS
                else ["-"] * 4
            )
            label = f"`{name}`" + (f", {hash_function or network}" if hash_function or network else "")
            others = [format_score(longest.get(key)) for key in ("map_network", "map_new")]
            yield "| " + " | ".join([label, *ours, *others, f"{longest['seconds']:,.0f} s", " ".join(paper)]) + " |"


def page(rows):
    columns = "method", "12", "24", "32", "48 bits", "hashed, longest", "new items, longest"
    names = [*columns, "its training", "the paper, on CNN-F"]
    head = f"| {' | '.join(names)} |"
    rule = "|" + " --- |" * len(names)
    plain = [head, rule, *lines(rows, PLAIN)]
    whole = [head, rule, *lines(rows, WHOLE)]
    return "\n".join(
        ["Learned from 5,000 items:", "", *plain, "", "Learned from the whole database of 58,000:", "", *whole]
    )


def main():
    rows = [row for row in json.loads(Path("results/cifar10/baselines.json").read_text()) if row["seed"] == 0]
    path = Path("docs/reference/methods.md")
    before, _, rest = path.read_text().partition(START)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{START}\n{page(rows)}\n{END}{after}")


if __name__ == "__main__":
    main()
