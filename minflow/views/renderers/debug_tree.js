// Search, folding and links in the tree of a build log. Without this script the tree is complete, and folds by itself.
(element, { graph, hidden }) => {
  const tree = element.firstElementChild;
  const make = (tag, look, attributes, text) => {
    const node = document.createElement(tag);
    node.style.cssText = look;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text ?? '';
    return node;
  };
  const folds = [...tree.querySelectorAll('details')];
  // A row is a summary, or a line without a fold: a div in the contents of a fold.
  const rows = [...tree.querySelectorAll('summary, details > div > div')];
  const words = rows.map((row) => row.textContent.toLowerCase());
  const look = 'font:inherit;color:inherit;background:transparent;border:1px solid rgba(125,133,144,.55);border-radius:4px;padding:0 6px';
  const bar = make('div', 'display:flex;flex-wrap:wrap;gap:6px;align-items:center;margin:4px 0', { 'data-lm-suppress-shortcuts': 'true' });
  const search = make('input', `${look};width:26em;max-width:60%`, {
    type: 'search', placeholder: 'search: module, operation, shape, line', 'aria-label': 'search the tree; Enter goes to the next hit, Escape ends the search',
  });
  const said = make('span', 'opacity:.75', { role: 'status' });
  const button = (text, act) => {
    const node = make('button', `${look};cursor:pointer`, { type: 'button' }, text);
    node.addEventListener('click', act);
    return node;
  };
  const foldAll = (open) => { for (const fold of folds) fold.open = open; };
  bar.append(search, button('unfold all', () => foldAll(true)), button('fold all', () => foldAll(false)), said);
  const top = [...tree.children].findIndex((child) => child.matches('details') || rows.includes(child));
  tree.insertBefore(bar, tree.children[top] ?? null);

  const reveal = (row) => {
    for (let fold = row.closest('details'); fold; fold = fold.parentElement.closest('details')) {
      if (row.tagName !== 'SUMMARY' || row.parentElement !== fold) fold.open = true;
    }
    row.scrollIntoView({ block: 'nearest' });
  };
  const flash = (node) => node.animate?.([{ backgroundColor: 'rgba(240,180,40,.6)' }, { backgroundColor: 'transparent' }], { duration: 2000 });

  // ---- search: hits are marked, and the branches around them opened; the folds are as before when it ends
  let hits = [], at = -1, before = null;
  const mark = () => rows.forEach((row) => {
    const hit = hits.includes(row), now = row === hits[at];
    row.style.backgroundColor = now ? 'rgba(240,180,40,.55)' : hit ? 'rgba(240,180,40,.22)' : '';
    row.toggleAttribute('data-hit', hit);
    if (now) row.setAttribute('aria-current', 'true');
    else row.removeAttribute('aria-current');
  });
  const find = () => {
    const wanted = search.value.trim().toLowerCase();
    before ??= folds.map((fold) => fold.open);
    folds.forEach((fold, i) => { fold.open = before[i]; });
    hits = wanted ? rows.filter((row, i) => words[i].includes(wanted)) : [];
    at = hits.length ? 0 : -1;
    [...hits].reverse().forEach(reveal);                 // the first one last, so that it is in view
    mark();
    if (!wanted) before = null;
    tell(wanted);
  };
  const tell = (wanted) => {
    const more = hidden ? `; ${hidden.toLocaleString('en')} rows are not on the page` : '';
    said.textContent = !wanted ? '' : hits.length ? `${at + 1} of ${hits.length}${more}` : `nothing found${more}`;
  };
  const go = (step) => {
    if (!hits.length) return;
    at = (at + step + hits.length) % hits.length;
    reveal(hits[at]);
    mark();
    tell(true);
  };
  search.addEventListener('input', find);
  search.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') { search.value = ''; find(); } else return;
    event.preventDefault();
  });

  // ---- links
  const nameOf = (row) => {                              // a faint word and path, then the last part in bold type
    const [, path] = row.querySelector('span')?.textContent.match(/^(?:module|operator|parameter) (.*)$/) ?? [];
    return path === undefined ? '' : path + row.querySelector('b').textContent;
  };
  // A screen reader does not find a link inside a summary: there the key G on the row does what a click does.
  const link = (node, act, hint) => {
    const fold = node.closest('summary'), key = fold ? 'g' : 'Enter', focused = fold ?? node;
    const said = fold ? [['aria-keyshortcuts', 'g']] : [['role', 'link'], ['tabindex', '0']];
    for (const [name, value] of [...said, ['data-lm-suppress-shortcuts', 'true']]) focused.setAttribute(name, value);
    node.dataset.link = '';
    node.title = fold ? `${hint} (key G)` : hint;
    node.style.cssText += ';cursor:pointer;text-decoration:underline dotted';
    const run = (event) => { event.preventDefault(); event.stopPropagation(); act(); };
    node.addEventListener('click', run);
    focused.addEventListener('keydown', (event) => { if (event.key === key && event.target === focused) run(event); });
  };
  const hint = make('span', 'margin-left:8px;opacity:.75;text-indent:0;user-select:text', { role: 'status', 'data-hint': '' });
  const answer = (node, text) => { hint.textContent = text; node.after(hint); };
  const cellOf = (number) => [...document.querySelectorAll('.jp-CodeCell')]
    .find((cell) => cell.querySelector('.jp-InputPrompt')?.textContent.match(/\[(\d+)\]/)?.[1] === number);
  const paint = () => new Promise((done) => { setTimeout(done, 60); });
  // A page keeps only the cells near the window: scroll through it until the cell is there.
  const scrollToCell = async (number) => {
    const page = tree.closest('.jp-WindowedPanel-outer'), start = page?.scrollTop;
    for (const step of page ? [-0.8, 0.8] : []) {
      page.scrollTop = start;
      for (let last = -1; !cellOf(number) && page.scrollTop !== last;) {
        last = page.scrollTop;
        page.scrollTop += step * page.clientHeight;
        await paint();
      }
      if (cellOf(number)) return cellOf(number);
    }
    if (page) page.scrollTop = start;
    return undefined;
  };
  const toCell = async (node, number, line, source) => {
    const cell = cellOf(number) ?? await scrollToCell(number);
    if (!cell) {
      const here = document.querySelector('.jp-CodeCell');  // elsewhere an output cannot see the cells
      answer(node, here ? `no cell [${number}] on this page: it has run again, or is gone` : `cell [${number}], line ${line}: ${source ?? ''}`);
      return;
    }
    const lines = [...cell.querySelectorAll('.cm-line')], same = (node) => node?.textContent.trim() === source;
    const place = same(lines[line - 1]) || !source ? lines[line - 1] : lines.find(same);
    answer(node, place || !lines.length ? '' : `cell [${number}] has changed since`);
    (place ?? cell).scrollIntoView({ block: 'center' });
    flash(place ?? cell.querySelector('.jp-InputArea') ?? cell);
  };
  for (const node of tree.querySelectorAll('span[title]')) {
    const [, number, line, source] = node.title.match(/^In\[(\d+)\]:(\d+)(?:: (.*))?$/) ?? [];
    if (number) link(node, () => toCell(node, number, Number(line), source), node.title);
  }
  for (const node of top < 0 ? [] : [...tree.children].slice(1, top).flatMap((child) => [...child.querySelectorAll('b')])) {
    const row = rows.find((other) => nameOf(other) === node.textContent);
    if (row) link(node, () => { reveal(row); row.scrollIntoView({ block: 'center' }); flash(row); }, 'to its line');
  }

  // ---- the explorer: a button at the row that is pointed at or has the focus
  let named = '';
  const explore = button('explore', (event) => {
    event.preventDefault();
    event.stopPropagation();
    const shown = [...document.querySelectorAll('.mfx[data-graph]')].find((node) => node.dataset.graph === graph);
    if (shown) shown.dispatchEvent(new CustomEvent('minflow-select', { detail: { name: named } }));
    answer(explore, shown ? '' : `in a new cell: from minflow_widgets import explore; explore(graph).open("${named}")`);
  });
  explore.style.cssText += ';margin-left:8px;font-size:11px;line-height:1.3;text-indent:0';
  const point = (event) => {
    const row = event.target.closest?.('summary, details > div > div');
    const name = row && tree.contains(row) ? nameOf(row) : '';
    if (!name || (name === named && explore.isConnected)) return;
    named = name;
    explore.title = `show ${name} in the explorer`;
    (row.querySelector(':scope > div, :scope > pre') ?? row.appendChild(document.createTextNode(''))).before(explore);
  };
  tree.addEventListener('pointerover', point);
  tree.addEventListener('focusin', point);
}
