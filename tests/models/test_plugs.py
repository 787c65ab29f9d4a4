"""fit, encode and evaluate_model take what people have: paths, Pillow images, frames, datasets of torch and others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import adsh
from adsh.errors import InputError

KINDS = ["dark", "light"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of small images, each of its own size."""
    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number, kind in enumerate(KINDS):
        (root / kind).mkdir()
        for at in range(6):
            pixels = rng.integers(0, 60, (40 + at, 48, 3)) + 180 * number
            Image.fromarray(pixels.astype(np.uint8)).save(root / kind / f"{at}.png")
    return root


def small(**options):
    return adsh.ADSH(
        8, network="tiny", outer=1, inner=1, samples=12, device="cpu", progress=False, **options
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(folder: Path):
    return small().fit(folder)


def paths_of(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.rglob("*.png"))]


class ImageFolder(torch.utils.data.Dataset):
    """What torchvision's ImageFolder is to others: samples, targets, classes, a loader and a transform."""

    def __init__(self, root: Path, transform=None):
        self.samples = [(path, KINDS.index(Path(path).parent.name)) for path in paths_of(root)]
        self.targets, self.classes, self.transform = [label for _, label in self.samples], KINDS, transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        image = Image.open(path).convert("RGB")
        return (image if self.transform is None else self.transform(image)), label


def to_tensor(image: Image.Image) -> torch.Tensor:
    """torchvision's Resize, CenterCrop and ToTensor, for images of these sizes."""
    return torch.from_numpy(np.array(image.resize((64, 64)))).permute(2, 0, 1).float() / 255


def test_a_folder_is_given_as_it_is(folder, model):
    codes = adsh.data.prepare(adsh.data.open_source(folder), 64).dataset
    assert np.array_equal(small().fit(codes).database_codes_, model.database_codes_)
    assert list(model.known_labels) == KINDS
    assert np.array_equal(small().fit(str(folder)).database_codes_, model.database_codes_)


def test_one_image_and_many_give_the_same_codes(folder, model):
    paths = paths_of(folder)
    codes = model.encode(folder)
    assert codes.shape == (12, 1)
    images = [Image.open(path) for path in paths]
    for many in (paths, tuple(paths), np.array(paths), [Path(path) for path in paths], images):
        assert np.array_equal(model.encode(many), codes)
    assert np.array_equal(model.encode([Path(path).read_bytes() for path in paths]), codes)
    first = images[0]
    for one in (paths[0], Path(paths[0]), first, Path(paths[0]).read_bytes(), np.asarray(first)):
        assert np.array_equal(model.encode(one), codes[:1])
    assert model.outputs(paths[0]).shape == (1, 8)


def test_one_row_of_features_is_one_item(blobs):
    model = adsh.ADSH(8, network="linear", outer=1, inner=1, device="cpu", progress=False).fit(*blobs)
    assert np.array_equal(model.encode(blobs[0][5]), model.encode(blobs[0][5:6]))


def test_a_file_that_is_missing_is_named(model):
    with pytest.raises(InputError, match="no-such.jpg"):
        model.encode("no-such.jpg")


def test_images_need_a_network_of_images(folder):
    with pytest.raises(InputError, match="takes features, but .* holds images: give network='frozen:"):
        adsh.ADSH(8).fit(folder)


def test_a_torch_dataset_and_its_loader_bring_items_and_labels(folder):
    dataset = ImageFolder(folder, to_tensor)
    fitted = small().fit(dataset)
    assert list(fitted.known_labels) == KINDS
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True)
    assert np.array_equal(small().fit(loader).database_codes_, fitted.database_codes_)  # in the dataset's order
    assert np.array_equal(fitted.encode(loader), fitted.encode(dataset))
    whole = torch.stack([dataset[i][0] for i in range(12)])
    pixels = (whole * 255).round().byte().permute(0, 2, 3, 1).numpy()
    assert np.array_equal(fitted.encode(dataset), fitted.encode(pixels))


def test_an_image_folder_without_a_transform_is_resized_as_files_are(folder, model):
    assert np.array_equal(small().fit(ImageFolder(folder)).database_codes_, model.database_codes_)
    assert np.array_equal(model.encode(ImageFolder(folder)), model.encode(folder))


