"""One JupyterLab and one Chromium for all browser tests; each test has its own folder, settings and pages.

Without Chromium, node, playwright-core or axe-core (in .tools/browser, installed by .ci/run) these tests are skipped,
unless MINFLOW_BROWSER=required.
"""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from pages import AXE, CHROMIUM, NODE, NOTEBOOK, PLAYWRIGHT, TOP, choose


@pytest.fixture(scope="session", autouse=True)
def tools():
    tools = [("chromium", CHROMIUM), ("node", NODE), (PLAYWRIGHT, PLAYWRIGHT.exists()), (AXE, AXE.exists())]
    missing = [name for name, there in tools if not there]
    if missing and os.environ.get("MINFLOW_BROWSER") == "required":
        pytest.fail(f"missing: {missing}")
    elif missing:
        pytest.skip(f"missing: {missing}; .ci/run fetches them")


@contextmanager
def chromium(**environment):
    """The address of a Chromium. Each client has its own pages, cache and storage."""
    words = [NODE, str(Path(__file__).with_name("chromium.mjs")), str(PLAYWRIGHT), CHROMIUM]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="session")
def browser(tools):
    with chromium() as address:
        yield address


@pytest.fixture(scope="session")
def dejavu(tools, tmp_path_factory):
    """A Chromium that finds only DejaVu, as in most containers."""
    folder = tmp_path_factory.mktemp("fonts")
    fonts = "<dir>/usr/share/fonts/truetype/dejavu</dir><include ignore_missing='yes'>/etc/fonts/conf.d</include>"
    (folder / "fonts.conf").write_text(f"<fontconfig>{fonts}<cachedir>{folder}</cachedir></fontconfig>")
    with chromium(FONTCONFIG_FILE=str(folder / "fonts.conf")) as address:
        yield address


def answer(url, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as reply:
        return reply.read()


@contextmanager
def serving(words, home, log, **settings):
    """Start a Jupyter server with these arguments behind `python -m`, in a new home; yield its address.

    settings: environment variables.
    """
    home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MINFLOW_", "JUPYTER", "IPYTHON", "XDG_"))
    }
    path = os.pathsep.join([str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")])
    environment |= {"HOME": str(home), "PYTHONPATH": path} | settings
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as file:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                *words,
                "--no-browser",
                "--allow-root",
                f"--port={port}",
                "--ip=127.0.0.1",
                "--IdentityProvider.token=",
                "--ServerApp.password=",
                "--ServerApp.port_retries=0",
                "--ServerApp.disable_check_xsrf=True",  # `answer` has no cookies
                f"--{'JupyterNotebookApp' if words[0] == 'notebook' else 'LabApp'}.expose_app_in_browser=true",
            ],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=home,
        )
        try:
            for _ in range(300):
                if process.poll() is not None:
                    break
                try:
                    answer(f"{url}/api/status")
                    break
                except OSError:
                    time.sleep(0.2)
            assert process.poll() is None, log.read_text()
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def server(tools, tmp_path_factory):
    """A JupyterLab with a new folder and a new home; yields (url, folder, home)."""
    top = tmp_path_factory.mktemp("lab")
    folder, home = top / "courses", top / "home"
    folder.mkdir()
    words = ["notebook" if NOTEBOOK else "jupyterlab", f"--ServerApp.root_dir={folder}"]
    settings = {
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
    }
    with serving(words, home, top / "lab.log", **settings) as url:
        yield url, folder, home


@pytest.fixture
def home(server):
    """The folder in which the server looks for settings and signatures."""
    return server[2]


@pytest.fixture
def lab(server, browser, home):
    """(url, a new folder, the browser). No notebook is trusted, no setting is changed, and no kernel runs."""
    url, courses, _ = server
    folder = courses / f"course-{len(list(courses.iterdir()))}"
    folder.mkdir()
    shutil.rmtree(home / "settings", ignore_errors=True)
    if (home / "data/nbsignatures.db").exists():
        with sqlite3.connect(home / "data/nbsignatures.db") as signatures:
            signatures.execute("DELETE FROM nbsignatures")
    yield url, folder, browser
    for session in json.loads(answer(f"{url}/api/sessions")):
        answer(f"{url}/api/sessions/{session['id']}", "DELETE")


@pytest.fixture
def dark(lab, home):
    """JupyterLab in its dark theme."""
    choose(home, "apputils-extension/themes", {"theme": "JupyterLab Dark"})


@pytest.fixture
def every_output(lab, home):
    """Render all outputs, including many outputs and cells out of view."""
    choose(home, "notebook-extension/tracker", {"maxNumberOutputs": 100000, "windowingMode": "none"})
