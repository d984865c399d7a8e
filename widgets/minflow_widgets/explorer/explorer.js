// The graph explorer. Python lays everything out: the trait `picture` says where each box and line is, `detail` what is
// known of the selected one; `ask` carries what the reader wants back. Looks: explorer.css.
// Put after all other scripts of the explorer. Another view on the page selects a box by a name of the graph:
//   for (const node of document.querySelectorAll('.mfx[data-graph="Train_0"]'))
//     node.dispatchEvent(new CustomEvent('minflow-select', { detail: { name: 'model.fc1-matmul-0' } }));
const KEPT = new Set();   // names of those that are drawn anew since "keep as picture" was pressed there
const BESIDE = 270;       // pixels that the details want beside the picture
const HELD = 60;          // milliseconds: a held key asks once
const DOUBLE = 400;       // milliseconds of a double click, under which nothing moves
const BUSY = 1500;        // milliseconds without an answer

export default placed({
  render({ model, el }) {
    const root = html('div', { class: 'mfx', 'data-lm-suppress-shortcuts': 'true' });
    const main = html('div', { class: 'main' }), scroll = html('div', { class: 'scroll' });
    const status = html('div', { role: 'status', class: 'faint' });
    const legend = html('span'), foot = html('div', { class: 'foot faint' });

    let view = {}, detail = {};
    let drawn = '';                        // the trait `picture` that is drawn
    let asked = 0, waiting = '';           // number of requests; what the last one wants, if it has no answer yet
    let since = 0, clicked = -1e9;         // times of the last request and of the last click
    let busy = null, moved = null;         // timers
    let room = 0, widest = 0;              // pixels across; the widest picture in this room
    let called = false;                    // true if another view has asked for a box
    const active = () => root.getRootNode().activeElement;

    const ask = (want) => {
      asked += 1;
      waiting = want.do;
      since = performance.now();
      controls.settle();
      const over = controls.search.used() && !want.hit && !['search', 'keep', 'maps'].includes(want.do);
      if (over) controls.search.forget();
      const place = { stage: view.stage, tree: view.tree, n: asked + Math.random() };
      model.set('ask', JSON.stringify({ ...want, ...(over && { forget: 1 }), ...place }));
      model.save_changes();
      clearTimeout(busy);
      busy = setTimeout(() => {
        if (waiting) status.textContent = 'The kernel is busy; it answers when the cell has ended.';
      }, BUSY);
    };
    const keep = () => {
      KEPT.add(model.get('name'));
      ask({ do: 'keep' });
    };
    const controls = controlsOf(ask, keep), details = detailsOf(ask), zoom = zoomOf(scroll);
    const { help, toggle: keys } = helpOf();
    main.append(scroll, details.part);
    foot.append(legend, html('span', {}, 'Click a box for its numbers.'), zoom.tools, keys);
    root.append(controls.bar, controls.search.list, main, status, foot, help);
    el.append(root);

    const rows = () => [...scroll.querySelectorAll('.row')];
    const current = () => scroll.querySelector('.row[tabindex="0"]') || scroll.querySelector('.row');
    const idOf = (row) => Number(row.dataset.id);
    const openOf = (row) => Number(row.dataset.open);      // 1: open, 0: closed, -1: nothing to open

    // The frame shows the box: below the names of the columns, which stay, and not at its very edge.
    const reveal = (box) => {
      const at = box.getBoundingClientRect(), frame = scroll.getBoundingClientRect(), head = HEAD * zoom.now;
      if (at.top < frame.top + head + 4) scroll.scrollTop += at.top - frame.top - head - 40;
      else if (at.bottom > frame.bottom - 4) scroll.scrollTop += at.bottom - frame.bottom + 40;
      if (at.left < frame.left) scroll.scrollLeft += at.left - frame.left - 10;
      else if (at.right > frame.right) {
        scroll.scrollLeft += Math.min(at.right - frame.right + 20, at.left - frame.left - 10);
      }
    };
    // Draw the selection. focus, show: true if its row gets the focus, or is scrolled to.  place: of the frame.
    const mark = (id, column, focus, show = focus, place = null) => {
      for (const row of rows()) {
        const here = idOf(row) === id;
        row.setAttribute('tabindex', here ? 0 : -1);
        row.setAttribute('aria-selected', here);
        for (const box of row.querySelectorAll('g[data-column]')) {
          markBox(box, here && Number(box.dataset.column) === column);
        }
      }
      const chosen = rows().find((row) => idOf(row) === id);
      if (!chosen) rows()[0]?.setAttribute('tabindex', 0);
      // From here on the page is measured, and nothing is written.
      if (place) [scroll.scrollLeft, scroll.scrollTop] = place;
      if (chosen && focus) chosen.focus({ preventScroll: true });
      if (chosen && show) reveal(chosen.querySelector(`g[data-column="${column}"]`) ?? chosen);
    };
    // The details are beside the picture if both have room, else below it. A picture that shrinks leaves them there.
    const arrange = () => {
      const now = main.clientWidth;
      if (!now) return;
      if (now !== room) [room, widest] = [now, 0];
      widest = Math.max(widest, view.w || 0);
      main.classList.toggle('below', widest + BESIDE > room);
      zoom.again();
    };
    const select = (row, column) => {
      if (!row) return;
      mark(idOf(row), column, true);
      clearTimeout(moved);
      moved = setTimeout(() => ask({ do: 'select', id: idOf(row), column }), HELD);
    };

    const drawView = (text) => {
      drawn = text;
      view = JSON.parse(text);
      scroll.replaceChildren(drawHeads(view), drawPicture(view));
      arrange();
      root.dataset.graph = view.title;
      legend.textContent = view.key;
      controls.drawPicture(view);
    };
    const answered = () => {
      const late = Math.max(0, clicked + DOUBLE - since);
      const far = called;
      const show = () => {                 // the selected box, and what is known first of it
        if (far) controls.bar.scrollIntoView({ block: 'nearest' });
        scroll.scrollIntoView({ block: 'nearest' });
        if (main.matches('.below')) details.part.querySelector('.cards')?.scrollIntoView({ block: 'nearest' });
      };
      if (waiting !== 'maps') setTimeout(show, late);
      root.dataset.ms = (performance.now() - since).toFixed(1);
      [waiting, called] = ['', false];
      status.textContent = '';
    };
    const draw = () => {
      const text = model.get('picture'), inside = root.contains(active());
      let lost = false, place = null;
      if (text !== drawn && text) {
        place = [scroll.scrollLeft, scroll.scrollTop];
        lost = scroll.contains(active());                                  // the row with the focus is drawn anew
        drawView(text);
      }
      detail = JSON.parse(model.get('detail') || '{}');
      controls.drawDetail(detail);
      details.draw(detail);
      const focus = scroll.contains(active()) || lost || called, show = inside || lost || waiting !== '';
      mark(detail.row, detail.column, focus, show, place);
      if (waiting) answered();
      if (detail.said) status.textContent = detail.said;
      controls.search.arrived();
    };
    let queued = false;
    const later = () => {                                                  // both traits may change at once
      if (queued) return;
      queued = true;
      queueMicrotask(() => { queued = false; draw(); });
    };
    model.on('change:picture', later);
    model.on('change:detail', later);

    scroll.addEventListener('click', (event) => {
      const row = event.target.closest?.('.row');
      if (!row || zoom.dragged() || event.detail > 1) return;              // the second click of two closes nothing
      const column = Number(event.target.closest('g[data-column]')?.dataset.column ?? 0), open = openOf(row);
      const toggle = open >= 0 && (event.target.closest('.sign') || (column === 0 && open === 0));
      clicked = performance.now();
      mark(idOf(row), column, true, false);
      ask({ do: toggle ? 'toggle' : 'select', id: idOf(row), column });
    });
    scroll.addEventListener('keydown', (event) => {
      const row = current();
      if (!row) return;
      const all = rows(), at = all.indexOf(row), open = openOf(row);
      const columns = [...row.querySelectorAll('g[data-column]')].map((box) => Number(box.dataset.column));
      const own = columns.indexOf(detail.row === idOf(row) ? detail.column : columns[0]);
      const toggle = () => ask({ do: 'toggle', id: idOf(row) });
      const enter = () => (open >= 0 ? toggle() : select(row, 0));
      const across = (by) => select(row, columns[own + by] ?? columns[own]);
      const level = (other) => Number(other.dataset.level);
      const outer = () => select(all.slice(0, at).findLast((other) => level(other) < level(row)), 0);
      const act = {
        ArrowDown: () => select(all[at + 1], 0), ArrowUp: () => select(all[at - 1], 0),
        Home: () => select(all[0], 0), End: () => select(all.at(-1), 0),
        Enter: enter, ' ': enter,
        ArrowRight: () => (event.shiftKey ? across(1) : open === 0 && toggle()),
        ArrowLeft: () => (event.shiftKey ? across(-1) : open === 1 ? toggle() : outer()),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    root.addEventListener('keydown', (event) => {
      event.stopPropagation();
      if (event.target instanceof HTMLInputElement && event.target.type === 'search') {
        if (event.key === 'Enter') controls.search.enter();
        if (event.key === 'Escape') controls.search.end();
        return;
      }
      if (root.querySelector('dialog')) return;                            // an enlarged map has keys of its own
      const act = {
        ...zoom.keys,
        Escape: () => ask({ do: 'leave' }),
        '?': () => keys.click(),
        m: () => details.enlarge(),
        '/': () => controls.search.focus(),
        ',': () => controls.step(-1), '.': () => controls.step(1),
        '[': () => ask({ do: 'stage', to: view.stage - 1 }),
        ']': () => ask({ do: 'stage', to: view.stage + 1 }),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    root.addEventListener('minflow-select', (event) => {
      called = true;
      ask({ do: 'open', name: String(event.detail?.name ?? '') });
    });
    const sizes = new ResizeObserver(arrange);
    sizes.observe(root);
    draw();
    if (KEPT.delete(model.get('name'))) controls.kept.focus({ preventScroll: true });
    requestAnimationFrame(() => mark(detail.row, detail.column, false, true));   // what is selected already is seen
    return () => {
      clearTimeout(busy);
      sizes.disconnect();
      model.off('change:picture', later);
      model.off('change:detail', later);
    };
  },
});
