// Draws what panels.py encodes: one trait holds all of it, so a page that is loaded again shows the whole curve.
// Traits: data, before (the previous run), look (what the reader chose), wish (the button that was pressed last).
// Put behind curve_panel.js, which draws the panels.
function render({ model, el }) {
  const make = (kind, style) => Object.assign(document.createElement(kind), { style });
  const box = make("div", "max-width:720px;font:11.5px Helvetica,Arial,sans-serif"), canvas = make("canvas", "display:block");
  const bar = make("div", "display:flex;gap:6px;align-items:center;height:22px;padding:0 14px 0 10px;white-space:nowrap");
  const status = make("span", "flex:1;overflow:hidden;text-overflow:ellipsis"), note = make("span", "");
  const values = make("div", "height:16px;padding-left:10px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis");
  const button = (name) => {
    const made = make("button", "font:inherit;color:inherit;background:transparent;border:1px solid;border-radius:3px;padding:1px 8px;cursor:pointer");
    made.type = "button"; made.textContent = name;
    return made;
  };
  const logs = button("log y"), times = button("time x"), pause = button("pause"), stop = button("stop");
  canvas.dataset.lmSuppressShortcuts = "true"; // Notebook 7 takes arrows
  canvas.setAttribute("role", "img"); canvas.tabIndex = 0; values.setAttribute("aria-live", "polite");
  bar.append(status, note, pause, stop, logs, times);
  box.append(bar, canvas, values);
  el.append(box);
  let waiting = false, at = null, areas = [], scene = null, head = null;

  const look = () => { try { return JSON.parse(model.get("look")); } catch { return {}; } };
  const set = (trait, value) => { model.set(trait, value); model.save_changes(); };
  const choose = (change) => { at = null; set("look", JSON.stringify({ ...look(), ...change })); soon(); };
  const wish = (what) => set("wish", `${what} ${1 + (Number(model.get("wish").split(" ")[1]) || 0)}`);
  const shown = (b, on) => { b.setAttribute("aria-pressed", String(on)); b.style.background = on ? "rgba(128,128,128,.35)" : "transparent"; };

  const draw = () => {
    waiting = false;
    const { log = null, x } = look(), time = x === "time";  // null: nobody has chosen
    head = decode(model.get("data"));
    const far = (head && head.logs) || [];
    let before = decode(model.get("before"));
    if (time) { head = head && onTime(head); before = before && onTime(before); }
    const titles = head && head.panels.length ? head.panels : ["loss"], earlier = before ? before.series : [];
    const others = earlier.filter((s) => s.style !== undefined).map((s) => ({ ...s, panel: titles.indexOf(before.panels[s.panel]) }));
    const lines = [...(head ? head.series : []), ...others.filter((s) => s.panel >= 0)];
    const known = new Map(earlier.filter((s) => s.style === undefined).map((s) => [s.name, s]));  // not {}: names
    const width = Math.max(box.clientWidth || 720, 240), ratio = window.devicePixelRatio || 1;
    const narrow = (row) => width / row.length < 230;
    const rows = (head && head.rows.length ? head.rows : [[0]]).flatMap((row) => (narrow(row) ? row.map((i) => [i]) : [row]));
    const strip = (row) => !!head && head.small.includes(row[0]) && head.small.length < titles.length;
    const c = canvas.getContext("2d"), font = "11.5px Helvetica, Arial, sans-serif", theme = themeOf(el);
    c.font = font;
    for (const row of rows) for (const s of lines) if (row.includes(s.panel)) s.rows = legendOf(c, s, width / row.length - WORDS - RIGHT);
    const of = (i) => lines.filter((s) => s.panel === i), tall = (row) => Math.max(...row.map((i) => tallOf(strip(row), of(i))));
    const height = rows.reduce((sum, row) => sum + tall(row), 0);
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    c.font = font; // the new size took it away
    box.style.color = theme.ink;
    scene = { log, x, at, before: known, marks: head ? head.marks || [] : [], gaps: (time && head && head.gaps) || [], said: [], limits: limits([...lines, ...known.values()].map((s) => s.x)) };
    areas = [];
    let y = 0;
    for (const row of rows) {
      row.forEach((i, k) => {
        const w = width / row.length;
        c.setTransform(ratio, 0, 0, ratio, k * w * ratio, y * ratio);
        const left = panel(c, theme, titles[i], of(i), w, tall(row), scene, far.includes(i), strip(row));
        areas.push({ left: k * w + left, right: (k + 1) * w - RIGHT, top: y, bottom: y + tall(row) });
      });
      y += tall(row);
    }
    const controls = !!(head && head.controls), state = head ? head.state : "running";
    pause.disabled = stop.disabled = !controls || !["running", "paused"].includes(state);
    pause.textContent = state === "paused" ? "resume" : "pause";
    for (const b of [pause, stop]) { b.style.opacity = b.disabled ? 0.6 : 1; b.style.cursor = b.disabled ? "not-allowed" : "pointer"; b.title = b.disabled && head ? head.note || state : ""; }
    pause.hidden = stop.hidden = state === "ended";
    note.textContent = controls || state === "ended" || !head ? "" : head.note || "";
    shown(logs, log === null ? far.length > 0 : !!log); shown(times, time);
    status.textContent = (head && head.status) || "waiting for the first value";
    values.textContent = at === null ? "" : `${time ? "at" : "step"} ${number(at)}${time ? " s" : ""}: ${scene.said.join(", ")}`;
    canvas.setAttribute("aria-label", [status.textContent, ...lines.map((s) => [s.label, s.means, ...(s.warnings || [])].filter(Boolean).join(", "))].join("; ") + "; arrow keys read values");
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const longest = () => head && head.series.reduce((a, s) => (!a || s.n > a.n ? s : a), null);
  canvas.onpointermove = ({ offsetX: x, offsetY: y }) => {
    const area = areas.find((a) => x >= a.left && x <= a.right && y >= a.top && y < a.bottom), line = longest();
    at = null;
    if (area && line && line.n) {
      const [x0, x1] = scene.limits, wanted = x0 + ((x - area.left) / (area.right - area.left)) * (x1 - x0);
      at = line.x[nearest(line.x, wanted)];
    }
    soon();
  };
  canvas.onpointerleave = canvas.onblur = () => { at = null; soon(); };
  canvas.onkeydown = (event) => {
    const line = longest(), move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") at = null;
    else if (!move || !line || !line.n) return;
    else at = line.x[Math.min(Math.max((at === null ? (move < 0 ? line.n : -1) : nearest(line.x, at)) + move, 0), line.n - 1)];
    event.preventDefault(); event.stopPropagation(); soon();
  };
  logs.onclick = () => choose({ log: logs.getAttribute("aria-pressed") !== "true" });
  times.onclick = () => choose({ x: look().x === "time" ? "step" : "time" });
  pause.onclick = () => wish(pause.textContent);
  stop.onclick = () => wish("stop");
  const traits = ["change:data", "change:before", "change:look"];
  for (const name of traits) model.on(name, soon);
  const size = new ResizeObserver(soon), unfollow = followTheme(soon);
  size.observe(box);
  soon();
  return () => { for (const name of traits) model.off(name, soon); size.disconnect(); unfollow(); };
}

export default { render };
