"""Downloads from a local server that can break off, send wrong data and continue."""

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from minflow.core.base.errors import DataError
from minflow.core.files.temporary import host
from minflow.data.download import fetch

CONTENT = bytes(i * i % 251 for i in range(200_000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()
LIMIT = 1_000_000


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.seen.append((self.path, self.headers.get("Range")))
        if self.path == "/missing":
            return self.send_error(404)
        content = {"/other": b"another file" * 100}.get(self.path, CONTENT)
        start = 0
        if self.headers.get("Range") and self.path != "/norange":
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        length = 10**9 if self.path == "/huge" else len(content) - start
        if self.path != "/nolength":
            self.send_header("Content-Length", str(length))
        self.end_headers()
        body = content[start:]
        if self.path == "/breaks":
            body = body[: 70_000 if start == 0 else 30_000]
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.seen, server.daemon_threads = [], True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()
        thread.join()


def check(path, folder):
    assert path.read_bytes() == CONTENT
    assert [p.name for p in folder.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["good", "nolength"])
def test_complete_download(server, tmp_path, name, capsys):
    check(fetch([f"{server.url}/{name}"], tmp_path / "deep" / "file.bin", SHA256, LIMIT), tmp_path / "deep")
    out, err = capsys.readouterr()
    assert out == "" and "file.bin: 0.2 " in err and err.count("\n") == 1


def test_next_mirror(server, tmp_path):
    (tmp_path / "source.bin").write_bytes(CONTENT)
    urls = [f"{server.url}/missing", f"{server.url}/other", "http://127.0.0.1:9/closed"]
    for last in (f"{server.url}/good", (tmp_path / "source.bin").as_uri()):  # also a file copied by hand
        folder = tmp_path / last[:4]
        check(fetch([*urls, last], folder / "file.bin", SHA256, LIMIT), folder)


def test_interrupted_download_resumes(server, tmp_path):
    """From the next mirror, and at the next call."""
    target = tmp_path / "file.bin"
    with pytest.raises(DataError, match="connection ended|IncompleteRead|more expected"):
        fetch([f"{server.url}/breaks"], target, SHA256, LIMIT)
    assert (tmp_path / "file.bin.part").stat().st_size == 70_000 and not target.exists()
    check(fetch([f"{server.url}/breaks", f"{server.url}/good"], target, SHA256, LIMIT), tmp_path)
    assert server.seen == [("/breaks", None), ("/breaks", "bytes=70000-"), ("/good", "bytes=100000-")]


@pytest.mark.parametrize(
    "name, have",
    [
        *[(name, b"x" * 1000) for name in ("good", "norange")],
        *[("good", have) for have in (CONTENT, CONTENT + b"more", b"y" * len(CONTENT))],  # nothing is left to fetch
    ],
    ids=["another", "another, no range", "whole", "more", "another of this length"],
)
def test_part_of_another_file_is_discarded(server, tmp_path, name, have):
    (tmp_path / "file.bin.part").write_bytes(have)
    check(fetch([f"{server.url}/{name}"], tmp_path / "file.bin", SHA256, LIMIT), tmp_path)


def test_error_names_all_mirrors(server, tmp_path):
    target = tmp_path / "file.bin"
    with pytest.raises(DataError) as caught:
        fetch(
            [f"{server.url}/missing", f"{server.url}/other", f"{server.url}/huge"], target, SHA256, LIMIT, "do without"
        )
    text = str(caught.value)
    assert "any of 3 addresses" in text and "404" in text and "sha256" in text and "1000000000 bytes" in text
    assert f"Try: copy file.bin by hand to {target}, or do without" in text and "test_download.py" in text
    assert list(tmp_path.iterdir()) == []


def test_oversized_download_is_refused(server, tmp_path):
    with pytest.raises(DataError, match="more than the limit of 1000"):
        fetch([f"{server.url}/nolength"], tmp_path / "file.bin", None, 1000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to other users")
def test_partial_file_of_another_user_is_ignored(tmp_path):
    """A link in a shared folder like /tmp would let us append to one of our files; a file of another user could
    change later.
    """
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "public").mkdir()
    (tmp_path / "public").chmod(0o1777)
    part = tmp_path / "public" / "file.bin.part"
    for plant in (lambda: part.symlink_to(tmp_path / "mine"), lambda: part.write_bytes(b"x")):
        plant()
        os.lchown(part, 65534, 65534)
        with pytest.raises(DataError, match="(?s)cannot be written.*another user"):
            fetch([(tmp_path / "mine").as_uri()], tmp_path / "public" / "file.bin", None, LIMIT)
        part.unlink()
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.skipif(os.name != "posix", reason="file locks of POSIX")
def test_sweep_removes_only_our_files(server, tmp_path):
    """Names contain the host: another one may use the same folder, and its processes are not visible here."""
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    ours = tmp_path / f"file.bin.{host()}.{dead.pid}.part"
    others = [
        tmp_path / f"file.bin.00000000.{dead.pid}.part",
        tmp_path / f"file.bin.{dead.pid}.part",
        tmp_path / f"file.bin.{host()}.{os.getppid()}.part",
    ]
    for path in [ours, *others]:
        path.write_bytes(b"x")
    fetch([f"{server.url}/good"], tmp_path / "file.bin", SHA256, LIMIT)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "file.bin", *others])


@pytest.mark.skipif(os.name != "posix", reason="file locks of POSIX")
def test_two_processes_download_the_same_file(server, tmp_path):
    import fcntl

    with open(tmp_path / "file.bin.part", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b"of the other one")
        other.flush()
        assert fetch([f"{server.url}/good"], tmp_path / "file.bin", SHA256, LIMIT).read_bytes() == CONTENT
        assert (tmp_path / "file.bin.part").read_bytes() == b"of the other one"


def test_full_disk(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"cannot be written[\s\S]*No space left[\s\S]*MINFLOW_DATA"):
        fetch([f"{server.url}/good", f"{server.url}/good"], tmp_path / "file.bin", SHA256, LIMIT)
    assert len(server.seen) == 1
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(DataError, match="cannot be written"):
        fetch([f"{server.url}/good"], Path(tmp_path / "a" / "file.bin"), SHA256, LIMIT)
