"""The model card says how accurate the model is, once it was evaluated on its own split."""

import numpy as np
import pytest
from typer.testing import CliRunner

import adsh
from adsh.cli.app import app
from adsh.models.card import with_accuracy

pytestmark = [
    pytest.mark.usefixtures("no_figures"),
    pytest.mark.filterwarnings("ignore:the report has no figures"),
]


@pytest.fixture
def run(tmp_path, blobs):
    features, labels = blobs
    np.savez(tmp_path / "blobs.npz", features=features.astype(np.float32), labels=labels)
    artifacts = adsh.train_and_index(tmp_path / "blobs.npz", tmp_path / "m", bits=8, outer=2, report=True)
    return artifacts, tmp_path / "m" / "README.md"


def test_all_columns_and_baselines_are_in_the_card(run):
    artifacts, card = run
    text = card.read_text()
    for column in artifacts.evaluation.columns.values():
        assert f"| {column.map_expected:.4f} | {column.map_interval[0]:.3f} to {column.map_interval[1]:.3f} |" in text
    assert "| new items |" in text
    assert "| linear classifier |" in text
    assert "Not evaluated yet" not in text
    adsh.load(card.parent)  # it is as whole as before


def test_an_evaluation_replaces_the_figures_and_nothing_else(run, tmp_path):
    _, card = run
    card.write_text(card.read_text().replace("# ADSH, 8 bits", "# My model").replace(" new items |", " old |"))
    for out in ([], ["--out", str(tmp_path / "elsewhere")]):
        done = CliRunner().invoke(app, ["evaluate", str(card.parent), "--no-baselines", *out])
        assert done.exit_code == 0
    text = card.read_text()
    assert text.startswith("# My model")
    assert text.count("## Accuracy") == text.count("| new items |") == 1
    assert "linear classifier" not in text


def test_a_report_whose_folder_is_given_leaves_the_card_as_it_is(run):
    _, card = run
    before = card.read_text()
    done = CliRunner().invoke(app, ["evaluate", str(card.parent), "-k", "5", "--out", str(card.parent / "report")])
    assert done.exit_code == 0
    assert card.read_text() == before


def test_a_card_without_the_marks_gets_the_section_at_its_end():
    text = with_accuracy("# A model\n", "figures")
    assert text.startswith("# A model\n\n")
    assert with_accuracy(text, "others").replace("others", "figures") == text
