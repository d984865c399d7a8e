// The graph explorer. Python lays everything out: the trait `picture` says where each box and line stands, `detail` what
// is known of the selected one; `ask` carries what the reader wants back. Texts go in by textContent only. Looks: explorer.css.
// Put before it: place.js, numbers.js, picture.js, zoom.js.
const KEPT = new Set();   // names of those that are drawn anew since "keep as picture" was pressed there
const BESIDE = 270;       // pixels that the details want beside the picture
const QUERY = 200;        // characters of a search that the kernel takes
const KEYS = [['↑ ↓', 'one row up or down'], ['Home End', 'the first row, the last row'], ['→', 'open the module, fold or composite operation'],
  ['←', 'close it; from what is in it, go to its first line'], ['Enter', 'open or close'], ['Shift + → ←', 'from forward to backward to update, and back'],
  ['. ,', 'one instruction on, one back'], ['] [', 'one pass on, one back'], ['/', 'search; Esc ends it'],
  ['m', 'enlarge the maps in the numbers; Esc closes them'], ['+ −', 'larger, smaller'], ['0', 'natural size'], ['f', 'fit all of it into the frame'], ['?', 'show or hide these keys'],
  ['a click', 'the numbers of a box; a closed one opens'], ['▸ ▾, two clicks', 'open or close'], ['Ctrl + wheel', 'larger or smaller at the pointer'], ['drag', 'move the picture in its frame']];

