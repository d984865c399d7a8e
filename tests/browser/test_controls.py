"""Buttons of a curve while its loop runs in a cell: in a graph's loop, sync and async jobs, and after a restart."""

import pytest
from pages import act, choose, shots_folder, write
from test_curves import BUTTONS, GRAPH, JOBS, LEFT, PRESSABLE, STATUS

pytestmark = pytest.mark.browser

LOOPS = {
    "graph": "with watch(train, total=3000) as curve:\n    for i in range(3000):\n        x = flow.randn(16, 8)\n"
    "        train(x, x.sum(1, keepdim=True))\n        rest(0.01)",
    "add": "with LossCurve(total=3000) as curve:\n    for i in range(1, 3001):\n        curve.add(i, loss=1 / i)\n"
    "        rest(0.01)",
    "sync": 'now = job(tp.Numpy, "train_now")\nwith watch(now, total=3000) as curve:\n    for i in range(3000):\n'
    "        now(X[i % 40])\n        time.sleep(0.01)",
    "async": "with watch(later, total=3000) as curve:\n    for i in range(3000):\n"
    "        later(X[i % 40])(lambda loss: time.sleep(0.01))",
}


@pytest.mark.parametrize("kind", LOOPS)
def test_buttons_of_a_loop_in_a_cell(lab, tmp_path, kind):
    """The loop waits between two steps and goes on; a stop leaves what an interrupt leaves."""
    write(lab[1], JOBS if kind in ("sync", "async") else GRAPH, LOOPS[kind])
    report = act(
        lab,
        shots_folder(tmp_path, f"controls-{kind}"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9]/.test({STATUS}) && {PRESSABLE}"],
            ["see", "canvas"],
            ["shot", "live"],
            ["click", "button:text-is('pause')"],
            ["until", f"/paused/.test({STATUS})"],
            ["wait", 500],
            ["eval", STATUS],
            ["wait", 1500],
            ["eval", STATUS],
            ["shot", "paused"],
            ["click", "button:text-is('resume')"],
            ["until", f"!/paused/.test({STATUS})"],
            ["wait", 1000],
            ["eval", STATUS],
            ["click", "button:text-is('stop')"],
            ["idle"],
            ["shot", "stopped"],
            ["eval", LEFT],
        ],
    )
    paused, still, resumed, left = report["values"]
    step = lambda text: float(text.split()[1].replace(",", ""))
    assert step(paused) == step(still) < step(resumed) < 3000 and "left" not in paused
    assert left["images"] == 1 and left["canvases"] == 0 and "stopped by the stop button" in left["alts"][0]
    assert report["errors"] == ["KeyboardInterrupt: the stop button of the curve"]


GONE = "the kernel is gone, and this run with it"


@pytest.mark.parametrize("kind", ["graph", "run"])
def test_restart_during_a_run(lab, tmp_path, kind):
    """The curve says that its run is gone, and promises neither buttons nor a time."""
    run = "run = flow.start(later, X, epochs=100, callback=lambda loss: time.sleep(0.01))\ncurve = watch(run)"
    write(lab[1], GRAPH if kind == "graph" else JOBS, LOOPS["graph"] if kind == "graph" else run, "1 + 1")
    report = act(
        lab,
        shots_folder(tmp_path, f"restart-{kind}"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9]/.test({STATUS}) && / left/.test({STATUS}) && {PRESSABLE}"],
            ["see", "canvas"],
            ["restart"],
            ["until", f"/gone/.test({STATUS})"],
            ["wait", 500],
            ["eval", STATUS],
            ["eval", BUTTONS],
            ["shot", "gone"],
            ["theme", "JupyterLab Dark"],
            ["shot", "dark"],
            ["cell", 2],
            ["idle"],
            ["eval", STATUS],
        ],
    )
    status, buttons, later = report["values"]
    assert status.startswith(f"{GONE} · step ") and " left" not in status
    assert [hidden for name, _, hidden, _ in buttons if name in ("pause", "resume", "stop")] == [True, True]
    assert GONE in later, "a new kernel knows nothing of it"


def test_notebook_reopened_without_its_kernel(lab, home, tmp_path):
    """Saved with the state of widgets during a run, then opened without a kernel: the last values, no promises."""
    settings = home / "settings/@jupyter-widgets/jupyterlab-manager"
    settings.mkdir(parents=True)
    (settings / "plugin.jupyterlab-settings").write_text('{"saveState": true}')
    write(lab[1], GRAPH, LOOPS["graph"])
    report = act(
        lab,
        shots_folder(tmp_path, "restart-reopen"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9]/.test({STATUS}) && {PRESSABLE}"],
            ["save"],
            ["reopen"],
            ["shot", "again"],
            ["eval", STATUS],
            ["eval", BUTTONS],
        ],
    )
    status, buttons = report["values"]
    print(status, buttons)
    assert GONE in status and " left" not in status


def test_cell_of_a_run_that_runs_again(lab, tmp_path):
    """The old run ends, a line says so, and the new one trains alone; so does the curve of the old one elsewhere."""
    run = "run = flow.start(later, X, epochs=100, callback=lambda loss: time.sleep(0.01))\ncurve = watch(run)"
    old = "old, old_run = curve, run\nold.explore()"
    write(lab[1], JOBS, run, old, "print(old_run.done(), run.done(), old._note)\nrun.stop()")
    text = "window.jupyterapp.shell.currentWidget.content.widgets[{}].model.outputs.toJSON().map((o) => o.text ?? '').join('')"
    report = act(
        lab,
        shots_folder(tmp_path, "controls-again"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9]/.test({STATUS})"],
            ["cell", 2],
            ["idle"],
            ["cell", 1],
            ["idle"],
            ["until", f"/step [1-9][0-9]/.test({STATUS})"],
            ["shot", "again"],
            ["eval", text.format(1)],
            ["cell", 3],
            ["idle"],
            ["eval", text.format(3)],
        ],
    )
    line, state = report["values"]
    assert line.startswith("The run of train_later was stopped after ") and line.endswith(": its cell runs again.\n")
    assert state.startswith("True False stopped after ") and state.endswith(": its cell runs again\n")


def test_page_without_subshells_promises_nothing(lab, home, tmp_path):
    """Clicks would wait for the cell: disabled buttons and a sentence, then an interrupt."""
    choose(home, "apputils-extension/kernels-settings", {"commsOverSubshells": "disabled"})
    write(lab[1], GRAPH, LOOPS["graph"])
    report = act(
        lab,
        shots_folder(tmp_path, "controls-late"),
        [
            ["cell", 0],
            ["idle"],
            ["cell", 1],
            ["until", f"/step [1-9][0-9]/.test({STATUS})"],
            [
                "until",
                "/arrive after the cell/.test(document.querySelector('.jp-OutputArea [aria-live=polite]').textContent)",
            ],
            ["eval", BUTTONS],
            ["shot", "late"],
            ["interrupt"],
            ["idle"],
            ["eval", LEFT],
        ],
    )
    buttons, left = report["values"]
    assert [disabled for name, disabled, _, _ in buttons if name in ("pause", "stop")] == [True, True]
    assert "stopped by KeyboardInterrupt" in left["alts"][0]
