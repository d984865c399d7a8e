// The maps of an array: feature maps, filters, heads of an attention, or a whole matrix. They are drawn in whole
// pixels, small ones enlarged; a pointer over one reads its elements, a click shows it as large as there is room.
// Put after nodes.js. Read next: picture.js.
const MAP = { one: 240, few: 112, many: 72 };   // pixels along the longer side that a map is drawn in, about

// Pixels per element: whole ones, so that they are crisp, unless the map is wider than the room.
function scaleOfMaps([count, height, width], room) {
  const aim = count === 1 ? MAP.one : count <= 8 ? MAP.few : MAP.many;
  const scale = Math.max(1, Math.round(aim / Math.max(height, width)));
  return width * scale <= room ? scale : Math.max(1, Math.floor(room / width)) * Math.min(1, room / width);
}

// "[0, 3]" of the map with this number in the array.
function nameOfMap(number, leading) {
  const index = [];
  let rest = number;
  for (const size of [...leading].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return leading.length ? `[${index.join(', ')}]` : '';
}

// Red, green and blue of an element on the scale of all maps of its array.
function colorOfElement(x, { low, high, colors, wrong }) {
  if (!Number.isFinite(x)) return wrong;
  const share = high > low ? (Math.min(Math.max(x, low), high) - low) / (high - low) : 0.5;
  const [from, to] = share < 0.5 ? colors.slice(0, 2) : colors.slice(1);
  const way = share < 0.5 ? 2 * share : 2 * share - 1;
  return from.map((value, k) => Math.round(value + way * (to[k] - value)));
}

function valuesOf(maps) {
  const bytes = Uint8Array.from(atob(maps.data), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function drawMap(maps, values, k) {
  const [, height, width] = maps.shape;
  const canvas = html('canvas', { width, height });
  const image = new ImageData(width, height);
  for (let i = 0; i < height * width; i += 1) {
    image.data.set([...colorOfElement(values[k * height * width + i], maps), 255], 4 * i);
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

// The element under a row and a column of the picture, in words.
function readElement(maps, values, k, row, column) {
  const [, height, width] = maps.shape;
  const x = values[(k * height + row) * width + column];
  const text = Number.isFinite(x) ? String(Number(x.toPrecision(5))) : String(x);
  const at = `row ${row * maps.step}, column ${column * maps.step}`;
  return `${nameOfMap(maps.first + k, maps.leading)} ${at}: ${text}`.trim();
}

// Row and column under the pointer.
function elementAt(event, canvas) {
  const box = canvas.getBoundingClientRect();
  const at = (share, size) => Math.min(size - 1, Math.max(0, Math.floor(share * size)));
  const [down, right] = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
  return [at(down, canvas.height), at(right, canvas.width)];
}

function drawScale({ low, high, ends, colors }) {
  const range = html('div', { class: 'range' });
  const words = 'colors from the lowest to the highest element';
  const bar = html('span', { class: 'colors', role: 'img', 'aria-label': words });
  bar.style.background = `linear-gradient(90deg,${colors.map((color) => `rgb(${color})`).join()})`;
  if (low < high) range.append(html('span', {}, ends[0]), bar, html('span', {}, ends[1]));
  return range;
}

// One map over the whole page. Arrow keys go from element to element, Page up and Page down to the next map.
function enlargedMap(label, maps, values, start) {
  const [count, height, width] = maps.shape;
  const dialog = html('dialog', { class: 'large', 'aria-label': label, 'data-lm-suppress-shortcuts': 'true' });
  const name = html('b'), readout = html('div', { class: 'readout', 'aria-live': 'polite' });
  const frame = html('div', { class: 'frame', tabindex: 0, role: 'img' }), cell = html('div', { class: 'cell' });
  const scale = Math.min((innerWidth * 0.9) / width, (innerHeight * 0.9 - 130) / height);
  const size = scale > 1 ? Math.floor(scale) : scale;
  let k = start, row = 0, column = 0;
  const read = (to) => {
    row = Math.min(height - 1, Math.max(0, to[0]));
    column = Math.min(width - 1, Math.max(0, to[1]));
    const place = { left: column * size, top: row * size, width: size, height: size };
    for (const side in place) cell.style[side] = `${place[side]}px`;
    readout.textContent = readElement(maps, values, k, row, column);
  };
  const show = (to) => {
    k = Math.min(count - 1, Math.max(0, to));
    const canvas = drawMap(maps, values, k);
    canvas.style.width = `${width * size}px`;
    name.textContent = `${label} ${nameOfMap(maps.first + k, maps.leading)}`;
    frame.setAttribute('aria-label', `map ${name.textContent}`);
    frame.replaceChildren(canvas, cell);
    [before.disabled, after.disabled] = [k === 0, k === count - 1];
    read([row, column]);
  };
  const before = button('◄', 'the map before (Page up)', () => show(k - 1));
  const after = button('►', 'the next map (Page down)', () => show(k + 1));
  const tools = drawScale(maps), close = button('close (Esc)', 'close the enlarged map', () => dialog.close());
  if (count > 1) tools.append(before, after);
  tools.append(close);
  frame.addEventListener('pointermove', (event) => read(elementAt(event, frame.firstChild)));
  dialog.addEventListener('keydown', (event) => {
    const act = {
      ArrowUp: () => read([row - 1, column]), ArrowDown: () => read([row + 1, column]),
      ArrowLeft: () => read([row, column - 1]), ArrowRight: () => read([row, column + 1]),
      PageUp: () => show(k - 1), PageDown: () => show(k + 1),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });   // beside it
  dialog.addEventListener('close', () => dialog.remove());
  dialog.append(name, tools, readout, frame);
  show(start);
  queueMicrotask(() => { dialog.showModal(); frame.focus(); });
  return dialog;
}

// A page of the maps, as buttons that arrow keys go through. room: pixels across.  turn: called with the wanted page.
function drawMaps(label, maps, room, turn) {
  const [count, , width] = maps.shape;
  const values = valuesOf(maps), scale = scaleOfMaps(maps.shape, room);
  const part = html('div', { class: 'sheet' }), readout = html('div', { class: 'faint readout' });
  const sheet = html('div', { class: 'maps', role: 'group', 'aria-label': `maps of ${label}: ${maps.words}` });
  const say = (text = maps.words) => { readout.replaceChildren(); worded(readout, text); };
  for (let k = 0; k < count; k += 1) {
    const canvas = drawMap(maps, values, k);
    canvas.style.width = `${width * scale}px`;
    const name = `map ${nameOfMap(maps.first + k, maps.leading)}`.trim();
    const said = { 'aria-label': `enlarge ${name}`, title: `${name}: click to enlarge` };
    const map = html('button', { type: 'button', class: 'map', tabindex: k ? -1 : 0, ...said });
    map.append(canvas);
    map.addEventListener('click', () => part.closest('.mfx').append(enlargedMap(label, maps, values, k)));
    map.addEventListener('pointermove', (event) => say(readElement(maps, values, k, ...elementAt(event, canvas))));
    sheet.append(map);
  }
  sheet.addEventListener('pointerleave', () => say());
  sheet.addEventListener('keydown', (event) => {
    const all = [...sheet.children], at = all.indexOf(event.target.closest('.map'));
    const across = all.filter((map) => map.offsetTop === all[0].offsetTop).length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    if (!by) return;
    event.preventDefault();
    if (!all[at + by]) return;
    all[at].tabIndex = -1;
    all[at + by].tabIndex = 0;
    all[at + by].focus();
  });
  say();
  part.append(readout);
  if (maps.pages > 1) {
    const pages = html('div', { class: 'pages' });
    const to = (text, page, words) => {
      const node = button(text, words, () => turn(page));
      node.dataset.focus = `${label} ${words}`;
      node.disabled = page < 0 || page >= maps.pages;
      return node;
    };
    const said = html('span', {}, `page ${maps.page + 1} of ${maps.pages}, ${maps.count.toLocaleString('en')} maps`);
    pages.append(to('◄', maps.page - 1, 'the maps before'), said, to('►', maps.page + 1, 'the next maps'));
    part.append(pages);
  }
  part.append(sheet);
  return part;
}
