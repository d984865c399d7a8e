"""Images in folders, from generated files; errors if there are none."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DataError, LoaderError, OutOfRangeError
from minflow.utils.data import DataLoader
from minflow.vision import datasets, transforms

Image = pytest.importorskip("PIL.Image")


def picture(number, size=(6, 4), mode="RGB"):
    return Image.new(mode, size, (number, 2 * number, 3 * number) if mode == "RGB" else number)


@pytest.fixture
def root(tmp_path):
    """Cats 0 and 1, dogs 10 to 12, one in a subfolder; a text file among them."""
    for name, number in (("cat/b.png", 1), ("cat/a.JPG", 0), ("dog/x.png", 10), ("dog/more/y.bmp", 11)):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(tmp_path / "data" / name, "PNG" if name.endswith("png") else None)
    picture(12, mode="L").save(tmp_path / "data" / "dog" / "z.png")
    (tmp_path / "data" / "dog" / "notes.txt").write_text("no image")
    (tmp_path / "data" / "not_a_class.png").write_bytes(b"")
    return tmp_path / "data"


def test_image_folder(root):
    data = datasets.ImageFolder(root)
    assert data.classes == ["cat", "dog"] and data.class_to_idx == {"cat": 0, "dog": 1} and len(data) == 5
    assert data.targets == [0, 0, 1, 1, 1] and data.imgs is data.samples
    names = [path[len(str(root)) + 1 :].replace("\\", "/") for path, _ in data.samples]
    assert names == ["cat/a.JPG", "cat/b.png", "dog/x.png", "dog/z.png", "dog/more/y.bmp"]
    image, label = data[2]
    assert (image.mode, image.size, image.getpixel((0, 0)), label) == ("RGB", (6, 4), (10, 20, 30), 1)
    assert data[3][0].getpixel((0, 0)) == (12, 12, 12) and data[-1][0].getpixel((0, 0)) == (11, 22, 33)
    assert "Number of datapoints: 5" in repr(data) and str(root) in repr(data)
    with pytest.raises(OutOfRangeError, match="no sample 5 in a dataset of 5"):
        data[5]


def test_in_a_loader(root):
    chain = transforms.Compose([transforms.Resize((3, 3)), transforms.ToTensor()])
    data = datasets.ImageFolder(str(root), chain, target_transform=lambda label: label + 1)
    for workers in (0, 2):
        x, y = next(iter(DataLoader(data, 5, num_workers=workers)))
        assert x.shape == (5, 3, 3, 3) and y.tolist() == [1, 1, 2, 2, 2] and y.dtype is flow.int64
        assert np.array_equal((x[:, 0, 0, 0].numpy() * 255).round(), [0, 1, 10, 12, 11])


def test_other_files(root):
    for number, name in enumerate(("cat/one.npy", "dog/two.npy")):
        np.save(root / name, np.full(3, number))
    data = datasets.DatasetFolder(root, np.load, extensions=".NPY", transform=flow.tensor)
    assert [(x.tolist(), label) for x, label in (data[i] for i in range(2))] == [([0] * 3, 0), ([1] * 3, 1)]
    chosen = datasets.ImageFolder(root, is_valid_file=lambda path: path.endswith(("x.png", "b.png")))
    assert [target for _, target in chosen.samples] == [0, 1]
    (root / "bird").mkdir()
    assert datasets.ImageFolder(root, allow_empty=True).class_to_idx == {"bird": 0, "cat": 1, "dog": 2}

    class Dogs(datasets.ImageFolder):
        def find_classes(self, directory):
            return ["dog"], {"dog": 0}

    assert Dogs(root).targets == [0, 0, 0]


def test_mistakes(root, tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*nowhere") as caught:
        datasets.ImageFolder(tmp_path / "nowhere")
    assert "root/cat/1.png" in caught.value.hint and "test_image_folder.py" in str(caught.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no folders in .*empty"):
        datasets.ImageFolder(tmp_path / "empty")
    (root / "bird").mkdir()
    with pytest.raises(DataError, match=r"no matching file in the folder of bird[\s\S]*\.png"):
        datasets.ImageFolder(root)
    with pytest.raises(LoaderError, match="either extensions or is_valid_file"):
        datasets.DatasetFolder(root, np.load)
    with pytest.raises(LoaderError, match=r"transform=ToTensor\(\)"):
        datasets.ImageFolder(root, transforms.ToTensor)
    (root / "bird" / "broken.png").write_bytes((root / "cat" / "b.png").read_bytes()[:40])
    (root / "bird" / "text.png").write_text("no image")
    data = datasets.ImageFolder(root)
    for i, name in ((0, "broken.png"), (1, "text.png")):
        with pytest.raises(DataError, match=f"{name}: is damaged or not an image"):
            data[i]
