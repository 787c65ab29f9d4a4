import json

import numpy as np
import pytest

from adsh.data import open_source
from adsh.data.sources.manifest import open_manifest
from adsh.errors import FolderError, InputError

from .image_cases import random_images, save


def labels_of(dataset):
    return [dataset.labels.names_of(int(i)) for i in dataset.labels.ids]


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_tsv_and_json_lines_give_the_same_dataset(tmp_path):
    images = random_images(3)
    paths = ["a b.png", "sub/ü.png", "c.png"]
    for name, pixels in zip(paths, images, strict=True):
        save(tmp_path / name, pixels)
    captions = ['a dog, running "fast"', "two\nlines", ""]
    labels = [["dog", "outdoor"], ["cat"], []]
    lines = [{"path": p, "labels": t, "caption": c} for p, t, c in zip(paths, labels, captions, strict=True)]
    written(tmp_path / "m.jsonl", "\n".join(json.dumps(line) for line in lines))
    for name, between in (("m.csv", ","), ("m.tsv", "\t")):
        quoted = [f'"{c.replace(chr(34), chr(34) * 2)}"' for c in captions]
        rows = [between.join([p, c, "|".join(t)]) for p, c, t in zip(paths, quoted, labels, strict=True)]
        written(tmp_path / name, "\n".join([between.join(["path", "caption", "labels"]), *rows]) + "\n")
    for name in ("m.csv", "m.tsv", "m.jsonl"):
        dataset = open_source(tmp_path / name)
        assert list(dataset.keys) == paths
        assert dataset.classes == dataset.labels.names == ("cat", "dog", "outdoor")
        assert labels_of(dataset) == [("dog", "outdoor"), ("cat",), ()]
        assert list(dataset.columns["caption"]) == captions
        assert all(np.array_equal(dataset[i], images[i]) for i in range(3))


def test_classes_that_are_numbers_come_in_their_order(tmp_path):
    dataset = open_source(written(tmp_path / "m.csv", "path,label\n" + "".join(f"{i}.png,{i}\n" for i in range(12))))
    assert dataset.classes == tuple(str(i) for i in range(12))
    dataset = open_source(
        written(tmp_path / "m.jsonl", '{"file_name": "a", "label": 3}\n{"file_name": "b", "label": 20}')
    )
    assert dataset.classes == ("3", "20")


def test_without_a_first_line_of_names_the_columns_are_path_and_labels(tmp_path):
    dataset = open_source(written(tmp_path / "m.csv", "a.png,x|y\r\nb.png,y\r\n\r\n"))
    assert (list(dataset.keys), labels_of(dataset)) == (["a.png", "b.png"], [("x", "y"), ("y",)])
    assert open_source(written(tmp_path / "m.csv", "a.png\nb.png\n")).labels is None
    with pytest.raises(InputError, match="no names"):
        open_source(written(tmp_path / "m.csv", "a.png,x,caption\n"))


def test_a_mark_at_the_start_and_capitals_in_the_names_are_read_over(tmp_path):
    (tmp_path / "m.csv").write_bytes("\ufeffPath,Label\na.png,x\n".encode())
    assert open_source(tmp_path / "m.csv").keys[0] == "a.png"


def test_paths_are_relative_to_the_manifest_or_to_the_root_and_may_be_absolute(tmp_path):
    pixels = random_images(1)[0]
    save(tmp_path / "images" / "a.png", pixels)
    (tmp_path / "lists").mkdir()
    manifest = written(tmp_path / "lists" / "m.csv", "path,label\na.png,x\n")
    with pytest.raises(InputError, match="does not exist"):
        open_source(manifest)[0]
    assert np.array_equal(open_source(manifest, root=tmp_path / "images")[0], pixels)
    written(manifest, f"path,label\n{tmp_path / 'images' / 'a.png'},x\n")
    assert np.array_equal(open_source(manifest)[0], pixels)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("m.csv", "path,label\na.png,x\nb.png,y,z\n", "3 columns in the line of 'b.png', but 2 in the first"),
        ("m.csv", 'path,label\na.png,"x\n', "close every quote"),
        ("m.csv", "path,label\n,x\n", "a line without a path"),
        ("m.csv", "path,label\na.png,x\nb.png,x\na.png,y\n", "'a.png' twice, as images 1 and 3"),
        ("m.csv", "", "holds no image"),
        ("m.csv", "path,label\n", "holds no image"),
        ("m.jsonl", '{"path": "a"}\n{"path": \n', "line 2 is no JSON"),
        ("m.jsonl", '{"label": "a"}\n', "line 1 is not as"),
        ("m.jsonl", '["a"]\n', "line 1 is not as"),
        ("m.jsonl", '{"path": "b"}\n\n{"path": "a", "labels": [{}]}\n', "line 3 is not as"),
        ("m.jsonl", '{"path": "a"},{"path": "b"}\n', "line 1 is no JSON"),
        ("m.jsonl", '{"path": 7}\n', "line 1 is not as"),
    ],
)
def test_lines_that_cannot_be_used_are_reported_by_number(tmp_path, name, text, said):
    with pytest.raises(InputError, match=said) as caught:
        open_source(written(tmp_path / name, text))
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_no_text_are_reported(tmp_path):
    with pytest.raises(FolderError, match="does not exist"):
        open_manifest(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_bytes(b"path,label\n\xff\xfe.png,x\n")
    with pytest.raises(InputError, match="not UTF-8"):
        open_manifest(tmp_path / "m.csv")
    with pytest.raises(FolderError, match="cannot be read"):
        open_manifest(tmp_path)


def test_numbers_between_spaces_of_any_kind_are_numbers(tmp_path):
    text = "path,price,code\na.png,\u00a05\u2003,7\nb.png,6\x0b,\u00a0\n"
    dataset = open_source(written(tmp_path / "m.csv", text))
    assert [dataset.metadata(at) for at in range(2)] == [{"price": 5, "code": 7}, {"price": 6}]


def test_a_list_whose_lines_each_have_columns_of_their_own_is_refused_at_once(tmp_path):
    lines = [json.dumps({"path": f"{at}.png", **{f"{at} {name}": 1 for name in range(3)}}) for at in range(4096)]
    with pytest.raises(InputError, match=r"m\.jsonl has more than 1,024 columns: leave out what no search needs$"):
        open_source(written(tmp_path / "m.jsonl", "\n".join(lines)))
    late = [json.dumps({"path": f"{at}.png", f"column {at // 5}": 1}) for at in range(5200)]  # in two blocks
    with pytest.raises(InputError, match="more than 1,024 columns"):
        open_source(written(tmp_path / "m.jsonl", "\n".join(late)))


def test_a_column_that_starts_late_is_empty_before(tmp_path):
    dataset = open_source(written(tmp_path / "m.jsonl", '{"path": "a"}\n{"path": "b", "more": [1]}\n{"path": "c"}\n'))
    assert list(dataset.columns["more"]) == ["", "[1]", ""]
    assert dataset.columns["more"][-2] == "[1]"
    assert dataset.columns["more"][1:] == ["[1]", ""]
