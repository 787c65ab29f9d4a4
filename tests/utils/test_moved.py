"""Modules under the paths that the reference once gave them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from adsh.utils.moved import MOVED

DOCUMENTED = {  # old module: the names that the reference had of it
    "adsh.data.contact_sheet": ["contact_sheet"],
    "adsh.data.content": ["check_overlap", "without_overlap"],
    "adsh.data.sized": ["Sized"],
    "adsh.data.summary": ["summary"],
    "adsh.estimator": ["ADSH", "load"],
    "adsh.experiments.setting": ["Setting"],
    "adsh.export_run": ["export"],
    "adsh.learn.labels": ["LabelSets"],
    "adsh.learn.loop": ["learn"],
    "adsh.learn.step": ["Step"],
    "adsh.onnx_coder": ["OnnxCoder"],
}


def test_every_documented_module_is_listed():
    assert DOCUMENTED.keys() == MOVED.keys()


@pytest.fixture(autouse=True)
def packages_as_they_were():
    """An import by an old path binds a name in its package: what it replaced is put back."""
    before = {name: dict(vars(import_module(name))) for name in {old.rpartition(".")[0] for old in MOVED}}
    yield
    for name, names in before.items():
        vars(import_module(name)).update(names)


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_gives_the_new_module_and_a_warning(old):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is {MOVED[old]} now"):
        module = import_module(old)
    for name in DOCUMENTED[old]:
        assert getattr(module, name) is getattr(import_module(MOVED[old]), name)


def test_a_function_with_the_name_of_an_old_module_stays_callable():
    import adsh.data
    from adsh.data.inspect import summary

    sys.modules.pop("adsh.data.summary", None)
    with pytest.warns(DeprecationWarning, match="adsh.data.inspect"):
        import_module("adsh.data.summary")
    dataset = adsh.data.open_source("digits")
    assert adsh.data.summary(dataset) == summary(dataset)


def test_names_that_never_were_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("adsh.estimators")


def test_import_adsh_alone_imports_none_of_them():
    script = "import sys, adsh; print([name for name in sys.modules if name.startswith(('torch', 'numpy', 'adsh.'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['adsh.utils', 'adsh.utils.moved']"
