"""The books that ship with the package, complete and identical to their sources."""

import hashlib
from pathlib import Path

import pytest

import minflow as flow
from minflow.core.base.errors import OutOfRangeError
from minflow.data import text

FILES = Path(flow.__file__).parent / "data" / "texts"


def test_alice_is_complete():
    book = text("alice")
    assert len(book) == 144_354 and len(set(book)) == 69 and book.isascii()
    head = "Lewis Carroll\n\nCHAPTER I. Down the Rabbit-Hole\n\nAlice was beginning to get very tired"
    assert book.startswith("ALICE'S ADVENTURES IN WONDERLAND\n\n" + head)
    assert book.endswith("remembering her own child-life, and the happy summer days.\n\n              THE END\n")
    assert book.count("\nCHAPTER ") == 12
    assert "utenberg" not in book and "\n\n\n" not in book and "\r" not in book and " \n" not in book


def test_tang_has_three_hundred_poems():
    book = text("tang")
    assert len(book) == 28_002 and len(set(book)) == 2579
    poems = book.removesuffix("\n").split("\n\n")
    assert len(poems) == 313 and all(poem.count("\n") >= 1 and poem.split("\n")[0].count(" ") == 1 for poem in poems)
    assert "夜思 李白\n床前明月光，疑是地上霜。\n举头望明月，低头思故乡。\n\n" in book


def test_files_are_small_and_have_the_known_checksums():
    assert {file.name for file in FILES.iterdir()} == {"alice.txt.gz", "tang.txt.gz"}
    assert sum(file.stat().st_size for file in FILES.iterdir()) < 100_000
    digests = {name: hashlib.sha256(text(name).encode()).hexdigest()[:16] for name in ("alice", "tang")}
    assert digests == {"alice": "9f4728162d6554d2", "tang": "6f185e77280353f0"}
    notice = Path(flow.__file__).parents[1] / "NOTICE"
    assert not notice.exists() or all(f'text("{name}")' in notice.read_text("utf-8") for name in digests)


@pytest.mark.parametrize("name, said", [("alic", '"alice"'), ("tolstoy", '"alice" or "tang"'), (3, "name  3")])
def test_unknown_name(name, said):
    with pytest.raises(OutOfRangeError) as error:
        flow.data.text(name)
    assert said in str(error.value)
