import subprocess
import sys

import pytest

import adsh


def run(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)


def test_the_public_names_are_the_intended_ones():
    names = {
        "ADSH", "AdshError", "AdshWarning", "Changes", "LabelSets", "create_network", "data", "evaluate", "load",
        "methods", "metrics", "open_index", "train_and_index",
    }  # fmt: skip
    assert set(adsh.__all__) == names
    for name in adsh.__all__:
        assert getattr(adsh, name) is not None
    assert set(adsh.__all__) <= set(dir(adsh))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = adsh.nothing


def test_import_adsh_and_its_code_table_need_no_torch():
    script = """
import sys
sys.modules["torch"] = None  # any import of it fails
import adsh
from adsh.learn import CodeTable
table = CodeTable([0, 1, 0], 8)
table.update([0, 1], [[.5] * 8, [-.5] * 8], 1.0)
from adsh.hamming.bits import pack
codes = pack(table.dense())
adsh.evaluate.evaluate_codes(codes[:1], codes, [0], [0, 1, 0], bits=8)
adsh.metrics.mean_average_precision(codes[:1], codes, [0], [0, 1, 0], bits=8)
print(adsh.__version__, len(table.rows))
"""
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == adsh.__version__


def test_metrics_are_a_module_by_their_short_name():
    script = """
import sys
sys.modules["torch"] = None
import adsh.metrics
from adsh.metrics import mean_average_precision, precision_at
from adsh import metrics
assert metrics is adsh.metrics and metrics.precision_at is precision_at
print(mean_average_precision.__module__)
"""
    done = run(script)
    assert done.returncode == 0, done.stderr


def test_the_training_path_needs_torch_numpy_pillow_and_safetensors_alone(tmp_path):
    """Every other installed distribution is hidden, save what torch itself requires."""
    script = f"""
import importlib.metadata as metadata, re, sys

def needed(name, seen):
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name in seen:
        return seen
    try:
        requires = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return seen
    seen.add(name)
    for line in requires:
        if "extra" not in line:
            needed(re.match(r"[A-Za-z0-9_.-]+", line)[0], seen)
    return seen

allowed = set()
for name in ("torch", "numpy", "pillow", "safetensors"):
    needed(name, allowed)
hidden = set()
for module, owners in metadata.packages_distributions().items():
    names = {{re.sub(r"[-_.]+", "-", owner).lower() for owner in owners}}
    if not names & (allowed | {{"adsh"}}):
        hidden.add(module)
for name in ("scipy", "sklearn", "typer", "rich"):
    assert name in hidden, name

class Hide:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Hide(finder) for finder in sys.meta_path]
import numpy as np, adsh
Y = np.random.default_rng(0).normal(size=(60, 4))
adsh.ADSH(8, outer=1, device="cpu").fit(Y, np.arange(60) % 3, save_to={str(tmp_path / "m")!r})
print(adsh.load({str(tmp_path / "m")!r}).database_codes_.shape)
"""
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert "(60, 1)" in done.stdout
