// Draws what panels.py encodes: one trait holds all of it, so a page that is loaded again shows the whole curve.
// Traits: data, before (the previous run), look (what the reader chose), wish (the last message to the kernel).
// Put behind curve_panel.js, which draws the panels, range_zoom.js and buttons.js.
function render({ model, el }) {
  const make = (kind, style) => Object.assign(document.createElement(kind), { style });
  const box = make("div", "max-width:720px;font:11.5px Helvetica,Arial,sans-serif"), canvas = make("canvas", "display:block");
  const bar = make("div", "display:flex;gap:6px;align-items:center;height:22px;padding:0 14px 0 10px;white-space:nowrap");
  const status = make("span", "flex:1;overflow:hidden;text-overflow:ellipsis");
  const values = make("div", "height:16px;padding-left:10px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis");
  const note = make("div", "padding:2px 10px"); // of a curve that has ended: why
  const button = (name) => {
    const made = make("button", "font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:3px;padding:1px 8px;cursor:pointer");
    made.type = "button"; made.textContent = name;
    return made;
  };
  const logs = button("log y"), times = button("time x"), pause = button("pause"), stop = button("stop"), all = button("all steps"), whole = button("full screen");
  const smooth = Object.assign(make("input", "width:56px;margin:0 0 0 4px;vertical-align:middle"), { type: "range", min: 0, max: SMOOTHINGS.length - 1, step: 1 });
  const smoothing = make("label", "");
  smoothing.append("smooth", smooth);
  canvas.dataset.lmSuppressShortcuts = "true"; // Notebook 7 takes arrows
  canvas.setAttribute("role", "img"); canvas.tabIndex = 0; values.setAttribute("aria-live", "polite");
  whole.hidden = !document.fullscreenEnabled;
  bar.append(status, pause, stop, all, smoothing, logs, times, whole);
  box.append(bar, canvas, values, note);
  el.append(box);
  let greeting = 0, waiting = false, at = null, hint = () => "", areas = [], names = [], scene = null, head = null;
  const hidden = new Set(); // of lines, or of runs, which have a line in several panels
  const keyOf = (s) => s.style ?? s.name;

  const look = () => { try { return JSON.parse(model.get("look")); } catch { return {}; } };
  const set = (trait, value) => { model.set(trait, value); model.save_changes(); };
  const choose = (change) => { at = null; set("look", JSON.stringify({ ...look(), ...change })); soon(); };
  const seconds = () => performance.now() / 1000;
  const gone = () => lost || !!el.closest(".jupyter-widgets-disconnected");  // the class of a saved state without a kernel
  const page = Math.random().toString(36).slice(2, 8);
  let asked = { count: 0 }, news = seconds(), lost = false;
  const send = (what) => model.send({ wish: `${what} ${asked.number}` });  // a trait would wait for the answer to an earlier one
  const probe = () => { try { send("ping"); lost = false; } catch { lost = true; } soon(); };  // throws after a restart
  const wish = (what) => {
    const count = asked.count + 1;
    asked = { count, number: `${page}.${count}`, at: seconds() };
    send(what);
    soon();
  };
  // The first message may be too early: JupyterLab sends it to the kernel's thread of cells until the page has its own.
  const greet = (pause) => {
    if (head.state === "ended" || asked.count > 1 || heard(head, asked)) return;
    if (asked.count) send("hello"); else wish("hello");
    greeting = setTimeout(greet, pause, 2 * pause);
  };
  const shown = (b, on) => { b.setAttribute("aria-pressed", String(on)); b.style.background = on ? "rgba(128,128,128,.35)" : "transparent"; };

  const draw = () => {
    waiting = false;
    const { log = null, x, smooth: level = 1 } = look(), time = x === "time";  // null: nobody has chosen
    head = decode(model.get("data"));
    if (head && !asked.count) greet(500);
    const far = (head && head.logs) || [];
    let before = decode(model.get("before"));
    if (time) { head = head && onTime(head); before = before && onTime(before); }
    const titles = head && head.panels.length ? head.panels : ["loss"], earlier = before ? before.series : [];
    const others = earlier.filter((s) => s.style !== undefined).map((s) => ({ ...s, panel: titles.indexOf(before.panels[s.panel]) }));
    const lines = [...(head ? head.series : []), ...others.filter((s) => s.panel >= 0)];
    const known = new Map(earlier.filter((s) => s.style === undefined).map((s) => [s.name, s]));  // not {}: names
    const full = document.fullscreenElement === box;
    box.style.maxWidth = full ? "none" : "720px";
    const width = Math.max(box.clientWidth || 720, 240), ratio = window.devicePixelRatio || 1;
    const narrow = (row) => width / row.length < 230;
    const rows = (head && head.rows.length ? head.rows : [[0]]).flatMap((row) => (narrow(row) ? row.map((i) => [i]) : [row]));
    const strip = (row) => !!head && head.small.includes(row[0]) && head.small.length < titles.length;
    const c = canvas.getContext("2d"), font = "11.5px Helvetica, Arial, sans-serif", theme = themeOf(el);
    c.font = font;
    note.textContent = head && head.state === "ended" ? head.note : ""; note.hidden = !note.textContent;
    note.style.color = head && head.problem ? theme.red : "";
    const legends = titles.map((_, i) => legendOf(c, (head && head.legends[i]) || [], width / rows.find((row) => row.includes(i)).length - WORDS - RIGHT));
    const of = (i) => lines.filter((s) => s.panel === i), least = (row) => Math.max(...row.map((i) => tallOf(strip(row), legends[i].length)));
    const needed = rows.reduce((sum, row) => sum + least(row), 0), large = rows.filter((row) => !strip(row)).length;
    const free = full ? Math.max(0, innerHeight - bar.offsetHeight - values.offsetHeight - note.offsetHeight - needed) : 0;  // the large panels share it
    const tall = (row) => least(row) + (strip(row) ? 0 : Math.floor(free / large)), height = needed + large * Math.floor(free / (large || 1));
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    c.font = font; // the new size took it away
    Object.assign(box.style, { color: theme.ink, background: full ? theme.card : "", overflow: full ? "auto" : "" });
    whole.textContent = full ? "close" : "full screen";
    scene = { log, x, at, before: known, marks: head ? head.marks || [] : [], gaps: (time && head && head.gaps) || [], said: [], smooth: SMOOTHINGS[level], hidden: (s) => hidden.has(keyOf(s)) };
    zoom.whole = limits([...lines, ...known.values()].map((s) => s.x));
    Object.assign(scene, { limits: zoom.range(), zoomed: !!zoom.shown, drag: zoom.drag });
    areas = []; names = [];
    let y = 0;
    for (const row of rows) {
      row.forEach((i, k) => {
        const w = width / row.length;
        c.setTransform(ratio, 0, 0, ratio, k * w * ratio, y * ratio);
        const left = panel(c, theme, titles[i], of(i), legends[i], w, tall(row), scene, far.includes(i), strip(row));
        legends[i].forEach(([, line], j) => {
          if (line !== null && of(i).length > 1) names.push({ left: k * w, right: (k + 1) * w, top: y + 4 + j * LINE, bottom: y + 4 + (j + 1) * LINE, line: of(i)[line] });
        });
        areas.push({ left: k * w + left, right: (k + 1) * w - RIGHT, top: y, bottom: y + tall(row) });
      });
      y += tall(row);
    }
    const can = buttonsOf(head, gone(), asked, news, seconds());
    pause.textContent = can.label;
    for (const b of [pause, stop]) {
      b.disabled = can.disabled; b.hidden = can.hidden; b.title = can.disabled ? can.said : "";
      b.style.opacity = b.disabled ? 0.6 : 1; b.style.cursor = b.disabled ? "not-allowed" : "pointer";
    }
    all.hidden = !zoom.shown; all.textContent = time ? "all of it" : "all steps"; smooth.value = level;
    shown(logs, log === null ? far.length > 0 : !!log); shown(times, time);
    status.textContent = can.status;
    values.textContent = at === null ? can.said || hint() : `${time ? "at" : "step"} ${number(at)}${time ? " s" : ""}: ${scene.said.join(", ")}`;
    canvas.setAttribute("aria-label", [status.textContent, head && head.said].filter(Boolean).join("; ") + "; arrow keys read values, + and - zoom, 1 to 9 hide lines, f is full screen");
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const longest = () => head && head.series.reduce((a, s) => (!a || s.n > a.n ? s : a), null);
  const within = (places, x, y) => places.find((a) => x >= a.left && x <= a.right && y >= a.top && y < a.bottom);
  const plot = (x, y) => (within(names, x, y) ? undefined : within(areas, x, y));
  const toggle = (name) => { if (name && !hidden.delete(keyOf(name.line))) hidden.add(keyOf(name.line)); soon(); };
  const zoom = rangeZoom(canvas, plot, () => soon());
  canvas.addEventListener("pointermove", ({ offsetX: x, offsetY: y }) => {
    const area = plot(x, y), line = longest();
    at = area && line && line.n ? line.x[nearest(line.x, zoom.value(area, x))] : null;
    const name = within(names, x, y);
    canvas.style.cursor = name ? "pointer" : "";
    if (name) hint = () => `${name.line.name}: click to ${scene.hidden(name.line) ? "show" : "hide"}`;
    else hint = () => (head && head.state === "ended" ? "drag: zoom; double click: all of it" : "");
    soon();
  });
  canvas.onpointerleave = canvas.onblur = () => { at = null; hint = () => ""; soon(); };
  canvas.onkeydown = (event) => {
    const line = longest(), move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "f") enlarge();
    else if (/^[1-9]$/.test(event.key)) toggle(names[event.key - 1]);
    else if (!zoom.pressed(event.key, at)) {
      if (event.key === "Escape") at = null;
      else if (!move || !line || !line.n) return;
      else at = line.x[Math.min(Math.max((at === null ? (move < 0 ? line.n : -1) : nearest(line.x, at)) + move, 0), line.n - 1)];
      if (at !== null) zoom.follow(at);
    }
    event.preventDefault(); event.stopPropagation(); soon();
  };
  canvas.onclick = ({ offsetX: x, offsetY: y }) => toggle(within(names, x, y));
  all.onclick = zoom.reset;
  smooth.oninput = () => choose({ smooth: Number(smooth.value) });
  const enlarge = () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen());
  whole.onclick = enlarge;
  box.onfullscreenchange = soon;
  logs.onclick = () => choose({ log: logs.getAttribute("aria-pressed") !== "true" });
  times.onclick = () => { zoom.shown = null; choose({ x: look().x === "time" ? "step" : "time" }); };
  pause.onclick = () => wish(pause.textContent);
  stop.onclick = () => wish("stop");
  const traits = ["change:data", "change:before", "change:look"];
  for (const name of traits) model.on(name, soon);
  const fresh = () => { news = seconds(); }, clock = setInterval(() => { if (!head || head.state !== "ended") soon(); }, 1000);
  model.on("change:data", fresh);
  model.on("comm_live_update", probe);
  const size = new ResizeObserver(soon), unfollow = followTheme(soon);
  size.observe(box);
  soon();
  return () => { for (const name of traits) model.off(name, soon); model.off("change:data", fresh); model.off("comm_live_update", probe); clearInterval(clock); clearTimeout(greeting); size.disconnect(); unfollow(); };
}