export default placed({
  render({ model, el }) {
    const root = html('div', { class: 'mfx', 'data-lm-suppress-shortcuts': 'true' });
    const bar = html('div', { class: 'bar' }), title = html('b', { class: 'title' });
    const search = html('input', { type: 'search', placeholder: 'module, operation', 'aria-label': 'search' });
    const finder = html('label', {}, 'search');
    finder.append(search);
    const range = (name, words) => {
      const label = html('label', {}, words), input = html('input', { type: 'range', min: 0, 'aria-label': name }), said = html('span');
      label.append(input);
      return { label, input, said };
    };
    const passes = range('passes', 'passes'), steps = range('instructions', 'step through');
    passes.label.title = 'left: the graph as written; right: as it runs, after all passes';
    const button = (text, label, act) => {
      const node = html('button', { type: 'button', 'aria-label': label, title: label }, text);
      node.addEventListener('click', act);
      return node;
    };
    const back = button('◀', 'one instruction back', () => step(-1)), forth = button('▶', 'one instruction on', () => step(1));
    const keep = button('keep as picture', 'put a still picture here, which a saved notebook keeps', () => { KEPT.add(model.get('name')); ask({ do: 'keep' }); });
    const first = button('close all', 'show what was open at first', () => ask({ do: 'first' }));
    bar.append(title, finder, passes.label, passes.said, html('span', { class: 'next' }), steps.label, back, forth, steps.said, first, keep);
    const found = html('ul', { class: 'found' }), main = html('div', { class: 'main' });
    const scroll = html('div', { class: 'scroll' }), details = html('div', { class: 'details' }), name = html('h4', { 'aria-live': 'polite' });
    main.append(scroll, details);
    const key = html('span'), foot = html('div', { class: 'foot faint' }), zoom = zoomOf(scroll, button);
    const keys = button('? keys', 'all keys in words', () => { help.hidden = !help.hidden; if (!help.hidden) help.scrollIntoView({ block: 'nearest' }); });
    const help = html('dl', { class: 'keys', hidden: '' });
    for (const [what, words] of KEYS) help.append(html('dt', {}, what), html('dd', {}, words));
    foot.append(key, html('span', {}, 'Click a box for its numbers.'), zoom.tools, keys);
    const status = html('div', { role: 'status', class: 'faint' });
    root.append(bar, found, main, status, foot, help);
    el.append(root);

    let view = {}, detail = {}, drawn = '', count = 0, waiting = 0, since = 0, timer = null, moved = null, twice = null, clicked = -1e9, room = 0, most = 0, listed = '', typed = null, aim = null, meant = null;
    const ask = (want) => {
      count += 1; waiting = count; since = performance.now(); aim = null;
      const over = (search.value || view.query) && !want.hit && !['search', 'keep'].includes(want.do) && forget();
      model.set('ask', JSON.stringify({ ...want, ...(over && { forget: 1 }), stage: view.stage, tree: view.tree, n: count + Math.random() }));
      model.save_changes();
      clearTimeout(timer);
      timer = setTimeout(() => { if (waiting) status.textContent = 'The kernel is busy; it answers when the cell has ended.'; }, 1500);
    };
    const step = (by) => {                                                 // each of several quick presses counts, answered or not
      if (!view.steps) return;
      const to = Math.min(view.steps - 1, Math.max(0, (aim ?? detail.last ?? -1) + by));
      ask({ do: 'step', to });
      aim = to;
    };
    const rows = () => [...scroll.querySelectorAll('.row')];
    const current = () => scroll.querySelector('.row[tabindex="0"]') || scroll.querySelector('.row');
    const mark = (id, column, focus, show = focus, at = null) => {
      let chosen = null;
      for (const row of rows()) {
        const here = Number(row.dataset.id) === id;
        row.setAttribute('tabindex', here ? 0 : -1);
        row.setAttribute('aria-selected', here);
        for (const box of row.querySelectorAll('g[data-column]')) {
          const on = here && Number(box.dataset.column) === column, rect = box.querySelector('rect');
          rect.setAttribute('stroke-width', on ? 3 : 1);
          if (rect.getAttribute('fill') === 'transparent' || rect.dataset.head) { rect.dataset.head = 1; rect.setAttribute('stroke', on ? STROKE[0] : 'none'); }
        }
        if (here) chosen = row;
      }
      if (!chosen) rows()[0]?.setAttribute('tabindex', 0);
      if (at) [scroll.scrollLeft, scroll.scrollTop] = at;                  // from here on the page is measured: nothing is written after
      if (chosen && focus) chosen.focus({ preventScroll: true });
      if (chosen && show) {
        const box = (chosen.querySelector(`g[data-column="${column}"]`) ?? chosen).getBoundingClientRect(), frame = scroll.getBoundingClientRect();
        const head = HEAD * zoom.now;
        if (box.top < frame.top + head + 4) scroll.scrollTop += box.top - frame.top - head - 40;
        else if (box.bottom > frame.bottom - 4) scroll.scrollTop += box.bottom - frame.bottom + 40;
        if (box.left < frame.left) scroll.scrollLeft += box.left - frame.left - 10;
        else if (box.right > frame.right) scroll.scrollLeft += Math.min(box.right - frame.right + 20, box.left - frame.left - 10);
      }
    };
    // The details stand beside the picture where both have room, else below it; a picture that shrinks leaves them where they are.
    const arrange = () => {
      const now = main.clientWidth;
      if (!now) return;
      if (now !== room) [room, most] = [now, 0];
      most = Math.max(most, view.w || 0);
      main.classList.toggle('below', most + BESIDE > room);
      zoom.again();
    };
    const select = (row, column) => {
      if (!row) return;
      const id = Number(row.dataset.id);
      mark(id, column, true);
      clearTimeout(moved);
      moved = setTimeout(() => ask({ do: 'select', id, column }), 60);   // a held key asks once
    };
    const list = (hits) => {
      listed = hits;
      found.replaceChildren(...view.found.map(([id, name, path]) => {
        const item = html('li');
        item.append(button(path ? `${name}  in ${path}` : name, `show ${name}`, () => ask({ do: 'go', id, hit: 1 })));
        return item;
      }));
      if (view.query) found.append(html('li', { class: 'faint' }, view.found.length ? view.more ? `and ${view.more} more` : '' : `nothing is called ${view.query}`));
    };
    // What was searched for is done with when something else is asked for, here at once and in the kernel with that ask.
    const forget = () => {
      clearTimeout(typed);
      [search.value, view.query, view.found, meant] = ['', '', [], null];
      list('');
      return true;
    };
    // Enter means what is written, also where the list that is seen is still of what was written before.
    const goToFirst = () => {
      if (!search.value) return;
      meant = search.value.slice(0, QUERY);
      if (view.query !== meant) { clearTimeout(typed); ask({ do: 'search', text: meant }); } else arrived();
    };
    const arrived = () => {
      if (meant === null || view.query !== meant) return;
      meant = null;
      if (view.found.length) ask({ do: 'go', id: view.found[0][0] });
    };
    const draw = () => {
      const text = model.get('picture'), inside = root.contains(root.getRootNode().activeElement);
      let lost = false, at = null;
      if (text !== drawn && text) {
        drawn = text;
        view = JSON.parse(text);
        at = [scroll.scrollLeft, scroll.scrollTop];
        lost = scroll.contains(root.getRootNode().activeElement);       // the row with the focus is drawn anew
        scroll.replaceChildren(drawHeads(view), drawPicture(view));
        arrange();
        title.textContent = view.title; key.textContent = view.key;
        passes.input.max = view.stages; passes.input.value = view.stage; passes.said.textContent = view.pass;
        passes.input.setAttribute('aria-valuetext', view.pass);
        for (const node of [passes.label, steps.label, back, forth, steps.said]) node.hidden = !view.stages;
        const hits = JSON.stringify([view.query, view.found]);
        if (hits !== listed) list(hits);
      }
      detail = JSON.parse(model.get('detail') || '{}');
      const none = !view.steps;
      if (detail.last === aim) aim = null;
      steps.input.max = Math.max(0, view.steps - 1); steps.input.disabled = back.disabled = forth.disabled = none;
      steps.input.value = Math.max(0, detail.last);
      steps.said.textContent = none ? 'to step through values: explore(graph, inputs)' : `instruction ${detail.last + 1} of ${view.steps}${view.views && ` (${view.views})`}`;
      details.replaceChildren(name);
      const heading = name.textContent;
      name.textContent = (detail.at >= 0 ? `Instruction ${detail.at + 1}: ` : '') + (detail.title ?? '');
      if (detail.title) {
        const list = html('dl');
        for (const [what, words] of detail.rows) list.append(html('dt', {}, what), worded(html('dd'), words));
        details.append(list, ...detail.hists.map((one) => drawNumbers(one, main.matches('.below') ? 290 : (details.clientWidth || 290) - 20)));
      }
      const field = root.getRootNode().activeElement;
      if (heading !== name.textContent) details.scrollTop = 0;
      mark(detail.row, detail.column, scroll.contains(field) || lost, inside || lost || waiting, at);
      if (waiting) {
        const late = Math.max(0, clicked + 400 - since);                   // nothing moves under a double click
        setTimeout(() => (late ? name : main).scrollIntoView({ block: 'nearest' }), late);
        root.dataset.ms = (performance.now() - since).toFixed(1);
        waiting = 0; status.textContent = '';
      }
      if (detail.said) status.textContent = detail.said;
      arrived();
    };
    let queued = false;
    const later = () => { if (!queued) { queued = true; queueMicrotask(() => { queued = false; draw(); }); } };
    model.on('change:picture', later);
    model.on('change:detail', later);

    scroll.addEventListener('click', (event) => {
      if (zoom.dragged()) return;
      const row = event.target.closest?.('.row'), box = event.target.closest?.('g[data-column]');
      if (!row) return;
      const column = Number(box?.dataset.column ?? 0);
      clicked = performance.now();
      const id = Number(row.dataset.id), open = Number(row.dataset.open), again = event.detail > 1;
      if (!again) twice = open === 1 ? id : null;                          // what a second click shuts
      mark(id, column, true, false);
      const sign = event.target.closest('.sign'), toggle = sign || (column === 0 && (again ? twice === id : open === 0));
      ask({ do: toggle && open >= 0 ? 'toggle' : 'select', id, column });
      if (again) twice = null;
    });
    scroll.addEventListener('keydown', (event) => {
      const row = current(), all = rows(), at = all.indexOf(row), open = Number(row?.dataset.open);
      const columns = [...(row?.querySelectorAll('g[data-column]') ?? [])].map((box) => Number(box.dataset.column));
      const own = columns.indexOf(detail.row === Number(row?.dataset.id) ? detail.column : columns[0]);
      const toggle = () => ask({ do: 'toggle', id: Number(row.dataset.id) });
      const act = {
        ArrowDown: () => select(all[at + 1], 0), ArrowUp: () => select(all[at - 1], 0), Home: () => select(all[0], 0), End: () => select(all.at(-1), 0),
        Enter: () => (open >= 0 ? toggle() : select(row, 0)), ' ': () => (open >= 0 ? toggle() : select(row, 0)),
        ArrowRight: () => (event.shiftKey ? select(row, columns[own + 1] ?? columns[own]) : open === 0 && toggle()),
        ArrowLeft: () => (event.shiftKey ? select(row, columns[own - 1] ?? columns[own]) : open === 1 ? toggle()
          : select(all.slice(0, at).reverse().find((other) => Number(other.dataset.level) < Number(row.dataset.level)), 0)),
      }[event.key];
      if (act && row) { event.preventDefault(); act(); }
    });
    root.addEventListener('keydown', (event) => {
      event.stopPropagation();
      if (event.target instanceof HTMLInputElement && event.target.type === 'search') {
        if (event.key === 'Enter') goToFirst();
        if (event.key === 'Escape') { forget(); ask({ do: 'search', text: '' }); }
        return;
      }
      if (root.querySelector('dialog')) return;                            // the maps stand over all
      const act = { ...zoom.keys, '?': () => keys.click(), m: () => details.querySelector('.maps')?.click(), '/': () => search.focus(), ',': () => step(-1), '.': () => step(1), '[': () => ask({ do: 'stage', to: view.stage - 1 }), ']': () => ask({ do: 'stage', to: view.stage + 1 }) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    search.addEventListener('input', () => { meant = null; clearTimeout(typed); typed = setTimeout(() => ask({ do: 'search', text: search.value }), 150); });
    passes.input.addEventListener('input', () => ask({ do: 'stage', to: Number(passes.input.value) }));
    steps.input.addEventListener('input', () => ask({ do: 'step', to: Number(steps.input.value) }));
    const sizes = new ResizeObserver(arrange);
    sizes.observe(root);
    draw();
    if (KEPT.delete(model.get('name'))) keep.focus({ preventScroll: true });
    requestAnimationFrame(() => mark(detail.row, detail.column, false, true));   // what is selected already is in sight
    return () => { clearTimeout(timer); sizes.disconnect(); model.off('change:picture', later); model.off('change:detail', later); };
  },
});