def test_a_tensor_dataset_of_features(blobs):
    X, y = torch.tensor(blobs[0], dtype=torch.float32), torch.tensor(blobs[1])
    dataset = torch.utils.data.TensorDataset(X, y)
    options = {"network": "linear", "outer": 1, "inner": 1, "device": "cpu", "progress": False}
    by_dataset, by_arrays = adsh.ADSH(8, **options).fit(dataset), adsh.ADSH(8, **options).fit(X, y)
    assert np.array_equal(by_dataset.database_codes_, by_arrays.database_codes_)


def test_a_stream_is_collected(blobs):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return zip(torch.tensor(blobs[0], dtype=torch.float32), torch.tensor(blobs[1]), strict=True)

    options = {"network": "linear", "outer": 1, "inner": 1, "device": "cpu", "progress": False}
    fitted = adsh.ADSH(8, **options).fit(torch.utils.data.DataLoader(Stream(), batch_size=32))
    assert np.array_equal(fitted.database_codes_, adsh.ADSH(8, **options).fit(*blobs).database_codes_)


def test_normalized_tensors_are_refused(folder):
    with pytest.raises(InputError, match="leave Normalize out"):
        small().fit(ImageFolder(folder, lambda image: to_tensor(image) * 4 - 2))


def test_a_dataset_of_hugging_face_with_an_image_column(folder, model):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=KINDS)})
    paths = paths_of(folder)
    rows = {"image": paths, "label": [KINDS.index(Path(path).parent.name) for path in paths]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    fitted = small().fit(dataset)
    assert np.array_equal(fitted.database_codes_, model.database_codes_)
    assert list(fitted.known_labels) == KINDS
    assert np.array_equal(fitted.encode(dataset), model.encode(folder))


def test_evaluate_model_takes_them_too(folder, model):
    dataset = ImageFolder(folder)
    by_dataset = adsh.evaluate.evaluate_model(model, dataset, None, dataset, None)
    labels = [KINDS[label] for label in dataset.targets]
    images = adsh.data.prepare(adsh.data.open_source(folder), 64).dataset
    by_images = adsh.evaluate.evaluate_model(model, images, labels, images, labels)
    assert by_dataset.to_json()["columns"] == by_images.to_json()["columns"]


def test_an_augmentation_of_the_users_own_is_called_and_not_saved(folder, tmp_path):
    seen = []

    def darker(images: torch.Tensor) -> torch.Tensor:
        seen.append((tuple(images.shape[1:]), float(images.min()), float(images.max())))
        return images * torch.rand(len(images), 1, 1, 1)

    first = small(augment=darker).fit(folder, save_to=tmp_path / "model")
    assert seen
    assert all(shape == (3, 64, 64) and 0 <= low <= high <= 1 for shape, low, high in seen)
    weights = [tensor.clone() for tensor in first.network_.parameters()]
    again = small(augment=darker).fit(folder)  # what it draws comes from the seed
    assert all(torch.equal(a, b) for a, b in zip(weights, again.network_.parameters(), strict=True))
    plain = small().fit(folder)
    assert not all(torch.equal(a, b) for a, b in zip(weights, plain.network_.parameters(), strict=True))
    loaded = adsh.load(tmp_path / "model")
    assert loaded.augment is None
    assert np.array_equal(loaded.encode(folder), first.encode(folder))
    assert "test_plugs" in (tmp_path / "model/config.json").read_text(encoding="utf-8")


def test_an_augmentation_is_part_of_what_a_checkpoint_belongs_to(folder, tmp_path):
    small(augment=torch.nn.Identity()).fit(folder, checkpoints=tmp_path)
    with pytest.raises(InputError, match="augment"):
        small().fit(folder, checkpoints=tmp_path, resume=True)


def test_an_augmentation_that_drops_images_is_refused(folder):
    with pytest.raises(InputError, match="augment gave"):
        small(augment=lambda images: images[:1]).fit(folder)
    with pytest.raises(InputError, match="augment goes with images"):
        adsh.ADSH(8, augment=torch.nn.Identity(), progress=False).fit(np.eye(8, dtype=np.float32), np.arange(8) % 2)
