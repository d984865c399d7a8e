// The explorer's bars: search, passes, instructions, and the keys in words.
// Put after search.js. Read next: explorer.js.
const KEYS = [
  ['↑ ↓', 'one row up or down'],
  ['Home End', 'the first row, the last row'],
  ['→', 'open the module, fold or composite operation'],
  ['←', 'close it; from what is in it, go to its first line'],
  ['Enter', 'open or close'],
  ['Shift + → ←', 'from forward to backward to update, and back'],
  ['Esc', 'leave the details of a box for those of the whole step'],
  ['. ,', 'one instruction on, one back'],
  ['] [', 'one pass on, one back'],
  ['/', 'search; Esc ends it'],
  ['m', 'enlarge a map; arrows read its elements, Page up and down change the map, Esc closes it'],
  ['+ −', 'larger, smaller'],
  ['0', 'natural size'],
  ['f', 'fit all of it into the frame'],
  ['?', 'show or hide these keys'],
  ['a click', 'the numbers of a box; a closed one opens'],
  ['the triangle', 'open or close'],
  ['Ctrl + wheel', 'larger or smaller at the pointer'],
  ['drag', 'move the picture in its frame'],
];

function helpOf() {
  const help = html('dl', { class: 'keys', hidden: '' });
  for (const [what, words] of KEYS) help.append(html('dt', {}, what), html('dd', {}, words));
  const toggle = button('? keys', 'all keys in words', () => {
    help.hidden = !help.hidden;
    if (!help.hidden) help.scrollIntoView({ block: 'nearest' });
  });
  return { help, toggle };
}

// ask: sends a request to the kernel.  keep: puts a still picture here.
function controlsOf(ask, keep) {
  const title = html('b', { class: 'title' }), search = searchOf(ask);
  const passes = slider('passes', 'passes'), steps = slider('instructions', 'step through');
  passes.label.title = 'left: the graph as written; right: as it runs, after all passes';
  let view = {}, last = -1;
  let aim = null;         // the instruction that was asked for and has not arrived
  // Each of several quick presses counts, answered or not.
  const step = (by) => {
    if (!view.steps) return;
    const to = Math.min(view.steps - 1, Math.max(0, (aim ?? last) + by));
    ask({ do: 'step', to });
    aim = to;
  };
  const back = button('◄', 'one instruction back', () => step(-1));
  const forth = button('►', 'one instruction on', () => step(1));
  const first = button('close all', 'show what was open at first', () => ask({ do: 'first' }));
  const kept = button('keep as picture', 'put a still picture here, which a saved notebook keeps', keep);
  const bar = html('div', { class: 'bar' });
  bar.append(title, search.label, passes.label, passes.said, html('span', { class: 'next' }));
  bar.append(steps.label, back, forth, steps.said, first, kept);
  passes.input.addEventListener('input', () => ask({ do: 'stage', to: Number(passes.input.value) }));
  steps.input.addEventListener('input', () => ask({ do: 'step', to: Number(steps.input.value) }));
  return {
    bar, search, step, kept,
    // Another request counts from what the kernel shows.
    settle() { aim = null; },
    drawPicture(next) {
      view = next;
      title.textContent = view.title;
      passes.input.max = view.stages;
      passes.input.value = view.stage;
      passes.input.setAttribute('aria-valuetext', view.pass);
      passes.said.textContent = view.pass;
      for (const node of [passes.label, steps.label, back, forth, steps.said]) node.hidden = !view.stages;
      search.update(view);
    },
    drawDetail(detail) {
      last = detail.last ?? -1;
      if (last === aim) aim = null;
      const none = !view.steps;
      steps.input.max = Math.max(0, view.steps - 1);
      steps.input.value = Math.max(0, last);
      steps.input.disabled = back.disabled = forth.disabled = none;
      const skipped = view.views && ` (${view.views})`;
      steps.said.textContent = none ? 'to step through values: explore(graph, inputs)'
        : `instruction ${last + 1} of ${view.steps}${skipped}`;
    },
  };
}
