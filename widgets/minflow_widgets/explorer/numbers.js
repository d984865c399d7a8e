// What the explorer's drawing is made of: nodes of SVG and HTML, and what is shown of one array: histogram, maps, table.
// Texts go in by textContent only. Put before explorer.js, which is read next.
const svgNode = (name, attributes, text) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};
const html = (name, attributes = {}, text) => {
  const node = document.createElement(name);
  if (name === 'input' || name === 'button') node.dataset.lmSuppressShortcuts = 'true';   // on what has the focus: Notebook 7
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
};

// In words, of which no number is broken, nor parted from its unit.
const worded = (node, text) => {
  for (const part of String(text).split(/((?<![\w.])-?\d[\w.+,%-]{0,20}(?: (?:[µm]?s|[kMG]?B|%)(?!\w))?)/)) node.append(/^-?\d/.test(part) ? html('span', { class: 'whole' }, part) : part);
  return node;
};

// The maps over the whole page, one cell as large as there is room, with the scale of their colors; Esc or a click beside them closes.
function enlarged(label, text, [src, , words, low, high, scale]) {
  const dialog = html('dialog', { class: 'large', 'aria-label': label, 'data-lm-suppress-shortcuts': 'true' }), range = html('div', { class: 'range' });
  const image = html('img', { src, alt: words }), close = html('button', { type: 'button' }, 'close (Esc)');
  if (low !== high) range.append(html('span', {}, low), html('img', { src: scale, alt: 'colors from the lowest to the highest number' }), html('span', {}, high));
  range.append(close);
  dialog.append(html('b', {}, label), worded(html('div', {}), `${words}. All numbers: ${text}`), range, image);
  image.decode().catch(() => {}).then(() => {
    const cell = Math.min((innerWidth * 0.9) / image.naturalWidth, (innerHeight * 0.9 - 110) / image.naturalHeight);
    image.style.width = `${image.naturalWidth * Math.max(1, Math.floor(cell))}px`;
  });
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => dialog.remove());
  queueMicrotask(() => dialog.showModal());
  return dialog;
}

// width: pixels that there are for the table.
function drawNumbers([label, text, low, high, counts, corner, power, shape, maps], width) {
  const part = html('div', { class: 'numbers' });
  part.append(html('div', {}, `${label}: `), worded(html('div', { class: 'faint' }), text));
  if (counts.length > 1) {
    const most = Math.max(...counts), w = 250, h = 56;
    const svg = svgNode('svg', { width: w, height: h + 14, role: 'img', 'aria-label': `histogram of ${label}: ${text}` });
    counts.forEach((n, i) => {
      const tall = n ? Math.max(1, (h * n) / most) : 0;
      svg.append(svgNode('rect', { x: (i * w) / counts.length, y: h - tall, width: w / counts.length - 1, height: tall, fill: 'var(--fs)' }));
    });
    svg.append(svgNode('path', { d: `M0 ${h}H${w}`, stroke: 'var(--faint)' }), svgNode('text', { x: 0, y: h + 12, fill: 'var(--ink)' }, low),
      svgNode('text', { x: w, y: h + 12, 'text-anchor': 'end', fill: 'var(--ink)' }, high));
    part.append(svg);
  }
  if (maps.length) {
    const [src, wide, words] = maps, open = html('button', { class: 'maps', type: 'button', title: 'enlarge (key m)', 'aria-label': `enlarge ${words}` });
    open.append(html('img', { src, alt: words, style: `width:${wide}px` }));
    open.addEventListener('click', () => part.closest('.mfx').append(enlarged(label, text, maps)));
    part.append(open, worded(html('div', { class: 'faint' }), words));
  }
  if (corner.length * (corner[0] || []).length > 1) {
    const table = html('table', { 'aria-label': `first values of ${label}` });
    const most = Math.max(...corner.flat().map((x) => Math.abs(Number(x))).filter(Number.isFinite), 1e-300);
    let fit = 0;
    for (let room = width; fit < corner[0].length; fit += 1) {
      room -= 9 + 6.3 * Math.max(...corner.map((values) => values[fit].length));
      if (fit && room < 0) break;
    }
    for (const values of corner) {
      const line = html('tr');
      for (const value of values.slice(0, fit)) {
        const cell = html('td', {}, value), share = Number(value) / most;
        if (Number.isFinite(share)) cell.style.background = `rgba(${share < 0 ? '31,95,168' : '181,71,11'},${(0.3 * Math.abs(share)).toFixed(2)})`;
        line.append(cell);
      }
      table.append(line);
    }
    const seen = shape.length < 2 ? [fit] : [corner.length, fit], all = seen.join() === shape.join();
    const unit = power ? `, in units of 1e${power}` : '';
    part.append(worded(html('div', { class: 'faint' }), (all ? `all ${seen.join(' × ')}` : `${seen.join(' × ')} of ${shape.join(' × ')}`) + unit), table);
  }
  return part;
}
