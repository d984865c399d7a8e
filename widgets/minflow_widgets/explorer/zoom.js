// How large the explorer's picture is drawn in its frame, and the frame's place over it: by buttons, keys,
// Ctrl + wheel and drag.
// Put after picture.js, whose drawings it sizes. Read next: details.js.
const LEAST = 0.2, MOST = 4;

// scroll: the frame. now: drawn pixels per pixel of the picture. again: after the picture or its frame has changed.
function zoomOf(scroll) {
  let whole = false;                       // true if all of it is to be seen, also when it grows
  let from = null, moved = false;          // of a drag
  const drawings = () => scroll.querySelectorAll(':scope > svg');
  const size = (svg, what) => svg.viewBox.baseVal[what];
  const apply = (value) => {
    zoom.now = Math.min(MOST, Math.max(LEAST, value));
    for (const svg of drawings()) {
      for (const what of ['width', 'height']) svg.setAttribute(what, size(svg, what) * zoom.now);
    }
    percent.textContent = `${Math.round(100 * zoom.now)} %`;
  };
  // x, y: the point of the frame under which the picture stays.
  const to = (value, x = scroll.clientWidth / 2, y = scroll.clientHeight / 2) => {
    scroll.parentElement.classList.toggle('whole', whole = false);
    const left = (scroll.scrollLeft + x) / zoom.now, top = (scroll.scrollTop + y) / zoom.now;
    apply(value);
    [scroll.scrollLeft, scroll.scrollTop] = [left * zoom.now - x, top * zoom.now - y];
  };
  const fit = () => {
    const all = [...drawings()];
    if (!all.length) return;
    scroll.parentElement.classList.toggle('whole', whole = true);
    const high = parseFloat(getComputedStyle(scroll).maxHeight), wide = scroll.parentElement.clientWidth - 2;
    const tall = all.reduce((sum, svg) => sum + size(svg, 'height'), 0);
    apply(Math.min(1, wide / size(all[0], 'width'), (high - 4) / tall));
  };
  const larger = button('+', 'larger (key +)', () => to(zoom.now * 1.25));
  const smaller = button('−', 'smaller (key −)', () => to(zoom.now / 1.25));
  const percent = button('100 %', 'natural size (key 0)', () => to(1));
  const all = button('fit', 'fit all of it into the frame (key f)', fit);
  const tools = html('span', { class: 'tools', role: 'group', 'aria-label': 'size of the picture' });
  tools.append(smaller, percent, larger, all);
  scroll.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = scroll.getBoundingClientRect();
    to(zoom.now * Math.exp(-event.deltaY / 400), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  scroll.addEventListener('pointerdown', (event) => {
    moved = false;
    const drag = !event.button && event.pointerType === 'mouse';
    from = drag ? [event.clientX, event.clientY, scroll.scrollLeft, scroll.scrollTop] : null;
  });
  scroll.addEventListener('pointermove', (event) => {
    if (!from || !event.buttons) return;
    const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
    if (!moved && Math.hypot(x, y) > 5) { moved = true; scroll.setPointerCapture(event.pointerId); }
    if (moved) [scroll.scrollLeft, scroll.scrollTop] = [from[2] - x, from[3] - y];
  });
  scroll.addEventListener('pointerup', () => { from = null; });
  const zoom = {
    now: 1,
    tools,
    again: () => (whole ? fit() : apply(zoom.now)),
    dragged: () => moved,
    keys: {
      '+': () => larger.click(), '=': () => larger.click(), '-': () => smaller.click(),
      0: () => percent.click(), f: fit,
    },
  };
  return zoom;
}
