"""The handwritten digits that scikit-learn ships: train on the CPU, judge in two columns, write a report to look at.

python examples/digits.py [FOLDER]     (make demo runs it and sets up all it needs)
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

import adsh
from adsh.evaluate import evaluate_model, write_report

folder = sys.argv[1] if len(sys.argv) > 1 else "demo-report"
digits = load_digits()
images = np.repeat((digits.images[..., None] * 15).astype(np.uint8), 3, axis=3)  # (1797, 8, 8, 3)
queries, database = np.split(np.random.default_rng(0).permutation(len(images)), [200])

model = adsh.ADSH(24, network="tiny", outer=20, progress=True)
model.fit(images[database], digits.target[database])
evaluation = evaluate_model(
    model, images[queries], digits.target[queries], images[database], digits.target[database], name="digits, 24 bits"
)
for name, column in evaluation.columns.items():
    print(f"MAP {column.map_expected:.4f} on {name} codes, {column.distinct_codes} of them distinct")
print(f"open {write_report(evaluation, folder)} to see the curves and what some digits found")
