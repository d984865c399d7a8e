// Draws what live_timeline.py encodes: lanes of bars, the last steps of a job. One trait holds all of it.
const LEFT = 104, RIGHT = 22, LANE = 25, TALL = 18, TOP = 4;
const BARS = ["#1f5fa8", "#4b5563", "#a8420a", "#1d7a46"], RED = "#b42318";
const WHO = ["your loop", "step waits", "the worker", "the worker"];
const LIGHT = { names: BARS, bars: BARS, ink: "#24292f", soft: "#57606a", lane: "#f3f4f6" };
const DARK = { names: ["#7db7ff", "#c3c9d1", "#ffa36b", "#6fd39a"], bars: ["#2a6cb8", "#6b7280", "#b8501a", "#238a52"], ink: "#e6e6e6", soft: "#b6bcc4", lane: "#2b2f36" };

function decode(view) {
  if (!view || view.byteLength < 4) return null;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const n = new Float32Array(bytes.buffer, 4 + size);
  head.bars = [];
  for (let i = 0; i + 6 < n.length; i += 7) {
    head.bars.push({ lane: n[i], row: n[i + 1], rows: n[i + 2], start: n[i + 3], stop: n[i + 4], number: n[i + 5], kind: n[i + 6] });
  }
  head.bars.sort((a, b) => (b.kind === 1) - (a.kind === 1));    // what is busy is drawn over what waits
  return head;
}

function isDark(el) {
  const flag = document.body.dataset.jpThemeLight;
  if (flag) return flag === "false";
  const [r, g, b] = (getComputedStyle(el).color.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
  return r + g + b > 384; // light text: the page is dark
}

function draw(c, head, width, seconds, theme) {
  const plot = width - LEFT - RIGHT, across = (t) => LEFT + (t / seconds) * plot;
  const text = (s, x, y, color, align, font) => {
    c.fillStyle = color; c.textAlign = align || "left"; c.font = (font || "11px") + " Helvetica, Arial, sans-serif"; c.fillText(s, x, y);
  };
  head.lanes.forEach((name, i) => {
    const y = TOP + i * LANE;
    c.fillStyle = theme.lane; c.fillRect(LEFT, y + 1, plot, LANE - 2);
    text(name, 12, y + 11, theme.names[i], "left", "bold 12px"); text(WHO[i], 12, y + 22, theme.soft);
  });
  for (const b of head.bars) {
    const x = across(b.start), wide = Math.max(across(b.stop) - x, 1);
    const tall = TALL / b.rows, y = TOP + b.lane * LANE + (LANE - TALL) / 2 + b.row * tall;
    if (b.kind === 1) {
      if (wide < 2.5) continue;
      c.fillStyle = theme.lane; c.fillRect(x, y + 1, wide, TALL - 2);
      c.strokeStyle = theme.soft; c.setLineDash([2, 2]); c.strokeRect(x, y + 1, wide, TALL - 2); c.setLineDash([]);
      if (wide > 40) text("waits", x + wide / 2, y + 13, theme.soft, "center");
      continue;
    }
    c.fillStyle = b.kind === 2 ? RED : theme.bars[b.lane]; c.globalAlpha = b.number % 2 ? 1 : 0.88;
    c.fillRect(x, y, wide, tall - (b.rows > 1 ? 1 : 0)); c.globalAlpha = 1;
    const label = String(b.number);
    if (wide > 7 * label.length + 2 && tall > 11) text(label, x + wide / 2, y + tall / 2 + 4, "#ffffff", "center");
  }
  const rough = seconds / 6, scale = 10 ** Math.floor(Math.log10(rough));
  const step = scale * [1, 2, 5, 10].find((m) => scale * m >= rough * 0.999);
  const bottom = TOP + head.lanes.length * LANE, unit = seconds < 10 ? 1e-3 : 1;
  for (let k = 0; k * step <= seconds * (1 + 1e-9); k++) {
    const x = across(k * step);
    c.fillStyle = theme.soft; c.fillRect(x, bottom + 1, 1, 4);
    text(String(Number(((k * step) / unit).toPrecision(3))) + (k ? "" : unit < 1 ? " ms" : " s"), x, bottom + 16, theme.soft, "center");
  }
}

function render({ model, el }) {
  const box = document.createElement("div"), top = document.createElement("div"), foot = document.createElement("div");
  const name = document.createElement("b"), status = document.createElement("span"), canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.style.display = "block";
  box.style.maxWidth = "960px";
  for (const line of [top, foot]) line.style.cssText = "font:12px Helvetica,Arial,sans-serif;padding:2px 12px;min-height:16px";
  top.append(name, status);
  box.append(top, canvas, foot);
  el.append(box);
  let waiting = false, seconds = 0;

  const show = () => {
    waiting = false;
    const head = decode(model.get("data"));
    if (!head) return;
    const width = Math.max(box.clientWidth || 760, 320), ratio = window.devicePixelRatio || 1, height = TOP + 4 * LANE + 22;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const c = canvas.getContext("2d"), theme = isDark(el) ? DARK : LIGHT;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    seconds = Math.max(head.seconds, seconds < 2 * head.seconds ? seconds * 0.97 : 0);  // a calm scale
    box.style.color = theme.ink;
    name.textContent = head.title;
    status.textContent = head.status + (head.bars.some((b) => b.kind === 1) ? " · dashed: the loop waits" : "");
    foot.textContent = head.formula;
    draw(c, head, width, seconds || 1, theme);
    canvas.setAttribute("aria-label", `Timeline of ${head.title}${head.status}; ${head.formula}`);
  };
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(show); } };
  model.on("change:data", soon);
  const size = new ResizeObserver(soon), look = new MutationObserver(soon);
  size.observe(box);
  look.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-theme"] });
  soon();
  return () => { model.off("change:data", soon); size.disconnect(); look.disconnect(); };
}

export default { render };
